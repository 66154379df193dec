package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestB004WorkIsNotClaimedBeforeASlotIsFree(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 1, Lease: 10 * time.Second}))
		var handlers atomic.Int64
		raw(w, "k", func(context.Context, *Job[[]byte]) error {
			handlers.Add(1)
			defer handlers.Add(-1)
			time.Sleep(8 * time.Second)
			return nil
		})
		var ids []settle.ID
		for range 5 {
			ids = append(ids, f.put(t, "k"))
		}
		stop := start(t, w)
		for range 450 {
			nap(100 * time.Millisecond)
			renewed := f.count(func(j settle.Job) bool { return j.State == settle.Running && j.Alarm.After(time.Now()) })
			if owned := f.owned(w.ID()); owned > int(handlers.Load())+renewed || owned > 1 {
				t.Fatalf("%d rows run, %d handlers, %d leases", owned, handlers.Load(), renewed)
			}
		}
		stop()
		for _, id := range ids {
			wantState(t, f, id, settle.Succeeded, 1)
		}
	})
}

func TestB004BufferedWorkIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		// 300 quick jobs make the worker claim ahead over a slow link; then come slow ones.
		f.hook(nil, func(op string) error {
			if op == "claim" {
				time.Sleep(200 * time.Millisecond)
			}
			return nil
		})
		w := New(f, quiet(Config{Slots: 2, Lease: 3 * time.Second, Drain: time.Minute}))
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			if j.Tenant == "slow" {
				time.Sleep(4 * time.Second)
			} else {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		for range 300 {
			f.put(t, "k")
		}
		for range 10 {
			f.put(t, "k", settle.EnqueueOpts{Tenant: "slow", Delay: time.Second})
		}
		stop := start(t, w)
		nap(time.Minute)
		stop()
		if n := f.count(func(j settle.Job) bool { return j.State == settle.Succeeded && j.Attempt == 1 }); n != 310 {
			t.Errorf("%d jobs succeeded in one attempt, want 310", n)
		}
		if n := w.Stats().LeaseLost; n != 0 {
			t.Errorf("%d leases lost", n)
		}
	})
}

func TestB007ARenewalThatFailsStopsTheHandlerInTime(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		const lease = 10 * time.Second
		var live atomic.Int64 // handlers with a live context
		var cause error
		var ended time.Time
		handler := func(ctx context.Context, j *Job[[]byte]) error {
			if live.Add(1) > 1 {
				t.Error("two handlers run with live contexts")
			}
			if j.Attempt > 1 {
				live.Add(-1)
				return nil
			}
			<-ctx.Done()
			live.Add(-1)
			cause, ended = context.Cause(ctx), time.Now()
			return nil // a late success
		}
		var lost []settle.ClaimedJob
		var said []Settled
		cut := &link{fake: f}
		first := New(cut, quiet(Config{Lease: lease, Sweep: time.Hour, Events: Events{
			LeaseLost: func(j settle.ClaimedJob) { lost = append(lost, j) },
			Settled:   func(s Settled) { said = append(said, s) },
		}}))
		raw(first, "k", handler)
		id := f.put(t, "k", pol(settle.Policy{Timeout: time.Hour}))
		stopFirst := start(t, first)
		nap(lease) // renewed three times
		claimed := f.get(t, id).Alarm
		second := New(f, quiet(Config{Lease: lease, Poll: 100 * time.Millisecond, Sweep: 100 * time.Millisecond}))
		raw(second, "k", handler)
		stopSecond := start(t, second)
		cut.cutWith(down("renew", "claim", "overdue"))
		var over time.Time // when the lease was over
		for range 150 {
			if a := f.get(t, id); a.Attempt == 1 && a.State == settle.Running {
				over = a.Alarm
			}
			nap(100 * time.Millisecond)
		}
		cut.cutWith(down("claim"))
		nap(time.Minute)
		if !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("cause of the end: %v", cause)
		}
		if margin := over.Sub(ended); margin < lease/20 {
			t.Errorf("the handler's context ended %s before the lease, want a margin (renewed last for %s)", margin, claimed)
		}
		wantState(t, f, id, settle.Succeeded, 2)
		if len(lost) != 1 || first.Stats().LeaseLost != 1 {
			t.Errorf("LeaseLost was told %d times, counted %d", len(lost), first.Stats().LeaseLost)
		}
		stopFirst()
		stopSecond()
		if len(said) != 1 || said[0].Transition.To != settle.Pending || said[0].Transition.Record.Reason != settle.AttemptWorkerLost || first.Stats().Late != 1 {
			t.Errorf("the late success was settled as %+v", said)
		}
	})
}

func TestB007ALateSuccessIsRefusedAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var said []Settled
		w := New(f, quiet(Config{Lease: 10 * time.Second, Sweep: time.Hour, Events: Events{Settled: func(s Settled) { said = append(said, s) }}}))
		release := make(chan struct{})
		raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
			if j.Attempt == 1 {
				<-release
			}
			return nil
		})
		id := f.put(t, "k")
		stop := start(t, w)
		// Another process ends the lease and the job runs again.
		j := f.get(t, id)
		j.Fence = settle.Fence{Attempt: 1, State: settle.Running}
		f.Apply(t.Context(), []settle.Transition{j.Decide(settle.LeaseOver{}, 0, false)})
		close(release)
		nap(10 * time.Second)
		stop()
		wantState(t, f, id, settle.Succeeded, 2)
		if len(said) != 2 || said[0].Applied != settle.Stale || said[1].Applied != settle.Done || w.Stats().Stale != 1 {
			t.Errorf("settled %+v, stale %d", said, w.Stats().Stale)
		}
	})
}

func TestACancelledJobsHandlerIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		var cause error
		raw(w, "k", func(ctx context.Context, _ *Job[[]byte]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		id := f.put(t, "k")
		stop := start(t, w)
		if _, err := settle.NewClient(f).Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		nap(10 * time.Second)
		if !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("ten seconds after the cancel the cause is %v", cause)
		}
		stop()
		if j := wantState(t, f, id, settle.Cancelled, 1); len(j.Attempts) != 1 {
			t.Errorf("attempts %+v", j.Attempts)
		}
	})
}

func TestB009CancelDuringTheRunBeatsEveryAnswer(t *testing.T) {
	for name, answer := range map[string]error{"success": nil, "retry": errors.New("no"), "terminal": settle.Terminal(nil)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{}))
				release := make(chan struct{})
				raw(w, "k", func(context.Context, *Job[[]byte]) error { <-release; return answer })
				id := f.put(t, "k")
				stop := start(t, w)
				if _, err := settle.NewClient(f).Cancel(t.Context(), id, ""); err != nil {
					t.Fatal(err)
				}
				close(release)
				nap(time.Minute)
				stop()
				wantState(t, f, id, settle.Cancelled, 1)
			})
		})
	}
}

func TestB009CancelBetweenClaimAndStart(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		claimed, release := make(chan struct{}), make(chan struct{})
		f.hook(nil, func(op string) error {
			if op == "claim" && claimed != nil {
				close(claimed)
				claimed = nil
				<-release
			}
			return nil
		})
		w := New(f, quiet(Config{}))
		live := false
		raw(w, "k", func(ctx context.Context, _ *Job[[]byte]) error { live = ctx.Err() == nil; return nil })
		wait := claimed
		id := f.put(t, "k")
		stop := start(t, w)
		<-wait
		if _, err := settle.NewClient(f).Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		nap(2 * time.Second)
		close(release)
		nap(time.Second)
		stop()
		wantState(t, f, id, settle.Cancelled, 1)
		if live {
			t.Error("the handler was started with a live context after the cancel had been acknowledged")
		}
	})
}

func TestALeaseThatRanOutOnTheWireIsNeverStarted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		slow := true
		f.hook(nil, func(op string) error {
			if op == "claim" && slow {
				slow = false
				time.Sleep(9500 * time.Millisecond)
			}
			return nil
		})
		f.before = func(op string) error {
			if op == "renew" && f.called("claim") == 1 {
				return errDown // nor can it be verified
			}
			return nil
		}
		w := New(f, quiet(Config{Lease: 10 * time.Second, Sweep: 100 * time.Millisecond}))
		var attempts []int
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error { attempts = append(attempts, j.Attempt); return nil })
		id := f.put(t, "k")
		stop := start(t, w)
		nap(time.Minute)
		stop()
		wantState(t, f, id, settle.Succeeded, 2)
		if len(attempts) != 1 || attempts[0] != 2 {
			t.Errorf("handlers ran for attempts %v, want 2 alone", attempts)
		}
	})
}

func TestB018HandlersThatHangLoseTheirSlot(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		release := make(chan struct{})
		var told tape[int]
		w := New(f, quiet(Config{Slots: 2, Events: Events{Abandoned: func(_ settle.ClaimedJob, n int) { told.add(n) }}}))
		var ctxErr atomic.Int64
		raw(w, "hang", func(ctx context.Context, _ *Job[[]byte]) error {
			<-release
			if errors.Is(context.Cause(ctx), ErrTimedOut) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				ctxErr.Add(1)
			}
			return nil
		})
		var ranAt time.Time
		raw(w, "good", func(context.Context, *Job[[]byte]) error { ranAt = time.Now(); return nil })
		p := settle.Policy{Timeout: 5 * time.Second, BackoffMin: 10 * time.Minute, BackoffMax: 10 * time.Minute}
		began := time.Now()
		a, b := f.put(t, "hang", pol(p)), f.put(t, "hang", pol(p))
		good := f.put(t, "good")
		stop := start(t, w)
		nap(5*time.Second + abandonAfter + time.Second)
		for _, id := range []settle.ID{a, b} {
			j := wantState(t, f, id, settle.Pending, 1)
			if len(j.Attempts) != 1 || j.Attempts[0].Reason != settle.AttemptTimedOut {
				t.Errorf("attempts %+v, want timed_out", j.Attempts)
			}
		}
		wantState(t, f, good, settle.Succeeded, 1)
		if d := ranAt.Sub(began); d > 5*time.Second+abandonAfter+time.Second {
			t.Errorf("the good job ran after %s", d)
		}
		if s := w.Stats(); s.Abandoned != 2 || s.AbandonedEver != 2 || len(told.all()) != 2 {
			t.Errorf("stats %+v, told %v", s, told.all())
		}
		close(release) // their late successes are dropped
		nap(time.Second)
		if s := w.Stats(); s.Abandoned != 0 || s.Late != 2 || ctxErr.Load() != 2 {
			t.Errorf("stats %+v, contexts ended %d", s, ctxErr.Load())
		}
		wantState(t, f, a, settle.Pending, 1)
		stop()
	})
}

func TestB018MoreAbandonedThanSlotsStopsClaimingUntilTheyReturn(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		release := make(chan struct{})
		var stops []bool
		w := New(f, quiet(Config{Slots: 1, Events: Events{Claiming: func(stopped bool, _ string) { stops = append(stops, stopped) }}}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { <-release; return nil })
		p := pol(settle.Policy{Timeout: time.Second, Attempts: 1})
		for range 5 {
			f.put(t, "k", p)
		}
		stop := start(t, w)
		nap(time.Minute)
		if n := f.count(func(j settle.Job) bool { return j.State == settle.Pending }); n != 3 {
			t.Errorf("%d jobs were left alone, want 3", n)
		}
		if len(stops) != 1 || !stops[0] {
			t.Errorf("Claiming was told %v, want one stop", stops)
		}
		close(release)
		nap(time.Minute)
		if n := f.count(func(j settle.Job) bool { return j.State == settle.Succeeded }); n != 3 {
			t.Errorf("%d jobs succeeded after the handlers returned, want 3", n)
		}
		if len(stops) != 2 || stops[1] {
			t.Errorf("Claiming was told %v, want a stop and a start", stops)
		}
		stop()
	})
}

func TestAHandlerThatReturnsAtItsTimeoutTimedOut(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Limit: 2}))
		raw(w, "ctx", func(ctx context.Context, _ *Job[[]byte]) error { <-ctx.Done(); return ctx.Err() })
		raw(w, "own", func(ctx context.Context, _ *Job[[]byte]) error { <-ctx.Done(); return errors.New("signal: killed") })
		p := pol(settle.Policy{Timeout: time.Second, BackoffMin: time.Hour, BackoffMax: time.Hour})
		a, b := f.put(t, "ctx", p), f.put(t, "own", p)
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if x := wantState(t, f, a, settle.Pending, 1).Attempts[0]; x.Reason != settle.AttemptTimedOut {
			t.Errorf("%+v", x)
		}
		if x := wantState(t, f, b, settle.Pending, 1).Attempts[0]; x.Reason != settle.AttemptTimedOut || x.Error != "signal: killed" {
			t.Errorf("%+v", x)
		}
	})
}

func TestTheDeadlineEndsAnAttemptToo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		var cause error
		raw(w, "k", func(ctx context.Context, _ *Job[[]byte]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		id := f.put(t, "k", settle.EnqueueOpts{Deadline: 3 * time.Second})
		stop := start(t, w)
		nap(20 * time.Second)
		stop()
		if j := wantState(t, f, id, settle.Dead, 1); j.Reason != settle.EndExpired || !errors.Is(cause, ErrExpired) {
			t.Errorf("ended %s, cause %v", j.Reason, cause)
		}
	})
}
