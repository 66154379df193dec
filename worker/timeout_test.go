package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

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
		p := settle.Policy{Timeout: 5 * time.Second, BackoffMin: 480 * time.Hour, BackoffMax: 480 * time.Hour}
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
		if s := w.Stats(); s.Abandoned != 0 || s.Late != 2 || s.Stale != 0 || s.Unsettled != 0 || ctxErr.Load() != 2 {
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

func TestP1RenewalNeverExtendsTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Lease: 3 * time.Second}))
		var ran tape[time.Duration]
		raw(w, "k", func(ctx context.Context, _ *Job[[]byte]) error {
			began := time.Now()
			<-ctx.Done()
			ran.add(time.Since(began))
			return ctx.Err()
		})
		id := f.put(t, "k", pol(settle.Policy{Timeout: 10 * time.Second, BackoffMin: time.Hour, BackoffMax: time.Hour}))
		stop := start(t, w)
		nap(30 * time.Second)
		if d := ran.all(); len(d) != 1 || d[0] != 10*time.Second {
			t.Errorf("the context ended after %v, want once after 10s", d)
		}
		if n := f.called("renew"); n < 5 {
			t.Errorf("%d renewals, want several within the timeout", n)
		}
		wantState(t, f, id, settle.Pending, 1)
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
