package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

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
