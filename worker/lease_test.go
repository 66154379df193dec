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

func TestACancelInThisProcessStopsTheHandlerAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 2}))
		var causes tape[error]
		raw(w, "k", func(ctx context.Context, _ *Job[[]byte]) error {
			<-ctx.Done()
			causes.add(context.Cause(ctx))
			return ctx.Err()
		})
		id := f.put(t, "k")
		f.put(t, "k") // goes on
		stop := start(t, w)
		nap(3 * time.Second)
		renewals := f.called("renew")
		if _, err := settle.NewClient(f).Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		nap(time.Millisecond)
		if got := causes.all(); len(got) != 1 || !errors.Is(got[0], ErrLeaseLost) {
			t.Errorf("causes %v", got)
		}
		if n := f.called("renew") - renewals; n != 1 {
			t.Errorf("%d renewals for one hint", n)
		}
		stop()
		wantState(t, f, id, settle.Cancelled, 1)
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
