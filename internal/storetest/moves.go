package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

// ---- what may happen to a job

func succeeded(output string) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte(output)}}
}

func failed(text string) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Error: text}}
}

func failedFor(after time.Duration) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Error: "not yet", After: after}}
}

func hopeless(text string) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Error: text}}
}

func parked(step, ticket string) settle.Event {
	return settle.Parked{Wait: settle.Wait{Ticket: id(ticket), Step: step, Node: "node-a"}}
}

func answered(ticket, output string) settle.Event {
	return settle.Delivered{Ticket: id(ticket), Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte(output)}}
}

func stepFailed(ticket string, retryable bool) settle.Event {
	return settle.Delivered{Ticket: id(ticket), Retryable: retryable, Outcome: settle.Outcome{
		Verdict: settle.VerdictRetry, Reason: settle.AttemptStepError, Error: "out of memory"}}
}

// on is what the holder of a claimed job decides.
func on(c settle.ClaimedJob, ev settle.Event) settle.Transition {
	t := settle.Decide(c.Snapshot, ev, c.Policy, jitter)
	t.Fence.Handle, t.Fence.Worker = c.Handle, worker
	return t
}

// seen is what a person decides on the job as it stands now.
func (r *rig) seen(id settle.ID, ev settle.Event) settle.Transition {
	r.Helper()
	return r.job(id).Decide(ev, jitter, false)
}

// ---- short ways to a state

// crash lets the lease of a running job run out and sweeps.
func (r *rig) crash() {
	r.Helper()
	r.advance(lease + tick)
	r.sweep()
}

// untilDue moves the clock to when the job may be claimed.
func (r *rig) untilDue(id settle.ID) {
	r.Helper()
	if due := r.job(id).Due; due.After(r.now()) {
		r.clock.Set(due)
	}
}

// again moves the clock to a job's due time and claims it.
func (r *rig) again(id settle.ID) settle.ClaimedJob {
	r.Helper()
	r.untilDue(id)
	c := r.claimOne()
	is(r, "the job that is claimed again", c.ID, id)
	return c
}

// died inserts a job and lets it end dead.
func (r *rig) died(n settle.New) settle.ID {
	r.Helper()
	c := r.started(n)
	r.moves(on(c, hopeless("it can not work")))
	return c.ID
}

// ended inserts a job and ends it by this event.
func (r *rig) ended(n settle.New, ev settle.Event) settle.ID {
	r.Helper()
	c := r.started(n)
	r.moves(on(c, ev))
	return c.ID
}

// sweep ends what is over, as each process does; it returns how many moved.
func (r *rig) sweep() (moved int) {
	r.Helper()
	for after := (settle.Cursor{}); ; {
		over := r.overdue(after, page)
		for _, said := range r.apply(decideOverdue(over.Jobs)...) {
			if said == settle.Done {
				moved++
			}
		}
		if over.Next == (settle.Cursor{}) {
			return moved
		}
		after = over.Next
	}
}

func decideOverdue(jobs []settle.Job) []settle.Transition {
	var ts []settle.Transition
	for _, j := range jobs {
		ts = append(ts, j.Decide(j.Passed(true, true), jitter, true))
	}
	return ts
}
