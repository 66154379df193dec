package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestAJobRunsAtOnceAndItsOutputIsStored(t *testing.T) {
	type in struct{ N int }
	double := settle.Define[in, int]("double", settle.Policy{})
	bubble(t, func(t *testing.T, f *fake) {
		var said []Settled
		w := New(f, quiet(Config{Events: Events{Settled: func(s Settled) { said = append(said, s) }}}))
		Handle(w, double, func(_ context.Context, j *Job[in]) (int, error) { return 2 * j.In.N, nil })
		stop := start(t, w)
		began := time.Now()
		c := settle.NewClient(f)
		id, err := double.Enqueue(t.Context(), c, in{21})
		if err != nil {
			t.Fatal(err)
		}
		out, err := double.Await(t.Context(), c, id)
		if out != 42 || err != nil || time.Since(began) > 10*time.Millisecond {
			t.Errorf("got %d, %v after %s", out, err, time.Since(began))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(said) != 1 || said[0].By != "holder" || said[0].Applied != settle.Done || said[0].Kind != "double" || said[0].Attempt != 1 {
			t.Errorf("Settled: %+v", said)
		}
		if s := w.Stats(); s.Started != 1 || s.Running+s.Buffered+s.Unsettled != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestP5EveryWayToAnswerHasItsOutcome(t *testing.T) {
	var none map[int]int
	cases := []struct {
		name   string
		answer func() error
		state  settle.State
		reason settle.AttemptReason
		end    settle.EndReason
		text   string
	}{
		{"nil", func() error { return nil }, settle.Succeeded, "", settle.EndOK, ""},
		{"error", func() error { return errors.New("no") }, settle.Pending, settle.AttemptError, "", "no"},
		{"wrapped terminal", func() error { return fmt.Errorf("x: %w", settle.Terminal(errors.New("gone"))) }, settle.Dead, settle.AttemptError, settle.EndTerminal, "gone"},
		{"Terminal(nil)", func() error { return settle.Terminal(nil) }, settle.Dead, settle.AttemptError, settle.EndTerminal, "terminal"},
		{"snooze", func() error { return settle.Snooze(time.Minute) }, settle.Pending, settle.AttemptSnoozed, "", ""},
		{"snooze beats a joined terminal", func() error { return errors.Join(settle.Terminal(nil), settle.Snooze(time.Minute)) }, settle.Pending, settle.AttemptSnoozed, "", ""},
		{"panic", func() error { panic("boom") }, settle.Pending, settle.AttemptPanic, "", "panic: boom (in worker.Test"},
		{"panic(nil)", func() error { panic(nil) }, settle.Pending, settle.AttemptPanic, "", "nil"},
		{"panic with an error", func() error { panic(errors.New("bad")) }, settle.Pending, settle.AttemptPanic, "", "bad"},
		{"nil map", func() error { none[1] = 1; return nil }, settle.Pending, settle.AttemptPanic, "", "nil map (in worker.Test"},
		{"goexit", func() error { runtime.Goexit(); return nil }, settle.Pending, settle.AttemptGoexit, "", "Goexit"},
		{"canceled without shutdown", func() error { return context.Canceled }, settle.Pending, settle.AttemptError, "", "canceled"},
		{"reported", func() error {
			return Report(settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptRefused, Error: "far end"}})
		}, settle.Dead, settle.AttemptRefused, settle.EndRefused, "far end"},
		{"reported deferral", func() error {
			return fmt.Errorf("x: %w", Report(settle.Deferred{Reason: settle.AttemptBusy, After: time.Minute}))
		}, settle.Pending, settle.AttemptBusy, "", ""},
		{"reported park", func() error { return Report(settle.Parked{Wait: settle.Wait{Ticket: settle.NewID(), Step: "s"}}) }, settle.Awaiting, "", "", ""},
		{"reported nonsense", func() error { return Report(settle.RedriveAsked{}) }, settle.Pending, settle.AttemptError, "", "RedriveAsked"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{Slots: 1, Limit: 1}))
				raw(w, "k", func(context.Context, *Job[[]byte]) error { return c.answer() })
				id := f.put(t, "k", pol(settle.Policy{BackoffMin: time.Hour, BackoffMax: time.Hour}))
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				j := wantState(t, f, id, c.state, 1)
				if j.Reason != c.end {
					t.Errorf("end %q, want %q", j.Reason, c.end)
				}
				switch {
				case c.reason == "" && len(j.Attempts) != 0:
					t.Errorf("attempts %+v, want none", j.Attempts)
				case c.reason != "" && (len(j.Attempts) != 1 || j.Attempts[0].Reason != c.reason || !strings.Contains(j.Attempts[0].Error, c.text)):
					t.Errorf("attempts %+v, want %s %q", j.Attempts, c.reason, c.text)
				}
			})
		})
	}
}

func TestP12ReportedTextIsMadeSafe(t *testing.T) {
	const raw1 = "\x1b[2Jpassword=hunter2-hunter2 in /home/ann/secret.txt"
	for name, ev := range map[string]settle.Event{
		"retry":    settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptError, Error: raw1}},
		"terminal": settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptRefused, Error: raw1}},
		"deferral": settle.Deferred{Reason: settle.AttemptBusy, After: time.Hour, Error: raw1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{Limit: 1}))
				raw(w, "k", func(context.Context, *Job[[]byte]) error { return Report(ev) })
				id := f.put(t, "k")
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := f.get(t, id).Attempts[0].Error
				for _, raw := range []string{"\x1b", "hunter2", "/home"} {
					if strings.Contains(got, raw) {
						t.Errorf("%q is stored, with %q", got, raw)
					}
				}
			})
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		var starts []time.Time
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			if starts = append(starts, time.Now()); j.Attempt == 1 {
				return settle.RetryAfter(7*time.Second, errors.New("later"))
			}
			return nil
		})
		id := f.put(t, "k")
		stop := start(t, w)
		nap(8 * time.Second)
		stop()
		wantState(t, f, id, settle.Succeeded, 2)
		if d := starts[1].Sub(starts[0]); d < 7*time.Second || d > 7100*time.Millisecond {
			t.Errorf("the second attempt began %s after the first, want 7s", d)
		}
	})
}

func TestASlotSurvivesEveryFault(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 1, UntilIdle: true}))
		raw(w, "panics", func(context.Context, *Job[[]byte]) error { panic(1) })
		raw(w, "exits", func(context.Context, *Job[[]byte]) error { runtime.Goexit(); return nil })
		var ran atomic.Int64
		raw(w, "good", func(context.Context, *Job[[]byte]) error { ran.Add(1); return nil })
		once := pol(settle.Policy{Attempts: 1})
		for range 20 {
			f.put(t, "panics", once)
			f.put(t, "exits", once)
			f.put(t, "good", once)
		}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		dead := f.count(func(j settle.Job) bool { return j.State == settle.Dead && j.Reason == settle.EndExhausted })
		if ran.Load() != 20 || dead != 40 {
			t.Errorf("%d good jobs ran and %d died, want 20 and 40", ran.Load(), dead)
		}
	})
}

func TestPayloadsThatAreNotTheKindsAreTerminalAfterTheAttempt(t *testing.T) {
	type in struct{ N int }
	number := settle.Define[in, any]("number", settle.Policy{})
	cases := []struct {
		input  string
		reason settle.AttemptReason
		end    settle.EndReason
	}{
		{`{"N":"text"}`, settle.AttemptUndecodable, settle.EndUndecodable},
		{`{"N":1} trailing`, settle.AttemptUndecodable, settle.EndUndecodable},
		{``, settle.AttemptUndecodable, settle.EndUndecodable},
		{`{"N":`, settle.AttemptUndecodable, settle.EndUndecodable},
		{`{"N":1}`, settle.AttemptOutput, settle.EndTerminal},
		{`{"N":2}`, settle.AttemptOutput, settle.EndTerminal},
	}
	for _, c := range cases {
		t.Run(c.input, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{UntilIdle: true}))
				Handle(w, number, func(_ context.Context, j *Job[in]) (any, error) {
					if j.In.N == 1 {
						return make(chan int), nil // cannot be encoded
					}
					return strings.Repeat("x", settle.MaxPayload), nil
				})
				got, _ := f.Insert(t.Context(), settle.New{Kind: "number", Input: []byte(c.input)})
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				j := wantState(t, f, got[0].ID, settle.Dead, 1)
				if j.Reason != c.end || len(j.Attempts) != 1 || j.Attempts[0].Reason != c.reason {
					t.Errorf("%s %+v, want %s %s", j.Reason, j.Attempts, c.end, c.reason)
				}
			})
		})
	}
}

func TestAKindWithoutInputTakesAnEmptyOne(t *testing.T) {
	tick := settle.Define[settle.None, settle.None]("tick", settle.Policy{})
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		Handle(w, tick, func(context.Context, *Job[settle.None]) (settle.None, error) { return settle.None{}, nil })
		got, _ := f.Insert(t.Context(), settle.New{Kind: "tick"})
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantState(t, f, got[0].ID, settle.Succeeded, 1)
	})
}
