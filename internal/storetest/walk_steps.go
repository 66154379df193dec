package storetest

import (
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// What a walk does with steps.

// submits parks, or records a ticket first.
func (w *walker) submits(j settle.Job) settle.Event {
	wait := settle.Wait{Ticket: settle.NewID(), Step: w.openStep(j), Node: "n", Recall: w.rng.IntN(3) == 0,
		Silence: time.Duration(w.rng.IntN(3)) * time.Second}
	if w.rng.IntN(3) == 0 {
		return settle.Parked{Wait: wait}
	}
	return settle.Submitting{Wait: wait}
}

// ticketOut is what happens between a ticket and its park.
func (w *walker) ticketOut(j settle.Job) settle.Event {
	switch w.rng.IntN(10) {
	case 0:
		return submitFailed(w.rng.IntN(2) == 0)
	case 1:
		return w.submits(j) // another node
	case 2, 3, 4:
		return settle.Parked{Wait: *j.Wait}
	}
	d, ok := w.nodeSays(*j.Wait).(settle.Delivered)
	if !ok || j.Answer != nil {
		return nil
	}
	if d.Verdict == settle.VerdictRetry {
		d.After = time.Second // how a store draws the backoff of a park that delivers is its own business
	}
	return settle.Kept{Delivered: d}
}

// openStep names a step that has not been finished.
func (w *walker) openStep(j settle.Job) string {
	for range 5 {
		if name := fmt.Sprint("s", w.rng.IntN(3)); !hasStep(j.Steps, name) {
			return name
		}
	}
	return fmt.Sprint("extra", j.Attempt)
}

func (w *walker) nodeSays(wait settle.Wait) settle.Event {
	verdict := []settle.Verdict{settle.VerdictOK, settle.VerdictOK, settle.VerdictRetry, settle.VerdictRetry, settle.VerdictTerminal}[w.rng.IntN(5)]
	switch w.rng.IntN(8) {
	case 0, 1, 2, 3:
		out := settle.Outcome{Verdict: verdict, Reason: settle.AttemptStepError, Error: "node", Output: []byte("result"), Node: []string{"", "m"}[w.rng.IntN(2)]}
		return settle.Delivered{Ticket: wait.Ticket, Outcome: out, Retryable: w.rng.IntN(2) == 0}
	case 4, 5:
		return settle.Progressed{Ticket: wait.Ticket}
	case 6:
		return settle.Delivered{Ticket: settle.NewID(), Outcome: settle.Outcome{Verdict: settle.VerdictOK}}
	}
	return nil
}

// meets is the job as a park leaves it, and what the answer that was kept for it
// then comes to.
func (w *walker) meets(j settle.Job, park settle.Transition) (settle.Job, settle.Transition) {
	w.seen["park met its answer"]++
	d := *j.Answer
	j.State, j.Wait, j.Answer, j.Worker, j.Now = settle.Awaiting, park.Wait, nil, 0, w.now()
	return j, j.Decide(d, jitter, false)
}

func (w *walker) matchWait(before, after settle.Job, t settle.Transition) {
	w.Helper()
	if t.To == settle.Running {
		w.matchNote(before, after, t)
		return
	}
	check(w, after.Worker == 0 || after.State.Ended(), "nobody holds a job that waits: got %d", after.Worker)
	if t.To != settle.Awaiting {
		check(w, after.Wait == nil, "a job that is %s waits for nothing: got %+v", after.State, after.Wait)
		return
	}
	if after.Wait == nil {
		w.Fatalf("an awaiting job tells what it waits for: got nothing")
	}
	is(w, "wait", *after.Wait, *t.Wait)
	is(w, "step attempts spent", after.StepSpent, spent(after))
	near(w, "alarm of the wait", after.Alarm, w.now().Add(t.After))
	if before.State == settle.Awaiting {
		check(w, after.WaitEnds.Equal(before.WaitEnds) || !before.WaitEnds.After(w.now()),
			"a progress note does not move the ceiling: got %s, before %s", after.WaitEnds, before.WaitEnds)
		return
	}
	near(w, "ceiling of the wait", after.WaitEnds, w.now().Add(t.WaitLeft))
}

// matchNote is matchWait for what is noted beside an attempt that goes on.
func (w *walker) matchNote(before, after settle.Job, t settle.Transition) {
	w.Helper()
	w.goesOn(before)
	if after.Wait == nil {
		w.Fatalf("a running job tells for which ticket: got nothing")
	}
	is(w, "step attempts spent", after.StepSpent, spent(after))
	if t.Keep == nil {
		is(w, "ticket", *after.Wait, *t.Wait)
		check(w, after.Answer == nil, "a new ticket has no answer: got %+v", after.Answer)
		return
	}
	is(w, "ticket", *after.Wait, *before.Wait)
	w.keeps("a reader", after, *t.Keep)
}

// spent counts the recorded attempts of the awaited step since the redrive.
func spent(j settle.Job) (n int) {
	for _, a := range j.Attempts {
		if a.Step == j.Wait.Step && a.N > j.Base && !a.Ticket.IsZero() {
			n++
		}
	}
	return n
}
