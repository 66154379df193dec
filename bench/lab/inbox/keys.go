package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	pollEvery = 2 * time.Second
	pollBatch = 500
)

// waitList is what a bridge of form A must know: each wait that it polls.
type waitList struct {
	mu   sync.Mutex
	seen Seen
	open map[int]ticket
}

func (b *bridge) runKeys(ctx context.Context) {
	w := &waitList{open: map[int]ticket{}}
	for b.refresh(w) > 0 {
	}
	nudged := make(chan ticket, 1<<16)
	var all sync.WaitGroup
	all.Go(func() { b.listen(ctx, nudged) })
	all.Go(func() { b.work(ctx, nudged) })
	time.Sleep(200 * time.Millisecond) // the subscription
	b.ready()
	all.Go(func() { b.poll(ctx, w) })
	all.Wait()
}

// refresh asks the store for new waits and for ends; it answers how many waits.
func (b *bridge) refresh(w *waitList) int {
	var c Changes
	if err := b.store.Call("Store.Waits", w.seen, &c); err != nil {
		b.failed(err)
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Waits += len(c.Waits)
	w.seen.Ended += len(c.Ended)
	for _, t := range c.Waits {
		if b.PollAll || t.Job%bridges == b.Number {
			w.open[t.Job] = t
		}
	}
	for _, job := range c.Ended {
		delete(w.open, job)
	}
	return len(c.Waits)
}

func (b *bridge) listen(ctx context.Context, nudged chan<- ticket) {
	for ctx.Err() == nil {
		err := b.redis.Receive(ctx, b.redis.B().Subscribe().Channel(nudges(b.Number)).Build(), func(m rueidis.PubSubMessage) {
			if t, ok := parseTicket(m.Message); ok {
				select {
				case nudged <- t:
				default: // the poll will find it
				}
			}
		})
		if err != nil && ctx.Err() == nil {
			b.failed(err)
		}
		b.add(&b.stats.Reconnects, 1)
	}
}

// work looks at what was nudged, as many at once as have come.
func (b *bridge) work(ctx context.Context, nudged <-chan ticket) {
	for {
		var asked []ticket
		select {
		case <-ctx.Done():
			return
		case t := <-nudged:
			asked = append(asked, t)
		}
		for len(asked) < pollBatch && len(nudged) > 0 {
			asked = append(asked, <-nudged)
		}
		b.look(ctx, asked)
	}
}

// poll looks at every wait, then rests for what is left of two seconds.
func (b *bridge) poll(ctx context.Context, w *waitList) {
	for ctx.Err() == nil {
		at := time.Now()
		for b.refresh(w) > 0 {
		}
		w.mu.Lock()
		all := slices.Collect(maps.Values(w.open))
		w.mu.Unlock()
		for part := range slices.Chunk(all, pollBatch) {
			if ctx.Err() != nil {
				return
			}
			b.look(ctx, part)
		}
		took := time.Since(at)
		b.mu.Lock()
		b.stats.Sweeps++
		b.stats.SweepMS += float64(took.Milliseconds())
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery - took):
		}
	}
}

// compareAndDelete removes a key only while it holds the bytes that were judged.
var compareAndDelete = rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// look reads, judges, commits, and only then deletes.
func (b *bridge) look(ctx context.Context, asked []ticket) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	keys := make([]string, len(asked))
	for i, t := range asked {
		keys[i] = t.key()
	}
	docs, err := b.redis.Do(ctx, b.redis.B().Mget().Key(keys...).Build()).ToArray()
	if err != nil {
		b.failed(err)
		return
	}
	var tickets []ticket
	var judged []rueidis.LuaExec
	for i, d := range docs {
		if doc, err := d.ToString(); err == nil {
			tickets = append(tickets, judge(asked[i].String(), doc))
			judged = append(judged, rueidis.LuaExec{Keys: []string{keys[i]}, Args: []string{doc}})
		}
	}
	if len(tickets) == 0 {
		return
	}
	if err := b.apply(tickets); err != nil {
		b.failed(err)
		return
	}
	for _, r := range compareAndDelete.ExecMulti(ctx, b.redis, judged...) {
		if r.Error() != nil {
			b.failed(r.Error())
			return
		}
	}
}
