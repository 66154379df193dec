package redisinbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
)

// held makes entries that a process has read and died over.
func held(n *nodes, s *redistest.Server, count int) {
	for _, shard := range n.in.keys() {
		for _, key := range shard {
			if _, err := s.Try("XGROUP", "CREATE", key, group, "0", "MKSTREAM"); err != nil {
				n.t.Fatal(err)
			}
		}
	}
	for range count {
		n.answer("{}")
	}
	for _, shard := range n.in.keys() {
		for _, key := range shard {
			s.Do("XREADGROUP", "GROUP", group, "dead", "COUNT", "1000", "STREAMS", key, ">")
		}
	}
}

func TestP9ALastLookOffersWhatADeadProcessHolds(t *testing.T) {
	s, in, n := rig(t, func(c *Config) { c.TakeOver = time.Hour })
	held(n, s, 100)
	st := newStore()
	run(t, in, st.deliver)
	reading(t, in)
	fresh := n.answer("{}")
	redistest.Eventually(t, "a new answer is settled", func() bool { return st.has(fresh) == 1 })
	expect(t, "settled before", st.size(), 1)
	if err := in.LastLook(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "settled after", st.size(), 101)
	n.emptied()
	expect(t, "looked", in.Status().Looked, 100)
	if err := in.LastLook(t.Context()); err != nil {
		t.Errorf("of an empty inbox: %v", err)
	}
}

func TestALastLookCountsWhatOthersDiedOf(t *testing.T) {
	s, in, n := rig(t, func(c *Config) { c.TakeOver = time.Hour })
	held(n, s, 3)
	for _, shard := range in.keys() {
		rows, _ := s.Do("XPENDING", shard[1], group, "-", "+", "10").([]any)
		for _, row := range rows {
			s.Do("XCLAIM", shard[1], group, "dead", "0", row.([]any)[0].(string), "RETRYCOUNT", "10")
		}
	}
	st := newStore()
	var found atomic.Int64
	var away atomic.Bool
	away.Store(true)
	run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		if away.Load() {
			return nil, errStore
		}
		for _, e := range list {
			if !e.Poisoned || e.Deliveries != 11 || len(list) != 1 {
				t.Errorf("of %d: %+v", len(list), e)
			}
			found.Add(1)
		}
		return st.deliver(ctx, list)
	})
	reading(t, in)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := in.LastLook(ctx); !errors.Is(err, errStore) {
		t.Errorf("while the store is away: %v", err)
	}
	away.Store(false)
	if err := in.LastLook(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "found", found.Load(), 3)
	n.emptied()
}

func TestP11ALastLookSaysWhenItIsWorthNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	in := open(t, at(p.Addr()), func(c *Config) { c.TakeOver = time.Hour })
	n := newNodes(t, in, at(s.Addr()))
	held(n, s, 1)
	answer := make(chan bool, 10)
	var fail atomic.Bool
	stop := run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		if fail.Load() {
			return nil, errStore
		}
		answer <- true
		return make([]bool, len(list)), nil
	})
	reading(t, in)
	expect(t, "a Deliver that is not done with it", in.LastLook(t.Context()), nil)
	<-answer
	if entries, _, _ := n.rest(); entries != 1 {
		t.Errorf("it left %d entries", entries)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	fail.Store(true)
	if err := in.LastLook(ctx); !errors.Is(err, errStore) {
		t.Errorf("a Deliver that fails: %v", err)
	}
	fail.Store(false)
	p.Silence()
	if err := in.LastLook(t.Context()); err == nil {
		t.Error("a silent network: no error")
	}
	p.Refuse()
	if err := in.LastLook(t.Context()); err == nil {
		t.Error("a server that cannot be reached: no error")
	}
	p.Pass()
	redistest.Eventually(t, "it works again", func() bool { return in.LastLook(t.Context()) == nil })
	<-answer
	s.Pause()
	if err := in.LastLook(t.Context()); err == nil {
		t.Error("a paused server: no error")
	}
	s.Resume()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := in.LastLook(done); err == nil {
		t.Error("a context that has ended: no error")
	}
	stop()
	expect(t, "after Run", in.LastLook(t.Context()), ErrNotReading)
}

func TestP6OrphansAreFound(t *testing.T) {
	s, in, n := rig(t)
	held(n, s, 40)
	for _, shard := range in.keys() { // acknowledged, and not deleted
		rows, _ := s.Do("XPENDING", shard[1], group, "-", "+", "100").([]any)
		for _, row := range rows {
			s.Do("XACK", shard[1], group, row.([]any)[0].(string))
		}
	}
	st := newStore()
	stop := run(t, in, st.deliver)
	reading(t, in)
	sleep(t.Context(), 500*time.Millisecond)
	expect(t, "found while they are young", st.size(), 0)
	stop()
	in.pace.orphan = 200 * time.Millisecond
	run(t, in, st.deliver)
	n.drained(st)
}

func TestAGroupThatBeganTooLateLosesNothing(t *testing.T) {
	s, in, n := rig(t)
	in.pace.orphan = 200 * time.Millisecond
	n.answer("{}")
	for _, shard := range in.keys() { // what another program may do
		for _, key := range shard {
			s.Do("XGROUP", "CREATE", key, group, "$", "MKSTREAM")
		}
	}
	st := newStore()
	run(t, in, st.deliver)
	n.drained(st)
}

func TestP11ReadableSaysWhetherThereWasAGap(t *testing.T) {
	s, in, n := rig(t)
	st := newStore()
	stop := run(t, in, st.deliver)
	reading(t, in)
	n.answer("{}")
	if in.Readable(time.Minute) {
		t.Error("readable for a minute, a moment after the start")
	}
	redistest.Eventually(t, "it was readable for 300 ms", func() bool { return in.Readable(300 * time.Millisecond) })
	s.Pause()
	redistest.Eventually(t, "a paused server shows", func() bool { return !in.Readable(0) })
	expect(t, "reading", in.Status().Reading, false)
	s.Resume()
	redistest.Eventually(t, "it is readable again", func() bool { return in.Readable(0) })
	if in.Readable(300 * time.Millisecond) {
		t.Error("readable for 300 ms, right after a gap")
	}
	redistest.Eventually(t, "it was readable for 300 ms again", func() bool { return in.Readable(300 * time.Millisecond) })
	expect(t, "gaps", in.Status().Gaps, 1)
	stop()
	if in.Readable(0) {
		t.Error("readable after Run")
	}
}
