package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var stepClauses = []clause{
	{"a parked job waits with its ticket and holds no lease", parks},
	{"P1 a wait never reaches past the deadline", parkWithinDeadline},
	{"a parked job is not claimed and its worker can not renew it", parkedIsApart},
	{"an answer brings the job back at once and keeps the result", deliversResult},
	{"finished steps are seen by the claim and by a reader", stepsAtClaim},
	{"P10 a finished step costs no attempt", stepExcuses},
	{"a progress note moves the silence and never the ceiling", progressMoves},
	{"P10 a step's budget counts its recorded attempts", stepBudget},
	{"P10 a node that says retryable gives the larger budget", stepBudgetRetryable},
	{"P10 another step has a budget of its own", stepBudgetApart},
	{"P10 a redrive gives the step a new budget and keeps finished steps", stepBudgetRedrive},
	{"a wait that is over is recorded as no result", waitOver},
	{"a terminal answer ends the job and names the node", terminalAnswer},
	{"what a parked job needs to be decided stands in every list", parkedInLists},
}

// inStep inserts a job and parks it.
func (r *rig) inStep(p settle.Policy, w settle.Wait) settle.ID {
	r.Helper()
	c := r.started(withPolicy(p))
	r.moves(on(c, settle.Parked{Wait: w}))
	return c.ID
}

func parks(r *rig) {
	w := settle.Wait{Ticket: id("t"), Step: "s", Node: "n", Silence: time.Minute}
	n := r.inStep(settle.Policy{}, w)
	j := r.job(n)
	is(r, "state", j.State, settle.Awaiting)
	is(r, "holder", j.Worker, 0)
	if j.Wait == nil {
		r.Fatal("an awaiting job tells what it waits for: got nothing")
	}
	is(r, "wait", *j.Wait, w)
	near(r, "alarm at the silence", j.Alarm, Start.Add(time.Minute))
	near(r, "ceiling of the wait", j.WaitEnds, Start.Add(time.Hour))
	is(r, "moved by a sweep after the lease", r.sweptAfter(lease+tick), 0)
	is(r, "moved by a sweep after the silence", r.sweptAfter(time.Minute), 1)
}

func (r *rig) sweptAfter(d time.Duration) int {
	r.Helper()
	r.advance(d)
	return r.sweep()
}

func parkWithinDeadline(r *rig) {
	c := r.started(task(settle.EnqueueOpts{Deadline: 10 * time.Minute}))
	r.moves(on(c, parked("s", "t")))
	j := r.job(c.ID)
	near(r, "alarm", j.Alarm, Start.Add(10*time.Minute))
	near(r, "ceiling of the wait", j.WaitEnds, Start.Add(10*time.Minute))
	is(r, "moved by a sweep after the deadline", r.sweptAfter(10*time.Minute+tick), 1)
	is(r, "reason", r.job(c.ID).Reason, settle.EndExpired)
}

func parkedIsApart(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, parked("s", "t")))
	same(r, "lost", r.renew(c), []settle.ID{c.ID})
	near(r, "alarm", r.job(c.ID).Alarm, Start.Add(time.Hour))
	is(r, "claimed", len(r.claim()), 0)
	is(r, "the worker's late success", r.apply(on(c, succeeded("1")))[0], settle.Stale)
}

func deliversResult(r *rig) {
	n := r.inStep(settle.Policy{}, settle.Wait{Ticket: id("t"), Step: "s", Node: "asked"})
	r.advance(time.Minute)
	ev := settle.Delivered{Ticket: id("t"), Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte("\x00out"), Node: "answered"}}
	r.moves(r.seen(n, ev))
	j := r.job(n)
	is(r, "state", j.State, settle.Pending)
	near(r, "due", j.Due, r.now())
	near(r, "first due", j.FirstDue, Start)
	check(r, j.Wait == nil, "the job waits for nothing: got %+v", j.Wait)
	is(r, "attempts recorded", len(j.Attempts), 0)
	is(r, "steps", len(j.Steps), 1)
	r.isStep(j.Steps, settle.StepResult{Step: "s", Ticket: id("t"), Node: "answered", Output: []byte("\x00out")})
}

// isStep reports a step result that is not among the steps.
func (r *rig) isStep(steps []settle.StepResult, want settle.StepResult) {
	r.Helper()
	for _, s := range steps {
		if s.Step == want.Step {
			is(r, "ticket of step "+want.Step, s.Ticket, want.Ticket)
			is(r, "node of step "+want.Step, s.Node, want.Node)
			is(r, "output of step "+want.Step, string(s.Output), string(want.Output))
			return
		}
	}
	r.Errorf("steps: got %v, want one named %s", steps, want.Step)
}

func stepsAtClaim(r *rig) {
	n := r.inStep(settle.Policy{}, settle.Wait{Ticket: id("t1"), Step: "one"})
	r.moves(r.seen(n, answered("t1", "first")))
	c := r.claimOne()
	is(r, "steps at the claim", len(c.Steps), 1)
	r.moves(on(c, parked("two", "t2")))
	r.moves(r.seen(n, answered("t2", "second")))
	c = r.claimOne()
	is(r, "steps at the next claim", len(c.Steps), 2)
	r.isStep(c.Steps, settle.StepResult{Step: "one", Ticket: id("t1"), Output: []byte("first")})
	r.isStep(c.Steps, settle.StepResult{Step: "two", Ticket: id("t2"), Node: "node-a", Output: []byte("second")})
	r.moves(on(c, succeeded("1")))
	is(r, "steps of the ended job", len(r.job(n).Steps), 2)
}

func stepExcuses(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 1}))
	for _, step := range []string{"one", "two", "three"} {
		r.moves(on(c, parked(step, step)))
		r.moves(r.seen(c.ID, answered(step, "1")))
		c = r.claimOne()
	}
	is(r, "counters", c.Counters, settle.Counters{Attempt: 4, Excused: 3, Tries: 1})
	r.moves(on(c, succeeded("1")))
}

func progressMoves(r *rig) {
	n := r.inStep(settle.Policy{Wait: 3 * time.Minute}, settle.Wait{Ticket: id("t"), Step: "s", Silence: time.Minute})
	for range 3 {
		r.advance(50 * time.Second)
		r.moves(r.seen(n, settle.Progressed{Ticket: id("t")}))
		near(r, "ceiling", r.job(n).WaitEnds, Start.Add(3*time.Minute))
		is(r, "moved by the sweep", r.sweep(), 0)
	}
	near(r, "alarm", r.job(n).Alarm, Start.Add(3*time.Minute))
	is(r, "moved at the ceiling", r.sweptAfter(30*time.Second+tick), 1)
	is(r, "reason", r.attempt(r.job(n), 0).Reason, settle.AttemptNoResult)
}

// tryStep runs one attempt of a step to its failure and tells where it led.
func (r *rig) tryStep(c settle.ClaimedJob, step string, retryable bool) settle.Job {
	r.Helper()
	ticket := step + string(rune('0'+c.Attempt))
	r.moves(on(c, parked(step, ticket)))
	r.moves(r.seen(c.ID, stepFailed(ticket, retryable)))
	return r.job(c.ID)
}

func stepBudget(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	is(r, "state after the first failure", r.tryStep(c, "s", false).State, settle.Pending)
	c = r.again(c.ID)
	r.moves(on(c, parked("s", "look")))
	is(r, "attempts of the step that have ended", r.job(c.ID).StepSpent, 1)
	r.moves(r.seen(c.ID, stepFailed("look", false)))
	j := r.job(c.ID)
	is(r, "state after the second failure", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndExhausted)
	is(r, "attempts recorded", len(j.Attempts), 2)
	is(r, "step of the record", r.attempt(j, 0).Step, "s")
	is(r, "node of the record", r.attempt(j, 0).Node, "node-a")
	is(r, "ticket of the record", r.attempt(j, 1).Ticket, id("look"))
	is(r, "reason of the record", r.attempt(j, 0).Reason, settle.AttemptStepError)
}

func stepBudgetRetryable(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	for range 4 {
		is(r, "state", r.tryStep(c, "s", true).State, settle.Pending)
		c = r.again(c.ID)
	}
	j := r.tryStep(c, "s", true)
	is(r, "state after the fifth failure", j.State, settle.Dead)
	is(r, "what the node said", r.attempt(j, 0).Retryable, true)
	is(r, "attempts recorded", len(j.Attempts), 5)
}

func stepBudgetApart(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	for _, step := range []string{"one", "two", "three"} {
		is(r, "state after a failure of "+step, r.tryStep(c, step, false).State, settle.Pending)
		c = r.again(c.ID)
	}
	r.moves(on(c, failed("in the handler, no step")))
	c = r.again(c.ID)
	is(r, "state after the second failure of two", r.tryStep(c, "two", false).State, settle.Dead)
}

func stepBudgetRedrive(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, parked("done", "d")))
	r.moves(r.seen(c.ID, answered("d", "kept")))
	r.tryStep(r.claimOne(), "s", false)
	is(r, "state", r.tryStep(r.again(c.ID), "s", false).State, settle.Dead)
	r.moves(r.seen(c.ID, settle.RedriveAsked{}))
	c = r.claimOne()
	r.isStep(c.Steps, settle.StepResult{Step: "done", Ticket: id("d"), Node: "node-a", Output: []byte("kept")})
	is(r, "base", c.Base, 3)
	r.moves(on(c, parked("s", "anew")))
	is(r, "attempts of the step since the redrive", r.job(c.ID).StepSpent, 0)
	r.moves(r.seen(c.ID, stepFailed("anew", false)))
	is(r, "state after one more failure", r.job(c.ID).State, settle.Pending)
	is(r, "attempts recorded", len(r.job(c.ID).Attempts), 3)
}

func waitOver(r *rig) {
	n := r.inStep(settle.Policy{Wait: time.Minute}, settle.Wait{Ticket: id("t"), Step: "s", Node: "n"})
	is(r, "moved by the sweep", r.sweptAfter(time.Minute+tick), 1)
	j := r.job(n)
	is(r, "state", j.State, settle.Pending)
	is(r, "attempts recorded", len(j.Attempts), 1)
	is(r, "reason", r.attempt(j, 0).Reason, settle.AttemptNoResult)
	is(r, "node", r.attempt(j, 0).Node, "n")
	is(r, "charged", j.Charged(), 1)
}

func terminalAnswer(r *rig) {
	n := r.inStep(settle.Policy{}, settle.Wait{Ticket: id("t"), Step: "s", Node: "n"})
	r.moves(r.seen(n, settle.Delivered{Ticket: id("t"), Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptStepError, Error: "bad frame"}}))
	j := r.job(n)
	is(r, "state", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndTerminal)
	is(r, "node", r.attempt(j, 0).Node, "n")
	is(r, "error", r.attempt(j, 0).Error, "bad frame")
}

func parkedInLists(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.tryStep(c, "s", true)
	c = r.again(c.ID)
	r.moves(on(c, parked("s", "t")))
	want := r.job(c.ID)
	r.sameDecision("Jobs", r.list(settle.Filter{}), want)
	r.advance(time.Hour + tick)
	want = r.job(c.ID)
	r.sameDecision("Overdue", r.overdue(settle.Cursor{}, page).Jobs, want)
}

// sameDecision reports a list whose job leads to another decision than want.
func (r *rig) sameDecision(where string, jobs []settle.Job, want settle.Job) {
	r.Helper()
	if len(jobs) != 1 {
		r.Fatalf("%s: got %d jobs, want one", where, len(jobs))
	}
	got := jobs[0]
	if got.Wait == nil || want.Wait == nil {
		r.Fatalf("%s: got wait %v, want %v", where, got.Wait, want.Wait)
	}
	is(r, where+": wait", *got.Wait, *want.Wait)
	is(r, where+": step attempts spent", got.StepSpent, want.StepSpent)
	is(r, where+": end of the wait", got.WaitEnds, want.WaitEnds)
	is(r, where+": counters", got.Counters, want.Counters)
	is(r, where+": policy", got.Policy, want.Policy)
	a, b := got.Decide(settle.WaitOver{}, jitter, true), want.Decide(settle.WaitOver{}, jitter, true)
	is(r, where+": next state", a.To, b.To)
	is(r, where+": fence", a.Fence, b.Fence)
	is(r, where+": due in", a.After, b.After)
}
