package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// combiner turns the calls of many goroutines into few transactions: whatever
// gathered while the last one was being committed goes into the next.
type combiner interface {
	do(f func(*store)) // returns when f's transaction is durable
	stop()
}

const mostPerTx = 2000

type request struct {
	f    func(*store)
	done chan struct{}
}

var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

// channel is the first way: a goroutine owned by the store, fed by a channel.
type channel struct {
	in    chan *request
	ended chan struct{}
}

func newChannel(s *store) combiner {
	c := &channel{make(chan *request, 4096), make(chan struct{})}
	go c.run(s)
	return c
}

func (c *channel) do(f func(*store)) {
	r := requests.Get().(*request)
	r.f = f
	c.in <- r
	<-r.done
	requests.Put(r)
}

func (c *channel) run(s *store) {
	defer close(c.ended)
	var batch []*request
	for r := range c.in {
		batch = append(batch[:0], r)
		for more := true; more && len(batch) < mostPerTx; {
			select {
			case r, ok := <-c.in:
				if more = ok; ok {
					batch = append(batch, r)
				}
			default:
				more = false
			}
		}
		serve(s, batch)
	}
}

func (c *channel) stop() { close(c.in); <-c.ended }

func serve(s *store, batch []*request) {
	s.tx(func() {
		for _, r := range batch {
			r.f(s)
		}
	})
	for _, r := range batch {
		r.done <- struct{}{}
	}
}

// leader is the second way: no goroutine of its own. Callers append to a queue;
// whoever gets the only slot runs all of it in one transaction and answers the
// others. The same slot can be lent to a caller's own transaction.
type leader struct {
	s     *store
	slot  chan struct{}
	mu    sync.Mutex
	queue []*request
	spare []*request
}

func newLeader(s *store) *leader { return &leader{s: s, slot: make(chan struct{}, 1)} }

func (l *leader) do(f func(*store)) {
	r := requests.Get().(*request)
	r.f = f
	l.mu.Lock()
	l.queue = append(l.queue, r)
	l.mu.Unlock()
	for {
		select {
		case <-r.done:
			requests.Put(r)
			return
		case l.slot <- struct{}{}:
			l.mu.Lock()
			batch := l.queue
			l.queue = l.spare[:0]
			l.mu.Unlock()
			if len(batch) > 0 { // else another leader has just served us
				serve(l.s, batch)
			}
			l.spare = batch
			<-l.slot
		}
	}
}

func (l *leader) stop() {}

// turn compares the two on zombiezen.
func turn(dir string) {
	ways := map[string]func(*store) combiner{"channel": newChannel, "leader": func(s *store) combiner { return newLeader(s) }}
	for _, sync := range []string{"FULL", "NORMAL"} {
		rate, p50, p99 := table{}, table{}, table{}
		for round := range *rounds {
			for _, g := range callers {
				names := []string{"channel", "leader"}
				if round%2 == 1 {
					names[0], names[1] = names[1], names[0]
				}
				for _, name := range names {
					path := fresh(dir)
					s := open("zombiezen", path, sync)
					row := fmt.Sprint(g)
					rate.add("floor"+row, name, floor(dir))
					r, lat := group(ways[name](s), g)
					rate.add(row, name, r)
					p50.add(row, name, quantile(lat, .5))
					p99.add(row, name, quantile(lat, .99))
					s.close()
					must(os.RemoveAll(filepath.Dir(path)))
				}
			}
		}
		for _, g := range callers {
			row := fmt.Sprint(g)
			for _, name := range []string{"channel", "leader"} {
				fmt.Printf("  %-6s %3d callers %-8s %7.0f/s (%5.2f × floor, %4.2f × channel)  p50 %6.2f  p99 %6.2f ms\n", sync, g, name,
					rate.median(row, name), rate.ratio(row, name, "floor"+row, name), rate.ratio(row, name, row, "channel"),
					p50.median(row, name), p99.median(row, name))
			}
		}
	}
}
