package worker

import (
	"context"
	"errors"
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
		f.mute.Store(true)
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
		f.mute.Store(true)
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
