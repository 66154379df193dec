package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var ticketClauses = []clause{
	{"a ticket is recorded while the attempt runs and its lease goes on", ticketWhileRunning},
	{"P3 only the attempt that holds the job can record a ticket", ticketOfHolder},
	{"a second ticket takes the place of the first", secondTicket},
	{"P3 P10 a ticket that is recorded after a sweep has looked makes it come too late", ticketMeetsSweep},
	{"P1 nothing is submitted for a job whose deadline has passed", ticketOverdue},
	{"P10 a failure with a ticket out is charged to the step", ticketCharged},
	{"P10 a step that its node has not begun is charged to the job alone", ticketRefused},
	{"P10 a crash with a ticket out is charged to the step", ticketCrashed},
	{"P10 a deferral with a ticket out is charged to nobody", ticketDeferred},
	{"a person ends a job whose ticket is out", ticketCancelled},
	{"P3 a park that comes after the sweep is stale with its ticket recorded", parkAfterSweep},
	{"P3 a park that comes after a person ended the job is stale with its ticket recorded", parkAfterCancel},
	{"a decision to claim can not be applied", claimIsNoTransition},
	{"another handle sees a ticket and what is kept for it", ticketsElsewhere},
}

// submission is a wait for step s of node-a.
func submission(ticket string) settle.Wait {
	return settle.Wait{Ticket: id(ticket), Step: "s", Node: "node-a", Pool: "pool", Breaker: "b1", Silence: time.Minute}
}

// submits records a ticket, as a holder does before it sends anything, who then
// decides with it.
func (r *rig) submits(c *settle.ClaimedJob, w settle.Wait) {
	r.Helper()
	r.moves(on(*c, settle.Submitting{Wait: w}))
	c.Wait, c.StepSpent = &w, r.job(c.ID).StepSpent
}

// submitted inserts a job, claims it and records a ticket.
func (r *rig) submitted(n settle.New, w settle.Wait) settle.ClaimedJob {
	r.Helper()
	c := r.started(n)
	r.submits(&c, w)
	return c
}

func submitFailed(refused bool) settle.Event {
	return settle.Settled{Refused: refused, Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptSubmitFailed, Error: "no reply"}}
}

func ticketWhileRunning(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(time.Second)
	before := r.job(c.ID)
	r.submits(&c, submission("t"))
	r.goesOn(before)
	r.hasTicket(c.ID, "t")
	j := r.job(c.ID)
	is(r, "wait", *j.Wait, submission("t"))
	check(r, j.Answer == nil, "nothing has been answered: got %+v", j.Answer)
	is(r, "claimed meanwhile", len(r.claim()), 0)
	r.advance(lease - time.Second - tick)
	is(r, "moved by a sweep within the lease", r.sweep(), 0)
	is(r, "lost by the renewal", len(r.renew(c)), 0)
	near(r, "alarm", r.job(c.ID).Alarm, r.now().Add(lease))
	r.hasTicket(c.ID, "t")
	is(r, "answer to the same once more", r.apply(on(c, settle.Submitting{Wait: submission("t")}))[0], settle.Done)
	r.moves(on(c, succeeded("1")))
	check(r, r.job(c.ID).Wait == nil, "an ended job waits for nothing")
	r.balanced()
}

func ticketOfHolder(r *rig) {
	late := r.started(task(settle.EnqueueOpts{}))
	records := settle.Submitting{Wait: submission("late")}
	r.crash()
	before := r.job(late.ID)
	is(r, "answer after a sweep", r.apply(on(late, records))[0], settle.Stale)
	r.untouched(before)
	check(r, r.job(late.ID).Wait == nil, "a pending job has no ticket")
	second := r.again(late.ID)
	r.submits(&second, submission("t"))
	is(r, "answer while the next attempt runs", r.apply(on(late, records))[0], settle.Stale)
	r.hasTicket(late.ID, "t")
	r.moves(on(second, settle.Parked{Wait: submission("t")}))
	is(r, "answer to the holder after its park", r.apply(on(second, records))[0], settle.Stale)
	r.hasTicket(late.ID, "t")
	r.moves(r.seen(late.ID, settle.CancelAsked{}))
	is(r, "answer after the end", r.apply(on(second, records))[0], settle.Stale)
	r.balanced()
}

func secondTicket(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t1"))
	late := r.seen(c.ID, settle.Kept{Delivered: answer("t1", "late")})
	r.submits(&c, submission("t2"))
	r.hasTicket(c.ID, "t2")
	is(r, "an answer for the first, decided before", r.apply(late)[0], settle.Stale)
	is(r, "an answer for the first", r.says(c.ID, answer("t1", "late")), settle.Stale)
	check(r, r.job(c.ID).Answer == nil, "nothing is kept: got %+v", r.job(c.ID).Answer)
	is(r, "an answer for the second", r.says(c.ID, answer("t2", "out")), settle.Done)
	r.moves(on(c, settle.Parked{Wait: submission("t2")}))
	r.isStep(r.job(c.ID).Steps, settle.StepResult{Step: "s", Ticket: id("t2"), Node: "node-a", Output: []byte("out")})
	r.balanced()
}

// ticketMeetsSweep: a lease is over, but its holder lives. What the sweep decided
// without the ticket would leave it uncharged, and the node at work.
func ticketMeetsSweep(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	for _, ticket := range []string{"t1", "t2"} {
		r.advance(lease + tick)
		sweep := r.look()
		r.submits(&c, submission(ticket))
		r.comesTooLate(sweep, c.ID)
		r.hasTicket(c.ID, ticket)
		is(r, "lost by the renewal", len(r.renew(c)), 0)
	}
	r.crash()
	is(r, "ticket that the next sweep records", r.attempt(r.job(c.ID), 0).Ticket, id("t2"))
	r.balanced()
}

// hasTicket reports a job for which another ticket is out, or none.
func (r *rig) hasTicket(n settle.ID, ticket string) {
	r.Helper()
	w := r.job(n).Wait
	if w == nil {
		r.Fatalf("ticket of job %s: got none, want %s", n, ticket)
	}
	is(r, "ticket", w.Ticket, id(ticket))
}

func ticketOverdue(r *rig) {
	c := r.started(task(settle.EnqueueOpts{Deadline: 10 * time.Second}))
	r.advance(10*time.Second - tick)
	r.submits(&c, submission("t1"))
	r.advance(tick)
	sweep := r.look()
	is(r, "answer at the deadline", r.apply(on(c, settle.Submitting{Wait: submission("t2")}))[0], settle.Stale)
	r.hasTicket(c.ID, "t1")
	same(r, "answer to the sweep", r.apply(sweep...), []settle.Applied{settle.Done})
	is(r, "reason", r.job(c.ID).Reason, settle.EndExpired)
	is(r, "ticket of the record", r.attempt(r.job(c.ID), 0).Ticket, id("t1"))
	c = r.started(task(settle.EnqueueOpts{Deadline: lease + time.Second}))
	r.advance(lease + time.Second)
	is(r, "answer after lease and deadline", r.apply(on(c, settle.Submitting{Wait: submission("t1")}))[0], settle.Stale)
	check(r, r.job(c.ID).Wait == nil, "no ticket is out: got %+v", r.job(c.ID).Wait)
	r.balanced()
}

func ticketCharged(r *rig) {
	c := r.submitted(withPolicy(settle.Policy{StepAttempts: 2}), submission("t1"))
	r.moves(on(c, submitFailed(false)))
	a := r.attempt(r.job(c.ID), 0)
	is(r, "step of the record", a.Step, "s")
	is(r, "ticket of the record", a.Ticket, id("t1"))
	is(r, "node of the record", a.Node, "node-a")
	is(r, "reason of the record", a.Reason, settle.AttemptSubmitFailed)
	c = r.again(c.ID)
	r.submits(&c, submission("t2"))
	is(r, "attempts of the step that have ended", r.job(c.ID).StepSpent, 1)
	r.moves(on(c, failed("the handler gives up")))
	is(r, "state after the second failure", r.job(c.ID).State, settle.Dead)
	is(r, "reason", r.job(c.ID).Reason, settle.EndExhausted)
	is(r, "ticket of the second record", r.attempt(r.job(c.ID), 1).Ticket, id("t2"))
	r.balanced()
}

func ticketRefused(r *rig) {
	c := r.submitted(withPolicy(settle.Policy{StepAttempts: 1, Attempts: 3}), submission("t1"))
	for _, next := range []string{"t2", "t3"} {
		r.moves(on(c, submitFailed(true)))
		is(r, "state", r.job(c.ID).State, settle.Pending)
		c = r.again(c.ID)
		r.submits(&c, submission(next))
		is(r, "attempts of the step that have ended", r.job(c.ID).StepSpent, 0)
	}
	is(r, "charged to the job", c.Charged(), 3)
	is(r, "ticket of the record", r.attempt(r.job(c.ID), 0).Ticket, settle.ID{})
	r.moves(on(c, submitFailed(true)))
	is(r, "reason when the job's attempts are spent", r.job(c.ID).Reason, settle.EndExhausted)
	r.balanced()
}

func ticketCrashed(r *rig) {
	c := r.submitted(withPolicy(settle.Policy{StepAttempts: 2, Crashes: 5}), submission("t1"))
	r.crash()
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Pending)
	is(r, "crashes", j.Crashed, 1)
	is(r, "reason of the record", r.attempt(j, 0).Reason, settle.AttemptWorkerLost)
	is(r, "ticket of the record", r.attempt(j, 0).Ticket, id("t1"))
	is(r, "worker of the record", r.attempt(j, 0).Worker, worker)
	check(r, j.Wait == nil, "a pending job has no ticket: got %+v", j.Wait)
	c = r.again(c.ID)
	r.submits(&c, submission("t2"))
	is(r, "attempts of the step that have ended", r.job(c.ID).StepSpent, 1)
	r.crash()
	is(r, "reason after the second", r.job(c.ID).Reason, settle.EndExhausted)
	r.balanced()
}

func ticketDeferred(r *rig) {
	c := r.submitted(withPolicy(settle.Policy{StepAttempts: 1, Attempts: 1}), submission("t1"))
	for _, next := range []string{"t2", "t3"} {
		r.moves(on(c, settle.Deferred{Reason: settle.AttemptBusy, After: time.Second, Node: "node-a"}))
		c = r.again(c.ID)
		r.submits(&c, submission(next))
		is(r, "attempts of the step that have ended", r.job(c.ID).StepSpent, 0)
	}
	is(r, "charged to the job", c.Charged(), 1)
	r.moves(on(c, settle.Parked{Wait: submission("t3")}))
	r.balanced()
}

func ticketCancelled(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	is(r, "an answer that is kept", r.says(c.ID, answer("t", "out")), settle.Done)
	r.moves(r.seen(c.ID, settle.CancelAsked{Why: "no need"}))
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Cancelled)
	is(r, "ticket of the record", r.attempt(j, 0).Ticket, id("t"))
	is(r, "node of the record", r.attempt(j, 0).Node, "node-a")
	is(r, "steps", len(j.Steps), 0)
	is(r, "the node's answer after the end", r.says(c.ID, answer("t", "out")), settle.Stale)
	r.balanced()
}

func parkAfterSweep(r *rig) {
	c := r.submitted(withPolicy(settle.Policy{StepAttempts: 5}), submission("t1"))
	r.crash()
	r.lateParkIsStale(c)
	second := r.again(c.ID)
	r.lateParkIsStale(c)
	r.submits(&second, submission("t2"))
	r.moves(on(second, settle.Parked{Wait: submission("t2")}))
	r.lateParkIsStale(c)
	r.balanced()
}

func parkAfterCancel(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	r.moves(r.seen(c.ID, settle.CancelAsked{}))
	r.lateParkIsStale(c)
	r.balanced()
}

// lateParkIsStale reports a park that is taken for one that had been carried out.
func (r *rig) lateParkIsStale(c settle.ClaimedJob) {
	r.Helper()
	before := r.job(c.ID)
	is(r, "answer to the late worker's park", r.apply(on(c, settle.Parked{Wait: *c.Wait}))[0], settle.Stale)
	r.untouched(before)
}

func claimIsNoTransition(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	t := r.seen(n, settle.Claimed{})
	said := r.apply(t)[0]
	check(r, said == settle.Rejected || said == settle.Stale, "a decision to claim is refused: got %s", said)
	is(r, "state", r.job(n).State, settle.Pending)
	c := r.claimOne()
	r.submits(&c, submission("t"))
	said = r.apply(t)[0]
	check(r, said != settle.Done, "a decision to claim is refused while the job runs: got %s", said)
	check(r, r.job(n).Wait != nil, "the ticket is still there")
}

func ticketsElsewhere(r *rig) {
	b := r.beside()
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	b.hasTicket(c.ID, "t")
	is(r, "an answer that is kept there", b.says(c.ID, answer("t", "out")), settle.Done)
	r.moves(on(c, settle.Parked{Wait: submission("t")}))
	is(r, "state", b.job(c.ID).State, settle.Pending)
	r.isStep(r.job(c.ID).Steps, settle.StepResult{Step: "s", Ticket: id("t"), Node: "node-a", Output: []byte("out")})
	r.balanced()
}
