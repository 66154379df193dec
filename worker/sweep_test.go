package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/jump"
)

// crash makes a job look as if a worker had claimed it and died.
func crash(t *testing.T, f *fake, kind string) {
	t.Helper()
	got, err := f.Claim(t.Context(), settle.ClaimReq{Queue: "default", Kinds: []string{kind}, Limit: 1, Lease: 10 * time.Second, Worker: 99})
	if err != nil || len(got.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(got.Jobs), err)
	}
}

func TestB003ASweepNeedsNoHandlerOfTheKind(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		b1 := f.put(t, "b")
		crash(t, f, "b")
		p1 := New(f, quiet(Config{}))
		raw(p1, "a", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, p1)
		nap(40 * time.Second) // many recovery passes
		j := wantState(t, f, b1, settle.Pending, 1)
		if len(j.Attempts) != 1 || j.Attempts[0].Reason != settle.AttemptWorkerLost || j.Crashed != 1 {
			t.Errorf("attempts %+v, crashed %d", j.Attempts, j.Crashed)
		}
		for _, r := range f.claims[1:] {
			for _, kind := range r.Kinds {
				if kind != "a" {
					t.Errorf("P1 claims kind %q", kind)
				}
			}
		}
		p2 := New(f, quiet(Config{}))
		raw(p2, "b", func(context.Context, *Job[[]byte]) error { return nil })
		stop2 := start(t, p2)
		nap(time.Minute)
		wantState(t, f, b1, settle.Succeeded, 2)
		stop()
		stop2()
	})
}

func TestB005ALeaseThatRanOutFollowsTheBudget(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "other", func(context.Context, *Job[[]byte]) error { return nil })
		first := f.put(t, "k", pol(settle.Policy{Attempts: 5, Crashes: 5, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}))
		stop := start(t, w)
		for n := range 2 {
			crash(t, f, "k")
			nap(30 * time.Second)
			wantState(t, f, first, settle.Pending, n+1)
		}
		last := New(f, quiet(Config{UntilIdle: true}))
		raw(last, "k", func(context.Context, *Job[[]byte]) error { return nil })
		if err := last.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantState(t, f, first, settle.Succeeded, 3)
		second := f.put(t, "k", pol(settle.Policy{Attempts: 2, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}))
		for range 2 {
			got, err := f.Claim(t.Context(), settle.ClaimReq{Queue: "default", Kinds: []string{"k"}, Limit: 1, Lease: 10 * time.Second, Worker: 99})
			if err != nil || len(got.Jobs) != 1 {
				t.Fatalf("claimed %d, %v", len(got.Jobs), err)
			}
			nap(30 * time.Second)
		}
		j := wantState(t, f, second, settle.Dead, 2)
		if j.Attempts[1].Reason != settle.AttemptWorkerLost || j.Attempts[1].Error == "" {
			t.Errorf("last attempt %+v, want worker_lost and a text", j.Attempts[1])
		}
		stop()
	})
}

func TestB006ARenewalBetweenLookAndActWins(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		id := f.put(t, "k")
		crash(t, f, "k")
		nap(11 * time.Second)
		f.hook(nil, func(op string) error {
			if op == "overdue" { // the holder is alive after all
				f.Renew(context.Background(), 99, []settle.Held{{Job: id, Attempt: 1}}, 10*time.Second)
			}
			return nil
		})
		w := New(f, quiet(Config{}))
		stop := start(t, w)
		nap(30 * time.Second)
		wantState(t, f, id, settle.Running, 1)
		stop()
	})
}

func TestP1DeadlinesAndWaitsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "park", func(context.Context, *Job[[]byte]) error {
			return Report(settle.Parked{Wait: settle.Wait{Ticket: settle.NewID(), Step: "s"}})
		})
		nobody := f.put(t, "nobody", settle.EnqueueOpts{Deadline: time.Minute})
		parked := f.put(t, "park", pol(settle.Policy{Wait: time.Minute, StepAttempts: 1}))
		began := time.Now()
		stop := start(t, w)
		nap(time.Minute + settle.SweepInterval + settle.RenewInterval)
		if j := wantState(t, f, nobody, settle.Dead, 0); j.Reason != settle.EndExpired || j.EndedAt.Sub(began) < time.Minute {
			t.Errorf("%s after %s", j.Reason, j.EndedAt.Sub(began))
		}
		if j := wantState(t, f, parked, settle.Dead, 1); j.Attempts[0].Reason != settle.AttemptNoResult {
			t.Errorf("%+v", j.Attempts)
		}
		stop()
	})
}

func TestP4ARowThatCannotBeMovedHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		bad := f.put(t, "k", settle.EnqueueOpts{Deadline: time.Second})
		var good []settle.ID
		for range 700 { // more than a page
			good = append(good, f.put(t, "k", settle.EnqueueOpts{Deadline: time.Second}))
		}
		f.reject = func(tr settle.Transition) error {
			if tr.Job == bad {
				return errors.New("this row cannot be moved")
			}
			return nil
		}
		var faults tape[string]
		w := New(f, quiet(Config{Events: Events{StoreDown: func(op string, err error, _ time.Duration) { faults.add(op + ": " + err.Error()) }}}))
		stop := start(t, w)
		nap(3 * settle.SweepInterval)
		for _, id := range good {
			if j := f.get(t, id); j.State != settle.Dead {
				t.Fatalf("a good row is %s", j.State)
			}
		}
		wantState(t, f, bad, settle.Pending, 0)
		if len(faults.all()) == 0 {
			t.Error("nobody was told of the bad row")
		}
		stop()
	})
}

// Rows that are not to be ended yet, because the clock has jumped, stand in
// front for ten minutes: more than a page of them.
func TestP4RowsThatMustWaitHoldNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		stop := start(t, w)
		nap(time.Minute)
		for range sweepPage + 100 {
			f.put(t, "nobody", settle.EnqueueOpts{Deadline: 24 * time.Hour})
		}
		f.jumpClock(48 * time.Hour)
		lost := f.put(t, "k")
		crash(t, f, "k")
		nap(time.Minute)
		wantState(t, f, lost, settle.Pending, 1)
		stop()
	})
}

// Three neighbours look like a store that is down: the sweep of the page ends
// there. What stands behind them must have its turn all the same.
func TestP4RowsThatCannotBeMovedHoldNobodyUp(t *testing.T) {
	for name, bad := range map[string]int{"three neighbours": 3, "a whole page": sweepPage, "more than a page": sweepPage + 50} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				stuck := map[settle.ID]bool{}
				for range bad {
					stuck[f.put(t, "k", settle.EnqueueOpts{Deadline: time.Second})] = true
				}
				var good []settle.ID
				for range 100 {
					good = append(good, f.put(t, "k", settle.EnqueueOpts{Deadline: time.Second}))
				}
				f.reject = func(tr settle.Transition) error {
					if stuck[tr.Job] {
						return errors.New("this row cannot be moved")
					}
					return nil
				}
				w := New(f, quiet(Config{}))
				stop := start(t, w)
				nap(time.Hour)
				for _, id := range good {
					if j := f.get(t, id); j.State != settle.Dead {
						t.Fatalf("a good row behind %d bad ones is %s", bad, j.State)
					}
				}
				stop()
			})
		})
	}
}

func TestP13AStoreThatComesBackGivesLivingWorkersOneRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Lease: 10 * time.Second}))
		stop := start(t, w)
		nap(time.Minute)
		id := f.put(t, "k")
		crash(t, f, "k")
		f.hook(func(op string) error { return errDown }, nil) // 20 s of failover: the lease runs out
		nap(20 * time.Second)
		f.hook(nil, nil)
		back := time.Now()
		for f.get(t, id).State == settle.Running {
			nap(100 * time.Millisecond)
		}
		if d := time.Since(back); d < settle.RenewInterval || d > settle.RenewInterval+2*settle.SweepInterval+backoffMax {
			t.Errorf("the lease was ended %s after the store came back", d)
		}
		stop()
	})
}

func TestB059ASuspendedMachineGoesOnAfterWakeUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Lease: time.Minute}))
		var began time.Time
		raw(w, "due", func(context.Context, *Job[[]byte]) error { began = time.Now(); return nil })
		raw(w, "long", func(ctx context.Context, _ *Job[[]byte]) error { time.Sleep(5 * time.Minute); return nil })
		due := f.put(t, "due", settle.EnqueueOpts{Delay: 8 * time.Hour})
		long := f.put(t, "long")
		stop := start(t, w)
		nap(30 * time.Second)
		f.jumpClock(9 * time.Hour) // the wall clock went on, the process slept
		wake := time.Now()
		nap(time.Second)
		wantState(t, f, due, settle.Succeeded, 1)
		if d := began.Sub(wake); d > time.Second {
			t.Errorf("the due job began %s after the wake-up, want within one poll", d)
		}
		nap(20 * time.Second)
		if left := f.get(t, long).Alarm.Sub(f.get(t, long).Now); left <= 0 {
			t.Error("the running job was not renewed within one renewal interval")
		}
		nap(6 * time.Minute)
		wantState(t, f, long, settle.Succeeded, 1)
		stop()
	})
}

func TestB059RenewalDoesNotBringBackAnEndedAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Lease: time.Minute}))
		runs := 0
		raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
			if runs++; runs == 1 {
				<-ctx.Done()
			}
			return nil
		})
		id := f.put(t, "k")
		stop := start(t, w)
		j := f.get(t, id)
		j.Fence = settle.Fence{Attempt: 1, State: settle.Running}
		f.Apply(t.Context(), []settle.Transition{j.Decide(settle.LeaseOver{}, 0, false)})
		nap(2 * time.Minute)
		wantState(t, f, id, settle.Succeeded, 2)
		if w.Stats().LeaseLost != 1 {
			t.Errorf("stats %+v", w.Stats())
		}
		stop()
	})
}

func TestB060AClockThatIsAMonthAheadForAMinuteExpiresNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "long", func(ctx context.Context, _ *Job[[]byte]) error { time.Sleep(10 * time.Minute); return ctx.Err() })
		month := 30 * 24 * time.Hour
		var waiting []settle.ID
		for range 100 {
			waiting = append(waiting, f.put(t, "nobody", settle.EnqueueOpts{Delay: time.Hour, Deadline: 24 * time.Hour}))
		}
		long := f.put(t, "long")
		stop := start(t, w)
		nap(time.Minute)
		prunes := f.called("prune")
		f.jumpClock(month)
		nap(time.Minute)
		if f.called("prune") > prunes {
			t.Error("prunes by a clock that is a month ahead")
		}
		f.jumpClock(-month)
		nap(30 * time.Minute)
		for _, id := range waiting {
			wantState(t, f, id, settle.Pending, 0)
		}
		wantState(t, f, long, settle.Succeeded, 1)
		stop()
	})
}

func TestB060AClockThatIsSetAheadForGoodExpiresAfterTenMinutes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		id := f.put(t, "nobody", settle.EnqueueOpts{Deadline: 24 * time.Hour})
		stop := start(t, w)
		nap(time.Minute)
		prunes := f.called("prune")
		f.jumpClock(48 * time.Hour)
		nap(jump.Stand - time.Second)
		wantState(t, f, id, settle.Pending, 0)
		if n := f.called("prune") - prunes; n > 1 { // one may come before the sweep that notices
			t.Errorf("%d prunes by a time that has not stood for %s", n, jump.Stand)
		}
		nap(2 * settle.SweepInterval)
		wantState(t, f, id, settle.Dead, 0)
		nap(2 * prunePause)
		if n := f.called("prune") - prunes; n < 2 {
			t.Errorf("%d prunes after the time has stood", n)
		}
		stop()
	})
}

func TestB060AfterAClockWentBackDueJobsAreDueAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, w)
		nap(12 * time.Hour)
		for range 2500 { // more than one page; they are due, and nobody runs them yet
			f.put(t, "other")
		}
		nap(10 * time.Second)
		f.jumpClock(-8 * time.Hour)
		later := f.put(t, "k")
		nap(time.Second)
		wantState(t, f, later, settle.Succeeded, 1) // new jobs run at once
		nap(2 * settle.SweepInterval)
		if n := f.called("pull"); n != 3 {
			t.Errorf("pulled %d times, want three pages", n)
		}
		stop()
		late := New(f, quiet(Config{UntilIdle: true}))
		raw(late, "other", func(context.Context, *Job[[]byte]) error { return nil })
		if err := late.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := f.count(func(j settle.Job) bool { return j.State == settle.Succeeded }); n != 2501 {
			t.Errorf("%d jobs succeeded, want 2501", n)
		}
	})
}

func TestStatsShowTheStoresSkew(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		f.jumpClock(5 * time.Minute)
		stop := start(t, w)
		if d := w.Stats().Skew; d != 5*time.Minute {
			t.Errorf("skew %s, want 5m", d)
		}
		stop()
	})
}
