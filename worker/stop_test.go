package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestRunReportsAllFaultsAtOnceAndClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: -1, Lease: time.Millisecond, Limit: -2}))
		raw(w, "k", nil)
		raw(w, "k", nil)
		HandleBatch(w, settle.Define[int, int]("b", settle.Policy{}), BatchOpts{Max: -1}, nil)
		err := w.Run(t.Context())
		for _, want := range []string{"Slots is -1", "Lease is 1ms", "Limit is -2", `kind "k" has two handlers`, `kind "b"`} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
		if f.called("claim")+f.called("overdue") != 0 {
			t.Error("a worker with faults used the store")
		}
	})
}

func TestASecondRunBesideTheFirstIsAnErrorALaterOneIsNot(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, w)
		if err := w.Run(t.Context()); err == nil {
			t.Error("two Runs at once")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		id := f.put(t, "k")
		stop = start(t, w)
		if err := stop(); err != nil {
			t.Error(err)
		}
		wantState(t, f, id, settle.Succeeded, 1)
	})
}

func TestLimitStartsExactlySoManyAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		for range 20 {
			f.put(t, "k")
		}
		w := New(f, quiet(Config{Limit: 7, Slots: 3}))
		var ran atomic.Int64
		raw(w, "k", func(context.Context, *Job[[]byte]) error { ran.Add(1); time.Sleep(time.Second); return nil })
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := f.count(func(j settle.Job) bool { return j.State == settle.Pending && j.Attempt == 0 }); ran.Load() != 7 || left != 13 {
			t.Errorf("%d ran, %d untouched, want 7 and 13", ran.Load(), left)
		}
	})
}

func TestUntilIdleRunsEndHooksAndLeavesWhatIsDueLater(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		raw(w, "after", func(context.Context, *Job[[]byte]) error { return nil })
		f.put(t, "k", pol(settle.Policy{OnEnd: "after"}))
		later := f.put(t, "k", settle.EnqueueOpts{Delay: time.Hour})
		began := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("Run took %s", d)
		}
		wantState(t, f, later, settle.Pending, 0)
		if n := f.count(func(j settle.Job) bool { return j.Kind == "after" && j.State == settle.Succeeded }); n != 1 {
			t.Errorf("%d end hooks ran, want 1", n)
		}
	})
}

func TestStopEndsClaimingAndLetsRunningWorkEnd(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var why string
		w := New(f, quiet(Config{Slots: 1, Events: Events{Claiming: func(stopped bool, s string) { why = s }}}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { time.Sleep(time.Minute); return nil })
		first, second := f.put(t, "k"), f.put(t, "k")
		done := make(chan error)
		go func() { done <- w.Run(t.Context()) }()
		nap(time.Second)
		w.Stop("too many dead")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantState(t, f, first, settle.Succeeded, 1)
		wantState(t, f, second, settle.Pending, 0)
		if why != "too many dead" {
			t.Errorf("why = %q", why)
		}
	})
}

func TestStopBeforeRunClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		id := f.put(t, "k")
		w.Stop("never mind")
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j := f.get(t, id); j.State != settle.Pending || j.Charged() != 0 {
			t.Errorf("job is %s, charged %d", j.State, j.Charged())
		}
	})
}

func TestAWorkerThatOnlyLivesForSecondsPrunesToo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.called("prune") != 1 || f.called("overdue") == 0 {
			t.Errorf("%d prunes, %d sweeps", f.called("prune"), f.called("overdue"))
		}
	})
}

func TestAWorkerWithoutKindsSweepsAndEnds(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		id := f.put(t, "k", settle.EnqueueOpts{Deadline: time.Second})
		nap(2 * time.Second)
		if err := New(f, quiet(Config{UntilIdle: true})).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantState(t, f, id, settle.Dead, 0)
	})
}
