package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestB013SnoozesAreCountedApartAndBounded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "twenty", func(_ context.Context, j *Job[[]byte]) error {
			if j.Deferred < 20 {
				return settle.Snooze(5 * time.Second)
			}
			return nil
		})
		raw(w, "ever", func(context.Context, *Job[[]byte]) error { return settle.Snooze(5 * time.Second) })
		twenty := f.put(t, "twenty", pol(settle.Policy{Attempts: 3}))
		ever := f.put(t, "ever", pol(settle.Policy{Attempts: 3, Deferrals: 50}))
		stop := start(t, w)
		nap(10 * time.Minute)
		stop()
		j := wantState(t, f, twenty, settle.Succeeded, 21)
		if j.Deferred != 20 || j.Excused != 20 || len(j.Attempts) != 20 {
			t.Errorf("deferred %d, excused %d, recorded %d, want 20 each", j.Deferred, j.Excused, len(j.Attempts))
		}
		if j := wantState(t, f, ever, settle.Dead, 51); j.Reason != settle.EndDeferredOut {
			t.Errorf("ended %s, want deferred_out", j.Reason)
		}
	})
}

func TestB016FailingJobsDoNotKeepTheFront(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4}))
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			time.Sleep(10 * time.Millisecond)
			if j.Tenant == "bad" {
				return errors.New("always")
			}
			return nil
		})
		var bad []settle.ID
		for range 8 {
			bad = append(bad, f.put(t, "k", settle.EnqueueOpts{Tenant: "bad", Policy: &settle.Policy{Attempts: 25}}))
		}
		for range 200 {
			f.put(t, "k", settle.EnqueueOpts{Tenant: "good"})
		}
		stop := start(t, w)
		good := func() int { return f.count(func(j settle.Job) bool { return j.State == settle.Succeeded }) }
		for good() < 200 {
			nap(10 * time.Millisecond)
		}
		used := 0
		for _, id := range bad {
			used += f.get(t, id).Attempt
		}
		if used >= 3*len(bad) {
			t.Errorf("the failing jobs used %d attempts before all good ones had run", used)
		}
		stop()
	})
}

func TestB017ATenantThatFloodsDelaysNobody(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4}))
		var done tape[string]
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			time.Sleep(time.Second)
			done.add(j.Tenant)
			return nil
		})
		for range 1000 {
			f.put(t, "k", settle.EnqueueOpts{Tenant: "A"})
		}
		stop := start(t, w)
		nap(10 * time.Second)
		before := len(done.all())
		for _, tenant := range []string{"B", "C", "D"} {
			f.put(t, "k", settle.EnqueueOpts{Tenant: tenant})
		}
		nap(3 * time.Second) // one handler and a turn
		others := 0
		for _, tenant := range done.all()[before:] {
			if tenant != "A" {
				others++
			}
		}
		if others != 3 {
			t.Errorf("%d of B, C and D ran within three handler times beside A's flood", others)
		}
		stop()
	})
}

func TestB017ALaneWithoutANudgeIsDiscovered(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4}))
		var done tape[string]
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			time.Sleep(time.Second)
			done.add(j.Tenant)
			return nil
		})
		for range 1000 {
			f.put(t, "k", settle.EnqueueOpts{Tenant: "A"})
		}
		stop := start(t, w)
		f.mute = true
		nap(5 * time.Second)
		f.put(t, "k", settle.EnqueueOpts{Tenant: "B"})
		nap(4 * time.Second)
		for _, tenant := range done.all() {
			if tenant == "B" {
				stop()
				return
			}
		}
		t.Error("B did not run beside A's flood")
		stop()
	})
}

func TestWithoutNudgesAPollFindsTheJobAndADueTimeIsMet(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		var began tape[time.Time]
		raw(w, "k", func(context.Context, *Job[[]byte]) error { began.add(time.Now()); return nil })
		stop := start(t, w)
		f.mute = true
		nap(time.Minute)
		put := time.Now()
		f.put(t, "k")
		f.put(t, "k", settle.EnqueueOpts{Delay: 5123 * time.Millisecond})
		nap(10 * time.Second)
		at := began.all()
		if len(at) != 2 || at[0].Sub(put) > time.Second {
			t.Fatalf("began %v after %v", at, put)
		}
		if late := at[1].Sub(put) - 5123*time.Millisecond; late < 0 || late > time.Millisecond {
			t.Errorf("the delayed job began %s after it was due", late)
		}
		stop()
	})
}

func TestAnIdleWorkerPollsNoMoreThanItSays(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Poll: 10 * time.Second}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, w)
		nap(10 * time.Minute)
		if n := f.called("claim"); n < 60 || n > 100 {
			t.Errorf("%d claims in 60 polls", n)
		}
		if n := f.called("lanes"); n > 1 {
			t.Errorf("%d discoveries while nothing was due", n)
		}
		stop()
	})
}

func TestOneClaimIsOnTheWireAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var onWire, most atomic.Int64
		f.hook(func(op string) error {
			if op == "claim" {
				most.Store(max(most.Load(), onWire.Add(1)))
				time.Sleep(10 * time.Millisecond)
				onWire.Add(-1)
			}
			return nil
		}, nil)
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { time.Sleep(time.Millisecond); return nil })
		for range 1000 {
			f.put(t, "k")
		}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if most.Load() != 1 {
			t.Errorf("%d claims at once", most.Load())
		}
	})
}

func TestQuickWorkIsClaimedAheadSlowWorkIsNot(t *testing.T) {
	for work, want := range map[time.Duration]bool{time.Millisecond: true, 10 * time.Second: false} {
		t.Run(work.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				f.hook(nil, func(op string) error {
					if op == "claim" {
						time.Sleep(20 * time.Millisecond)
					}
					return nil
				})
				w := New(f, quiet(Config{Slots: 4}))
				raw(w, "k", func(context.Context, *Job[[]byte]) error { time.Sleep(work); return nil })
				for range 3000 {
					f.put(t, "k")
				}
				stop := start(t, w)
				ahead := 0
				for range 500 {
					nap(time.Millisecond)
					ahead = max(ahead, w.Stats().Buffered)
				}
				if (ahead > 0) != want {
					t.Errorf("%d jobs claimed ahead", ahead)
				}
				stop()
			})
		})
	}
}

// crashTwice makes a job a suspect: with three crashes allowed it had two.
func crashTwice(t *testing.T, f *fake, kind string) settle.ID {
	t.Helper()
	id := f.put(t, kind, pol(settle.Policy{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}))
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[id]
	r.Attempt, r.Crashed, r.Suspect = 2, 2, true
	return id
}

func TestASuspectRunsAloneInItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 8}))
		var running atomic.Int64
		var suspects, normal atomic.Int64
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			n := running.Add(1)
			defer running.Add(-1)
			if j.Crashed == 2 {
				suspects.Add(1)
				for range 20 {
					if running.Load() != 1 || n != 1 {
						t.Error("a suspect does not run alone")
					}
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}
			normal.Add(1)
			time.Sleep(time.Second)
			return nil
		})
		for range 5 {
			crashTwice(t, f, "k")
		}
		for range 2000 {
			f.put(t, "k")
		}
		stop := start(t, w)
		nap(time.Minute)
		if suspects.Load() != 5 {
			t.Errorf("%d suspects ran in a minute beside a full queue, want all 5", suspects.Load())
		}
		if normal.Load() < 8*60/3 {
			t.Errorf("only %d normal jobs ran in a minute beside suspects", normal.Load())
		}
		stop()
	})
}

func TestASuspectIsNotStarvedByLongWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4}))
		var ran, normal atomic.Int64
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			if j.Crashed == 2 {
				ran.Add(1)
			} else {
				normal.Add(1)
				time.Sleep(3 * time.Minute)
			}
			return nil
		})
		crashTwice(t, f, "k")
		for range 1000 {
			f.put(t, "k")
		}
		stop := start(t, w)
		nap(time.Hour)
		if ran.Load() != 1 {
			t.Error("the suspect waits for ever")
		}
		if normal.Load() < 4*20/3 {
			t.Errorf("%d normal jobs ran in an hour", normal.Load())
		}
		nap(time.Minute)
		go stop()
		nap(10 * time.Minute)
		stop()
	})
}

func TestUntilIdleRunsSuspectsToo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		var ids []settle.ID
		for range 20 {
			ids = append(ids, crashTwice(t, f, "k"))
		}
		began := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			wantState(t, f, id, settle.Succeeded, 3)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("twenty quick suspects took %s", d)
		}
	})
}

func TestSuspectsThatCannotBeHadAreNoHotLoop(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		crashTwice(t, f, "k")
		held := &noSuspects{f}
		w := New(held, quiet(Config{}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, w)
		nap(time.Minute)
		if n := f.called("claim"); n > 300 {
			t.Errorf("%d claims in a minute", n)
		}
		stop()
		idle := New(held, quiet(Config{UntilIdle: true}))
		raw(idle, "k", func(context.Context, *Job[[]byte]) error { return nil })
		if err := idle.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// noSuspects says that suspects wait, and gives none: their lane is held.
type noSuspects struct{ *fake }

func (s *noSuspects) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	if r.Suspects {
		r.Kinds = nil
	}
	return s.fake.Claim(ctx, r)
}

func TestUntilIdleEndsTheLeaseOfADeadProcessFirst(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		id := f.put(t, "k", pol(settle.Policy{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}))
		crash(t, f, "k")
		nap(time.Minute)
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j := f.get(t, id); j.State == settle.Running {
			t.Error("a cron job that is shorter than the grace never recovers a crash")
		}
	})
}

func TestB042AStoreThatIsFullForTenMinutes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		logs := &countingHandler{}
		var down tape[string]
		var stops tape[bool]
		w := New(f, Config{Logger: newLogger(logs), Events: Events{
			StoreDown: func(op string, err error, next time.Duration) {
				if !errors.Is(err, settle.ErrFull) || next <= 0 {
					t.Errorf("StoreDown(%s, %v, %s)", op, err, next)
				}
				down.add(op)
			},
			Claiming: func(stopped bool, _ string) { stops.add(stopped) },
		}})
		runs := 0
		release := make(chan struct{})
		raw(w, "k", func(context.Context, *Job[[]byte]) error { runs++; <-release; return nil })
		id := f.put(t, "k", pol(settle.Policy{Timeout: time.Hour}))
		stop := start(t, w)
		f.hook(func(op string) error {
			switch op {
			case "claim", "apply", "insert":
				return fmt.Errorf("disk: %w", settle.ErrFull)
			}
			return nil
		}, nil)
		claims := f.called("claim")
		close(release)
		nap(10 * time.Minute)
		if n := f.called("claim") - claims; n > 80 {
			t.Errorf("%d claims in ten minutes of a full disk", n)
		}
		if n := f.called("apply"); n > 120 {
			t.Errorf("%d applies in ten minutes of a full disk", n)
		}
		if n := logs.n("store call failed"); n > 2*11 {
			t.Errorf("%d alarms in ten minutes, want one a minute and operation", n)
		}
		if w.Stats().Unsettled != 1 {
			t.Errorf("the outcome is not kept: %+v", w.Stats())
		}
		if _, err := f.Insert(t.Context(), settle.New{Kind: "k"}); !errors.Is(err, settle.ErrFull) {
			t.Errorf("enqueue: %v", err)
		}
		f.hook(nil, nil)
		nap(15 * time.Second)
		wantState(t, f, id, settle.Succeeded, 1)
		if runs != 1 {
			t.Errorf("the handler ran %d times", runs)
		}
		after := f.put(t, "k")
		nap(time.Second)
		wantState(t, f, after, settle.Succeeded, 1)
		if s := stops.all(); len(s) != 2 || !s[0] || s[1] {
			t.Errorf("Claiming was told %v, want a stop and a start", s)
		}
		stop()
	})
}

func TestB042AWorkerThatStartsWhileTheStoreIsFullResumesByItself(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		id := f.put(t, "k")
		f.hook(func(string) error { return settle.ErrFull }, nil)
		w := New(f, quiet(Config{}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, w)
		nap(10 * time.Minute)
		f.hook(nil, nil)
		nap(backoffMax)
		wantState(t, f, id, settle.Succeeded, 1)
		stop()
	})
}

func TestAnOutcomeThatTheStoreCannotTakeHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Lease: 10 * time.Second}))
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error { return nil })
		bad := f.put(t, "k")
		f.reject = func(tr settle.Transition) error {
			if tr.Job == bad && tr.To == settle.Succeeded {
				return errors.New("this row cannot be stored")
			}
			return nil
		}
		stop := start(t, w)
		for range 200 {
			f.put(t, "k")
			nap(time.Second)
		}
		if n := f.count(func(j settle.Job) bool { return j.State == settle.Succeeded }); n < 190 {
			t.Errorf("%d of 200 good jobs succeeded beside the bad one", n)
		}
		if j := f.get(t, bad); len(j.Attempts) == 0 || j.Attempts[0].Reason != settle.AttemptWorkerLost {
			t.Errorf("the bad job is %s, %+v: want its lease to have run out", j.State, j.Attempts)
		}
		stop()
	})
}

func TestAnApplyWhoseReplyWasLostIsOfferedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var said tape[settle.Applied]
		lost := false
		f.hook(nil, func(op string) error {
			if op == "apply" && !lost {
				lost = true
				return errDown
			}
			return nil
		})
		w := New(f, quiet(Config{Limit: 1, Events: Events{Settled: func(s Settled) { said.add(s.Applied) }}}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		id := f.put(t, "k")
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantState(t, f, id, settle.Succeeded, 1)
		if s := said.all(); len(s) != 1 || s[0] != settle.Already || w.Stats().Stale != 0 {
			t.Errorf("said %v, stale %d", s, w.Stats().Stale)
		}
	})
}
