package worker

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

var (
	ticketA = settle.DeriveID([]byte("ticket a"))
	ticketB = settle.DeriveID([]byte("ticket b"))
	waitA   = settle.Wait{Ticket: ticketA, Step: "s", Node: "n", Recall: true}
	waitB   = settle.Wait{Ticket: ticketB, Step: "s", Node: "m"}
	slow    = settle.Policy{Timeout: 5 * time.Second, StepAttempts: 2, BackoffMin: 480 * time.Hour, BackoffMax: 480 * time.Hour}
	result  = settle.Delivered{Ticket: ticketA, Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte(`1`)}}
)

// submits records a ticket, which must succeed.
func submits(t *testing.T, ctx context.Context, j *Job[[]byte], w settle.Wait, spent int) {
	t.Helper()
	if err := j.Submitting(ctx, w, spent); err != nil {
		t.Errorf("the ticket is not recorded: %v", err)
	}
}

// Whatever becomes of an attempt that has submitted is decided with its ticket.
func TestP10WhatSubmittedIsChargedToItsStep(t *testing.T) {
	failed := func(refused bool) error {
		return Report(settle.Settled{Refused: refused, Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptSubmitFailed}})
	}
	for name, c := range map[string]struct {
		does   func(context.Context) error
		ticket settle.ID
		recall bool
	}{
		"an error":        {func(context.Context) error { return errors.New("no reply") }, ticketA, true},
		"a panic":         {func(context.Context) error { panic("boom") }, ticketA, true},
		"a goexit":        {func(context.Context) error { runtime.Goexit(); return nil }, ticketA, true},
		"a timeout":       {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, ticketA, true},
		"an abandonment":  {func(context.Context) error { <-time.After(time.Minute); return nil }, ticketA, true},
		"an open failure": {func(context.Context) error { return failed(false) }, ticketA, true},
		"a refusal":       {func(context.Context) error { return failed(true) }, settle.ID{}, false},
		"a deferral": {func(context.Context) error {
			return Report(settle.Deferred{Reason: settle.AttemptBusy, After: time.Hour})
		}, settle.ID{}, false},
		"a snooze":           {func(context.Context) error { return settle.Snooze(time.Hour) }, settle.ID{}, true},
		"a terminal failure": {func(context.Context) error { return settle.Terminal(errors.New("no")) }, ticketA, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{}))
				raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
					submits(t, ctx, j, waitA, 0)
					return c.does(ctx)
				})
				id := f.put(t, "k", pol(slow))
				stop := start(t, w)
				nap(30 * time.Second)
				j := f.get(t, id)
				if len(j.Attempts) != 1 || j.Attempts[0].Ticket != c.ticket || j.Attempts[0].Step != map[bool]string{true: "", false: "s"}[c.ticket.IsZero()] {
					t.Errorf("attempts %+v, want one with ticket %s", j.Attempts, c.ticket)
				}
				recalls := f.count(func(j settle.Job) bool { return j.Kind == settle.RecallKind })
				if (recalls == 1) != c.recall || recalls > 1 {
					t.Errorf("%d recalls, want some: %v", recalls, c.recall)
				}
				nap(time.Minute) // for the one that was abandoned
				stop()
			})
		})
	}
}

func TestP10SpentAttemptsOfAStepCountForTheNext(t *testing.T) {
	for spent, want := range map[int]settle.State{0: settle.Pending, 1: settle.Dead} {
		bubble(t, func(t *testing.T, f *fake) {
			w := New(f, quiet(Config{}))
			raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
				submits(t, ctx, j, waitA, spent)
				return errors.New("no reply")
			})
			id := f.put(t, "k", pol(slow))
			stop := start(t, w)
			nap(time.Second)
			if j := wantState(t, f, id, want, 1); want == settle.Dead && j.Reason != settle.EndExhausted {
				t.Errorf("ended %s", j.Reason)
			}
			stop()
		})
	}
}

func TestASecondTicketIsTheOneThatCounts(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
			submits(t, ctx, j, waitA, 0)
			submits(t, ctx, j, waitB, 0)
			return errors.New("no reply")
		})
		id := f.put(t, "k", pol(slow))
		stop := start(t, w)
		nap(time.Second)
		if a := wantState(t, f, id, settle.Pending, 1).Attempts[0]; a.Ticket != ticketB || a.Node != "m" {
			t.Errorf("recorded %+v", a)
		}
		stop()
	})
}

func TestP9AnAnswerBeforeTheParkIsFoundByIt(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		HandleRaw(w, "k", func(ctx context.Context, j *Job[[]byte]) ([]byte, error) {
			if len(j.Steps) > 0 {
				return j.Steps[0].Output, nil
			}
			submits(t, ctx, j, waitA, 0)
			if said := f.deliver(ctx, j.ID, result); said != settle.Done {
				t.Errorf("the answer is kept: %s", said)
			}
			return nil, Report(settle.Parked{Wait: waitA})
		})
		id := f.put(t, "k", pol(slow))
		stop := start(t, w)
		nap(time.Second)
		if j := wantState(t, f, id, settle.Succeeded, 2); string(j.Output) != "1" || j.Excused != 1 {
			t.Errorf("output %q, counters %+v", j.Output, j.Counters)
		}
		stop()
	})
}

func TestP9ALeaseThatEndsWithAKeptAnswerIsNoCrash(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		id := f.put(t, "k", pol(slow))
		crash(t, f, "k") // by another process, that submitted
		f.befalls(t.Context(), id, settle.Submitting{Wait: waitA})
		if said := f.deliver(t.Context(), id, result); said != settle.Done {
			t.Fatalf("the answer is kept: %s", said)
		}
		var told tape[Settled]
		w := New(f, quiet(Config{Events: Events{Settled: func(s Settled) { told.add(s) }}}))
		stop := start(t, w)
		nap(time.Minute)
		if j := wantState(t, f, id, settle.Pending, 1); len(j.Steps) != 1 || j.Crashed != 0 {
			t.Errorf("steps %v, crashes %d", j.Steps, j.Crashed)
		}
		if all := told.all(); len(all) != 1 || all[0].By != bySweep || all[0].Wait == nil || all[0].Wait.Ticket != ticketA {
			t.Errorf("told %+v", all)
		}
		stop()
	})
}

// ---- who may not submit any more

// refused says that nothing may be sent: the error is a StaleError.
func refused(t *testing.T, err error) {
	t.Helper()
	if !settle.IsStale(err) {
		t.Errorf("got %v, want a StaleError", err)
	}
}

func TestP3AnAbandonedHandlerCannotSubmit(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var got error
		w := New(f, quiet(Config{}))
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			time.Sleep(30 * time.Second)
			got = j.Submitting(context.Background(), waitA, 0)
			return nil
		})
		id := f.put(t, "k", pol(slow))
		stop := start(t, w)
		nap(time.Minute)
		refused(t, got)
		if j := wantState(t, f, id, settle.Pending, 1); j.Wait != nil || !j.Attempts[0].Ticket.IsZero() {
			t.Errorf("wait %+v, attempts %+v", j.Wait, j.Attempts)
		}
		stop()
	})
}

// The store takes the ticket, but its answer comes when the attempt has been
// given up without one: whoever sent something now would send it for nobody.
func TestP3WhoIsAbandonedWhileTheTicketIsRecordedCannotSubmit(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var got error
		w := New(f, quiet(Config{}))
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			f.hook(nil, func(op string) error {
				if op == "apply" {
					f.hook(nil, nil)
					time.Sleep(10 * time.Second)
				}
				return nil
			})
			got = j.Submitting(context.Background(), waitA, 0)
			return nil
		})
		id := f.put(t, "k", pol(slow))
		stop := start(t, w)
		nap(time.Minute)
		refused(t, got)
		if j := wantState(t, f, id, settle.Pending, 1); j.Wait != nil || !j.Attempts[0].Ticket.IsZero() {
			t.Errorf("wait %+v, attempts %+v", j.Wait, j.Attempts)
		}
		stop()
	})
}

func TestP3WhoLostTheJobCannotSubmit(t *testing.T) {
	for name, ev := range map[string]settle.Event{"a cancel": settle.CancelAsked{}, "a sweep": settle.LeaseOver{}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				var got error
				w := New(f, quiet(Config{}))
				raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
					f.befalls(context.Background(), j.ID, ev)
					got = j.Submitting(context.WithoutCancel(ctx), waitA, 0)
					return errors.New("it gives up")
				})
				id := f.put(t, "k", pol(slow))
				stop := start(t, w)
				nap(time.Second)
				refused(t, got)
				if j := f.get(t, id); j.Wait != nil {
					t.Errorf("wait %+v", j.Wait)
				}
				stop()
			})
		})
	}
}

// A ticket of which the handler does not know that it is recorded is not charged
// to the step: nothing was sent.
func TestATicketThatIsNotRecordedIsAnErrorAndNotCharged(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var got error
		w := New(f, quiet(Config{}))
		raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
			f.hook(nil, func(op string) error {
				if op == "apply" {
					f.hook(nil, nil)
					return errDown // after the effect: the reply is lost
				}
				return nil
			})
			got = j.Submitting(ctx, waitA, 0)
			return got
		})
		id := f.put(t, "k", pol(slow))
		stop := start(t, w)
		nap(time.Second)
		if !errors.Is(got, errDown) || settle.IsStale(got) {
			t.Errorf("got %v, want the store's error", got)
		}
		if j := wantState(t, f, id, settle.Pending, 1); !j.Attempts[0].Ticket.IsZero() {
			t.Errorf("recorded %+v", j.Attempts[0])
		}
		stop()
	})
}

func TestWhoIsNoHandlerCannotSubmit(t *testing.T) {
	var made Job[[]byte]
	if err := made.Submitting(t.Context(), waitA, 0); err == nil || settle.IsStale(err) {
		t.Errorf("got %v, want an error of its own", err)
	}
	if a, err := made.Attempts(t.Context()); a != nil || err != nil {
		t.Errorf("attempts of a job that a test made up: %v, %v", a, err)
	}
}

func TestAttemptsAreReadFromTheSecondOn(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var seen [][]settle.Attempt
		w := New(f, quiet(Config{}))
		raw(w, "k", func(ctx context.Context, j *Job[[]byte]) error {
			past, err := j.Attempts(ctx)
			if err != nil {
				t.Error(err)
			}
			if seen = append(seen, past); len(seen) == 1 {
				if n := f.called("job"); n != 0 {
					t.Errorf("the first attempt asked the store %d times", n)
				}
				submits(t, ctx, j, waitA, 0)
				return settle.RetryAfter(time.Second, errors.New("no reply"))
			}
			return nil
		})
		id := f.put(t, "k", pol(slow))
		stop := start(t, w)
		nap(10 * time.Second)
		wantState(t, f, id, settle.Succeeded, 2)
		if len(seen) != 2 || len(seen[0]) != 0 || len(seen[1]) != 1 || seen[1][0].Ticket != ticketA {
			t.Errorf("seen %+v", seen)
		}
		stop()
	})
}
