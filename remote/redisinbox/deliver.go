package redisinbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// errSilent: a Deliver panicked or ended its goroutine. It has said nothing.
var errSilent = errors.New("deliver broke off")

// settle has entries delivered that this consumer holds, and removes those that
// somebody is done with. The others stay: they are taken over later, by this
// process or another. An error says that they were not delivered.
func (s *session) settle(ctx context.Context, list []Entry) error {
	left, err := s.try(ctx, list)
	if !errors.Is(err, errSilent) {
		s.excuse(ctx, left)
	}
	return err
}

// try has entries delivered, removes what may be removed, and returns the rest.
// An error says that they were not delivered.
func (s *session) try(ctx context.Context, list []Entry) (left []Entry, err error) {
	var offered, gone []Entry
	for _, e := range list {
		if e.unreadable {
			gone = append(gone, e)
			continue
		}
		if e.Poisoned {
			s.book.add((*counts).ofPoisoned, 1)
		}
		offered = append(offered, e)
	}
	done, err := s.offer(ctx, offered)
	for n, e := range offered {
		if err == nil && done[n] {
			gone = append(gone, e)
		} else {
			left = append(left, e)
		}
	}
	s.remove(ctx, gone)
	return left, err
}

// offer calls Deliver, again after an error while half of TakeOver lasts: nothing
// more is read meanwhile, so what comes waits in Redis and not with us.
func (s *session) offer(ctx context.Context, list []Entry) (done []bool, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.TakeOver/2)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, s.cfg.TakeOver/2)
	defer stop()
	for n := 0; ; n++ {
		if done, err = call(whole, s.deliver, list); err == nil {
			return done, nil
		}
		s.trouble("deliver", err)
		// After a panic the same would follow.
		if pause(ctx, n); errors.Is(err, errSilent) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// call calls a Deliver that may panic, or end its goroutine.
func call(ctx context.Context, deliver Deliver, list []Entry) (done []bool, err error) {
	ended := make(chan struct{})
	err = fmt.Errorf("%w: it ended its goroutine", errSilent)
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %v", errSilent, p)
			}
		}()
		done, err = deliver(ctx, list)
	}()
	<-ended
	if err == nil && len(done) != len(list) {
		return nil, fmt.Errorf("deliver answers for %d of %d entries", len(done), len(list))
	}
	return done, err
}

// remove acknowledges and deletes: one transaction for each stream. XACK without
// XDEL would leave an entry that nobody finds.
func (s *session) remove(ctx context.Context, list []Entry) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := s.command(ctx)
	defer cancel()
	var cmds rueidis.Commands
	for _, b := range byStream(list) {
		c := s.redis.B()
		cmds = append(cmds, c.Multi().Build(), c.Xack().Key(b.key).Group(group).Id(b.ids...).Build(),
			c.Xdel().Key(b.key).Id(b.ids...).Build(), c.Exec().Build())
	}
	for n, r := range s.redis.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			s.trouble("remove", err) // what it did not reach is taken over
			return
		}
		if n%4 == 3 { // EXEC
			s.book.add((*counts).ofRemoved, deleted(r))
		}
	}
}

// deleted is what XDEL says in the reply to EXEC.
func deleted(exec rueidis.RedisResult) int {
	replies, err := exec.ToArray()
	if err != nil || len(replies) != 2 {
		return 0
	}
	n, _ := replies[1].AsInt64()
	return int(n)
}

// excuse takes a delivery back of which somebody said that it was not the
// entry's fault, so that a store that is away poisons nothing.
func (s *session) excuse(ctx context.Context, list []Entry) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := s.command(ctx)
	defer cancel()
	var cmds rueidis.Commands
	for _, b := range byStream(list) {
		cmds = append(cmds, s.redis.B().Xclaim().Key(b.key).Group(group).Consumer(s.name).MinIdleTime("0").Id(b.ids...).
			Retrycount(int64(b.deliveries-1)).Justid().Build())
	}
	for _, r := range s.redis.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			s.trouble("give back", err)
			return
		}
	}
}

// bundle is what one command is about.
type bundle struct {
	key        string
	deliveries int
	ids        []string
}

// byStream groups entries by stream and count of deliveries, as they come.
func byStream(list []Entry) (out []*bundle) {
	for _, e := range list {
		if n := len(out); n == 0 || out[n-1].key != e.key || out[n-1].deliveries != e.Deliveries {
			out = append(out, &bundle{key: e.key, deliveries: e.Deliveries})
		}
		b := out[len(out)-1]
		b.ids = append(b.ids, e.id)
	}
	return out
}

// trouble notes an error. The first of a kind is logged, then one a minute.
func (i *Inbox) trouble(doing string, err error) { i.book.trouble(i.log, doing, err, time.Now()) }
