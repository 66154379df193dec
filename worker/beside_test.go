package worker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// parks registers a handler that waits for a node, and succeeds with its result.
func parks(w *Worker, kind string, wait settle.Wait) {
	HandleRaw(w, kind, func(_ context.Context, j *Job[[]byte]) ([]byte, error) {
		if len(j.Steps) > 0 {
			return j.Steps[0].Output, nil
		}
		return nil, Report(settle.Parked{Wait: wait})
	})
}

func TestP9WhatALastLookDeliversWinsOverTheSweep(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var told tape[Settled]
		var looks tape[settle.Job]
		w := New(f, quiet(Config{Events: Events{Settled: func(s Settled) {
			if s.By == bySweep {
				told.add(s)
			}
		}}}))
		parks(w, "k", waitA)
		w.LastLook(func(ctx context.Context, over []settle.Job) {
			for _, j := range over {
				looks.add(j)
				if said := f.deliver(ctx, j.ID, result); said != settle.Done {
					t.Errorf("the last look's delivery: %s", said)
				}
			}
		})
		id := f.put(t, "k", pol(settle.Policy{Wait: time.Minute, StepAttempts: 1}))
		stop := start(t, w)
		nap(50 * time.Second)
		if len(looks.all()) != 0 {
			t.Error("nothing is over, and it is looked for")
		}
		nap(time.Minute)
		if j := wantState(t, f, id, settle.Succeeded, 2); len(j.Attempts) != 0 {
			t.Errorf("recorded %+v", j.Attempts)
		}
		if got := looks.all(); len(got) != 1 || got[0].ID != id || got[0].Wait == nil || got[0].Wait.Ticket != ticketA {
			t.Errorf("looked for %+v", got)
		}
		if got := told.all(); len(got) != 1 || got[0].Applied != settle.Stale {
			t.Errorf("the sweep was told %+v, want one stale", got)
		}
		stop()
	})
}

func TestALastLookThatFindsNothingEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		order := tape[string]{}
		w := New(f, quiet(Config{}))
		parks(w, "k", waitA)
		for _, name := range []string{"first", "second"} {
			w.LastLook(func(context.Context, []settle.Job) { order.add(name) })
		}
		id := f.put(t, "k", pol(settle.Policy{Wait: time.Minute, StepAttempts: 1}))
		stop := start(t, w)
		nap(70 * time.Second)
		if j := wantState(t, f, id, settle.Dead, 1); j.Attempts[0].Reason != settle.AttemptNoResult {
			t.Errorf("recorded %+v", j.Attempts)
		}
		if got := order.all(); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("looks %v", got)
		}
		stop()
	})
}

func TestALastLookIsForWaitsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		w.LastLook(func(_ context.Context, over []settle.Job) { t.Errorf("looked for %+v", over) })
		f.put(t, "k", settle.EnqueueOpts{Deadline: 10 * time.Second})
		lost := f.put(t, "lost")
		crash(t, f, "lost")
		f.befalls(t.Context(), lost, settle.Submitting{Wait: waitA})
		stop := start(t, w)
		nap(time.Minute)
		wantState(t, f, lost, settle.Pending, 1)
		stop()
	})
}

// A sign of life that the last look brings keeps the wait open.
func TestALastLookThatFindsProgressKeepsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		wait := waitA
		wait.Silence = time.Minute
		w := New(f, quiet(Config{}))
		parks(w, "k", wait)
		w.LastLook(func(ctx context.Context, over []settle.Job) {
			f.befalls(ctx, over[0].ID, settle.Progressed{Ticket: ticketA})
		})
		id := f.put(t, "k", pol(settle.Policy{Wait: time.Hour, StepAttempts: 1}))
		stop := start(t, w)
		nap(10 * time.Minute)
		wantState(t, f, id, settle.Awaiting, 1)
		nap(time.Hour)
		wantState(t, f, id, settle.Dead, 1)
		stop()
	})
}

// Looks that hang hold no end up beyond what ends_by allows, however many waits
// end at once.
func TestP1LastLooksThatHangHoldNoEndUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4000}))
		parks(w, "k", waitB)
		hung := 0
		w.LastLook(func(ctx context.Context, _ []settle.Job) { hung++; <-ctx.Done() })
		began := time.Now()
		for range 5 * sweepPage {
			f.put(t, "k", settle.EnqueueOpts{Deadline: time.Minute})
		}
		stop := start(t, w)
		nap(time.Minute + settle.SweepInterval + settle.RenewInterval)
		if n := f.count(func(j settle.Job) bool { return j.State != settle.Dead }); n != 0 || hung == 0 {
			t.Errorf("%d jobs are live %s after they began; %d looks", n, time.Since(began), hung)
		}
		stop()
	})
}

func TestWhatIsBesideLivesUntilTheLastJobIsSettled(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Drain: 20 * time.Second}))
		var at []string
		raw(w, "k", func(ctx context.Context, _ *Job[[]byte]) error {
			time.Sleep(15 * time.Second)
			at = append(at, "handler")
			return nil
		})
		live := false
		w.Beside(func(ctx context.Context) {
			live = true
			<-ctx.Done()
			at = append(at, "beside")
			if j := f.count(func(j settle.Job) bool { return j.State == settle.Succeeded }); j != 1 {
				t.Error("its context ended before the last job was settled")
			}
			time.Sleep(time.Second)
			at = append(at, "over")
		})
		w.Beside(func(context.Context) {}) // one that ends by itself ends nothing
		id := f.put(t, "k")
		stop := start(t, w)
		nap(5 * time.Second)
		if !live {
			t.Error("it has not begun with Run")
		}
		f.hook(func(op string) error { // the store hesitates with the last outcome
			if op == "apply" {
				time.Sleep(3 * time.Second)
			}
			return nil
		}, nil)
		if err := stop(); err != nil {
			t.Error(err)
		}
		wantState(t, f, id, settle.Succeeded, 1)
		if !slices.Equal(at, []string{"handler", "beside", "over"}) {
			t.Errorf("the order was %v", at)
		}
	})
}

func TestListenersAreToldAfterTheConfigs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var told []string
		says := func(name string) Events {
			return Events{Started: func(settle.ClaimedJob) { told = append(told, name+" started") },
				Settled: func(Settled) { told = append(told, name+" settled") }}
		}
		w := New(f, quiet(Config{Limit: 1, Events: says("config")}))
		w.Listen(says("one"))
		w.Listen(Events{})
		w.Listen(says("two"))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return errors.New("no") })
		f.put(t, "k")
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"config started", "one started", "two started", "config settled", "one settled", "two settled"}; !slices.Equal(told, want) {
			t.Errorf("told %v", told)
		}
	})
}
