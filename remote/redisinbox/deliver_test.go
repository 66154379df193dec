package redisinbox

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redistest"
)

// rig is one server, one inbox, and its nodes.
func rig(t *testing.T, change ...func(*Config)) (*redistest.Server, *Inbox, *nodes) {
	t.Helper()
	t.Parallel()
	s := redistest.Start(t)
	in := open(t, at(s.Addr()), change...)
	return s, in, newNodes(t, in, at(s.Addr()))
}

func TestP9EntriesStayUntilDeliverIsDoneWithThem(t *testing.T) {
	for name, fault := range map[string]func(calls int, list []Entry) ([]bool, error){
		"an error": func(calls int, list []Entry) ([]bool, error) { return nil, errStore },
		"an error beside an answer": func(calls int, list []Entry) ([]bool, error) {
			done := make([]bool, len(list))
			for i := range done {
				done[i] = true
			}
			return done, errStore
		},
		"false":            func(calls int, list []Entry) ([]bool, error) { return make([]bool, len(list)), nil },
		"too short":        func(calls int, list []Entry) ([]bool, error) { return nil, nil },
		"too long":         func(calls int, list []Entry) ([]bool, error) { return make([]bool, len(list)+1), nil },
		"a panic":          func(calls int, list []Entry) ([]bool, error) { panic("boom password=hunter2") },
		"a nil panic":      func(calls int, list []Entry) ([]bool, error) { panic(nil) },
		"a goroutine ends": func(calls int, list []Entry) ([]bool, error) { runtime.Goexit(); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, in, n := rig(t)
			st := newStore()
			var mu sync.Mutex
			calls, deliveries := 0, 0
			run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls <= 3 {
					if entries, _, err := n.rest(); err != nil || entries != 1 {
						t.Errorf("before call %d: %d entries, %v", calls, entries, err)
					}
					return fault(calls, list)
				}
				deliveries = list[0].Deliveries
				return st.deliver(ctx, list)
			})
			n.answer("{}")
			n.drained(st)
			mu.Lock()
			defer mu.Unlock()
			expect(t, "calls", calls, 4)
			silent := strings.Contains(name, "panic") || strings.Contains(name, "goroutine")
			if expect(t, "deliveries", deliveries, map[bool]int{true: 4, false: 1}[silent]); strings.Contains(loggedBy(in), "hunter2") {
				t.Errorf("a secret is logged: %s", loggedBy(in))
			}
		})
	}
}

func TestP10AStoreThatIsAwayForLongPoisonsNothing(t *testing.T) {
	_, in, n := rig(t, func(c *Config) { c.TakeOver = 100 * time.Millisecond })
	st := newStore()
	st.fault = func(calls int) error {
		if calls <= 3*poisoned {
			return errStore
		}
		return nil
	}
	run(t, in, st.deliver)
	n.answer("{}")
	n.drained(st)
	expect(t, "poisoned", in.Status().Poisoned, 0)
}

func TestP4AnEntryThatPanicsIsPoisonedAndItsNeighboursAreSettled(t *testing.T) {
	_, in, n := rig(t, func(c *Config) { c.TakeOver = 100 * time.Millisecond })
	st := newStore()
	var mu sync.Mutex
	looks := 0
	var first []settle.ID
	for range 20 {
		first = append(first, n.answer("{}"))
	}
	bad := n.answer("bad")
	run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		for _, e := range list {
			if string(e.Doc) == "bad" && !e.Poisoned {
				mu.Lock()
				looks++
				mu.Unlock()
				panic("bad")
			}
			if e.Poisoned && e.Attempt != bad {
				t.Errorf("a neighbour is poisoned after %d deliveries", e.Deliveries)
			}
		}
		return st.deliver(ctx, list)
	})
	n.drained(st)
	expect(t, "looks at it", looks, poisoned)
	expect(t, "poisoned", in.Status().Poisoned, 1)
	expect(t, "neighbours settled", st.has(first...), 20)
}

func TestASlowDeliverIsTakenOverFromAndSettledOnce(t *testing.T) {
	s, in, n := rig(t)
	slow, quickly := newStore(), newStore()
	entered, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	var once sync.Once
	stop := run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		once.Do(func() { close(entered) })
		<-released // as a Deliver that does not heed its context
		return slow.deliver(ctx, list)
	})
	t.Cleanup(release)
	reading(t, in)
	n.answer("{}")
	<-entered
	other := open(t, at(s.Addr()))
	run(t, other, quickly.deliver)
	n.drained(quickly)
	redistest.Eventually(t, "the slow one is not held for reading", func() bool { return !in.Readable(0) })
	if !other.Status().Reading || other.Status().TakenOver != 1 {
		t.Errorf("the other: %+v", other.Status())
	}
	release()
	stop()
	expect(t, "the slow one delivered it too", slow.size(), 1)
	n.emptied()
}

func TestALivingDeliverIsLeftAlone(t *testing.T) {
	s, in, n := rig(t)
	slow := newStore()
	run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		sleep(ctx, in.cfg.TakeOver/3) // the other looks about three times meanwhile
		return slow.deliver(ctx, list)
	})
	reading(t, in)
	other, st := open(t, at(s.Addr())), newStore()
	run(t, other, st.deliver)
	reading(t, other)
	<-n.load(80)
	redistest.Eventually(t, "all is settled", func() bool { return slow.has(n.all()...)+st.has(n.all()...) == 80 })
	n.emptied()
	expect(t, "taken over", other.Status().TakenOver+in.Status().TakenOver, 0)
}

func TestDeliverOutlivesTheContextOfRun(t *testing.T) {
	_, in, n := rig(t)
	st := newStore()
	entered := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- in.Run(ctx, func(ctx context.Context, list []Entry) ([]bool, error) {
			close(entered)
			sleep(ctx, 50*time.Millisecond)
			if ctx.Err() != nil {
				t.Error("the context has ended with that of Run")
			}
			if d, ok := ctx.Deadline(); !ok || time.Until(d) > in.cfg.TakeOver/2 {
				t.Errorf("a deadline in %v", time.Until(d))
			}
			return st.deliver(ctx, list)
		})
	}()
	n.answer("{}")
	<-entered
	cancel()
	expect(t, "Run", <-ended, nil)
	n.drained(st)
}

func TestP6StrangeEntriesAreCountedKeptAndRemoved(t *testing.T) {
	_, in, n := rig(t)
	st := newStore()
	n.add("settle:{1}:inbox", "no ticket password=hunter2 \x1b[31mred\u202e", "{}")
	n.add("settle:{1}:progress", "", "{}")
	for i := range 150 {
		n.add(fmt.Sprintf("settle:{%d}:inbox", i%Shards), fmt.Sprint("strange ", i), "{}")
	}
	n.client.Do(t.Context(), n.client.B().Xadd().Key("settle:{0}:inbox").Id("*").FieldValue().FieldValue("other", "fields").Build())
	run(t, in, st.deliver)
	good := n.answer("{}")
	n.drained(st)
	n.add("settle:{1}:inbox", "the last: password=hunter2 \x1b[31mred\u202e", "{}")
	n.emptied()
	got := in.Status()
	expect(t, "unreadable", got.Unreadable, 154)
	expect(t, "kept", len(got.Strange), 100)
	last := got.Strange[99]
	expect(t, "the last", last.Ticket, "the last: password=[redacted] red")
	expect(t, "its stream", last.Stream, "settle:{1}:inbox")
	if time.Since(last.At).Abs() > time.Minute {
		t.Errorf("its time is %v", last.At)
	}
	expect(t, "settled", st.has(good), 1)
	expect(t, "settled in all", st.size(), 1)
}

func TestProgressIsDeliveredAndRemoved(t *testing.T) {
	s, in, n := rig(t)
	st := newStore()
	job, attempt := settle.NewID(), settle.NewID()
	a := in.Address(job, attempt)
	run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		for _, e := range list {
			if e.Job != job || e.Attempt != attempt || !e.Progress || string(e.Doc) != "note" {
				t.Errorf("got %+v", e)
			}
		}
		return st.deliver(ctx, list)
	})
	reading(t, in)
	for range 10 {
		s.Do("XADD", a.Progress, "MAXLEN", "~", "10000", "*", "ticket", a.Ticket, "doc", "note")
	}
	n.emptied()
	expect(t, "notes", st.noted(), 10)
	expect(t, "answers", st.size(), 0)
}

// Notes that a dead process held, and that were trimmed away since, are forgotten.
func TestTrimmedNotesDoNotStayPending(t *testing.T) {
	s, in, n := rig(t)
	a := in.Address(settle.NewID(), settle.NewID())
	s.Do("XGROUP", "CREATE", a.Progress, group, "0", "MKSTREAM")
	for range 20 {
		s.Do("XADD", a.Progress, "*", "ticket", a.Ticket, "doc", "note")
	}
	s.Do("XREADGROUP", "GROUP", group, "dead", "STREAMS", a.Progress, ">")
	s.Do("XTRIM", a.Progress, "MAXLEN", "5")
	st := newStore()
	run(t, in, st.deliver)
	n.emptied()
	expect(t, "notes", st.noted(), 5)
}

// What Redis 6.2 leaves to its users, and Redis 7 does by itself.
func TestWhatWasTrimmedIsAcknowledged(t *testing.T) {
	s, in, n := rig(t, func(c *Config) { c.TakeOver = time.Hour })
	held(n, s, 1)
	key := in.Address(n.all()[0], n.all()[0]).Stream
	there := s.Text("XADD", key, "*", "ticket", "", "doc", "")
	gone := s.Text("XADD", key, "*", "ticket", "", "doc", "")
	s.Do("XREADGROUP", "GROUP", group, "dead", "STREAMS", key, ">")
	s.Do("XDEL", key, gone)
	run(t, in, newStore().deliver)
	reading(t, in)
	in.reading().forgetTrimmed(t.Context(), key, []string{there, gone})
	rows, _ := s.Do("XPENDING", key, group, "-", "+", "10").([]any)
	if text := fmt.Sprint(rows); !strings.Contains(text, there) || strings.Contains(text, gone) {
		t.Errorf("pending: %s; %s is there, %s is not", text, there, gone)
	}
}
