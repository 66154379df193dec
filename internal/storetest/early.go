package storetest

import (
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

var earlyClauses = []clause{
	{"P9 an answer that comes before the park is kept and nothing moves", keeps},
	{"P9 the park delivers what was kept in its own transaction", parkDelivers},
	{"the park that delivers nudges the lane", parkNudges},
	{"P9 the first answer that is kept counts", keepsFirst},
	{"P3 an answer is kept for the recorded ticket alone", keepsForTicket},
	{"P9 an answer decided before the park and applied after it is not lost", keepMeetsPark},
	{"P9 a lease that ends with a kept answer delivers it and counts no crash", leaseDelivers},
	{"P9 an answer that is kept after a sweep has looked is not lost with the lease", keepMeetsSweep},
	{"P9 a kept answer survives a renewal that is faster than the sweep", keptAndRenewed},
	{"P1 a kept answer does not outlive the deadline", keptAndOverdue},
	{"P3 a park that is told again after its answer is already applied", parkRepeated},
	{"what was kept goes with its ticket", keptGoes},
	{"Prune removes what was kept for attempts that are over and nothing else", keptPruned},
	{"a result comes back byte for byte from what was kept", keptBytes},
}

func answer(ticket, output string) settle.Delivered {
	return answered(ticket, output).(settle.Delivered)
}

// says is what a bridge does with an answer: it decides on the job as it stands.
func (r *rig) says(n settle.ID, d settle.Delivered) settle.Applied {
	r.Helper()
	j := r.waits(n)[0]
	return r.apply(j.Decide(j.Answered(d), jitter, false))[0]
}

func (r *rig) waits(ids ...settle.ID) []settle.Job {
	r.Helper()
	jobs, err := r.store.Waits(r.ctx, ids)
	ok(r, "Waits", err)
	if len(jobs) != len(ids) {
		r.Fatalf("Waits: got %d jobs, want one for each of %d ids", len(jobs), len(ids))
	}
	return jobs
}

// balanced reports books that do not balance (P14).
func (r *rig) balanced() {
	r.Helper()
	b, err := r.store.Audit(r.ctx, 0)
	ok(r, "Audit", err)
	check(r, b.Balanced(), "P14 the books balance: got %+v", b)
}

// fromNode is what a node may come to, and where that leads its job.
type fromNode struct {
	name string
	settle.Delivered
	state   settle.State
	attempt settle.AttemptReason // recorded; "" = none
}

var outcomes = []fromNode{
	{"a result", settle.Delivered{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Reason: settle.AttemptOK, Output: []byte("\x00out"), Node: "node-b"}}, settle.Pending, ""},
	{"an error", settle.Delivered{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptStepError, Error: "out of memory"}}, settle.Pending, settle.AttemptStepError},
	{"an error that a retry helps", settle.Delivered{Retryable: true, Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptStepError, Error: "busy", After: time.Minute}}, settle.Pending, settle.AttemptStepError},
	{"a terminal error", settle.Delivered{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptStepError, Error: "bad frame"}}, settle.Dead, settle.AttemptStepError},
	{"garbage", settle.Delivered{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptProtocol, Error: "no JSON"}}, settle.Pending, settle.AttemptProtocol},
}

// kept inserts a job that runs with a ticket, for which an answer is kept.
func (r *rig) kept(ticket string, d settle.Delivered) settle.ClaimedJob {
	r.Helper()
	c := r.submitted(task(settle.EnqueueOpts{}), submission(ticket))
	d.Ticket = id(ticket)
	if said := r.says(c.ID, d); said != settle.Done {
		r.Fatalf("an answer before the park: got %s, want %s", said, settle.Done)
	}
	return c
}

func keeps(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	r.advance(time.Second)
	before := r.job(c.ID)
	d := settle.Delivered{Ticket: id("t"), Retryable: true, Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptStepError,
		Error: "no", Output: []byte("x"), Node: "n", After: 1500 * time.Millisecond}}
	is(r, "answer before the park", r.says(c.ID, d), settle.Done)
	r.goesOn(before)
	is(r, "wait", *r.job(c.ID).Wait, submission("t"))
	r.keeps("a reader", r.job(c.ID), d)
	r.keeps("Waits", r.waits(c.ID)[0], d)
	r.keeps("a list", r.list(settle.Filter{})[0], d)
	is(r, "lost by the renewal", len(r.renew(c)), 0)
	is(r, "claimed meanwhile", len(r.claim()), 0)
	r.advance(lease + tick)
	r.keeps("Overdue", r.overdue(settle.Cursor{}, page).Jobs[0], d)
	r.balanced()
}

// keeps reports a job that does not show the answer that was kept.
func (r *rig) keeps(where string, j settle.Job, want settle.Delivered) {
	r.Helper()
	if j.Answer == nil {
		r.Fatalf("%s shows the answer that was kept: got nothing", where)
	}
	is(r, "what "+where+" shows", fmt.Sprintf("%+v", *j.Answer), fmt.Sprintf("%+v", want))
}

func parkDelivers(r *rig) {
	for _, o := range outcomes {
		c := r.kept(o.name, o.Delivered)
		r.advance(time.Second)
		r.moves(on(c, settle.Parked{Wait: submission(o.name)}))
		r.delivered(c, o)
		j := r.job(c.ID)
		if o.attempt == "" {
			near(r, "due after "+o.name, j.Due, r.now())
			is(r, "the job that is claimed", r.claimOne().ID, c.ID)
		}
		if o.After > 0 {
			near(r, "due after "+o.name, j.Due, r.now().Add(o.After))
		}
		r.finishNow(c.ID)
	}
	r.balanced()
}

// delivered reports a job that is not where the outcome leads.
func (r *rig) delivered(c settle.ClaimedJob, o fromNode) {
	r.Helper()
	name := o.name
	j := r.job(c.ID)
	is(r, "state after "+name, j.State, o.state)
	is(r, "crashes after "+name, j.Crashed, 0)
	check(r, j.Wait == nil && j.Answer == nil, "nothing is left to wait for after %s: %+v, %+v", name, j.Wait, j.Answer)
	if o.attempt == "" {
		is(r, "attempts recorded after "+name, len(j.Attempts), 0)
		is(r, "excused after "+name, j.Excused, 1)
		is(r, "steps after "+name, len(j.Steps), 1)
		r.isStep(j.Steps, settle.StepResult{Step: "s", Ticket: id(name), Node: o.Node, Output: o.Output})
		return
	}
	a := r.attempt(j, 0)
	is(r, "attempts recorded after "+name, len(j.Attempts), 1)
	is(r, "reason after "+name, a.Reason, o.attempt)
	is(r, "error after "+name, a.Error, o.Error)
	is(r, "ticket after "+name, a.Ticket, id(name))
	is(r, "node after "+name, a.Node, "node-a")
	is(r, "what the node said of a retry after "+name, a.Retryable, o.Retryable)
	is(r, "steps after "+name, len(j.Steps), 0)
}

func parkNudges(r *rig) {
	e := r.listen(queue)
	for _, c := range r.claim() {
		r.moves(on(c, succeeded("1")))
	}
	c := r.started(task(settle.EnqueueOpts{Tenant: "b"}))
	n := 0
	park := func() {
		n++
		w := submission(fmt.Sprint("t", n))
		w.Step = fmt.Sprint("s", n)
		r.submits(&c, w)
		is(r, "an answer before the park", r.says(c.ID, answer(fmt.Sprint("t", n), "out")), settle.Done)
		r.moves(on(c, settle.Parked{Wait: w}))
		c = r.claimOne()
	}
	e.mu.Lock()
	clear(e.heard)
	e.mu.Unlock()
	park()
	e.until(r, c.Lane, park)
}

func keepsFirst(r *rig) {
	c := r.kept("t", answer("t", "first"))
	is(r, "another answer", r.says(c.ID, stepFailed("t", false).(settle.Delivered)), settle.Already)
	is(r, "the same once more", r.says(c.ID, answer("t", "first")), settle.Already)
	r.keeps("a reader", r.job(c.ID), answer("t", "first"))
	r.moves(on(c, settle.Parked{Wait: submission("t")}))
	is(r, "attempts recorded", len(r.job(c.ID).Attempts), 0)
	r.isStep(r.job(c.ID).Steps, settle.StepResult{Step: "s", Ticket: id("t"), Node: "node-a", Output: []byte("first")})
	r.balanced()
}

func keepsForTicket(r *rig) {
	c := r.started(withPolicy(settle.Policy{StepAttempts: 5}))
	is(r, "an answer while no ticket is out", r.says(c.ID, answer("t1", "x")), settle.Stale)
	r.submits(&c, submission("t1"))
	is(r, "an answer for a ticket of nobody", r.says(c.ID, answer("other", "x")), settle.Stale)
	is(r, "an answer without a ticket", r.says(c.ID, settle.Delivered{}), settle.Stale)
	late := r.seen(c.ID, settle.Kept{Delivered: answer("t1", "late")})
	r.crash()
	is(r, "one that was decided before the crash", r.apply(late)[0], settle.Stale)
	c = r.again(c.ID)
	is(r, "the same while the next attempt runs", r.apply(late)[0], settle.Stale)
	r.submits(&c, submission("t2"))
	is(r, "the same while the next ticket is out", r.apply(late)[0], settle.Stale)
	check(r, r.job(c.ID).Answer == nil, "nothing is kept: got %+v", r.job(c.ID).Answer)
	r.moves(on(c, settle.Parked{Wait: submission("t2")}))
	is(r, "state", r.job(c.ID).State, settle.Awaiting)
	r.balanced()
}

func keepMeetsPark(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	early := r.seen(c.ID, settle.Kept{Delivered: answer("t", "out")})
	r.moves(on(c, settle.Parked{Wait: submission("t")}))
	is(r, "the answer as decided before the park", r.apply(early)[0], settle.Stale)
	is(r, "state", r.job(c.ID).State, settle.Awaiting)
	is(r, "the answer as decided after it", r.says(c.ID, answer("t", "out")), settle.Done)
	is(r, "state", r.job(c.ID).State, settle.Pending)
	is(r, "steps", len(r.job(c.ID).Steps), 1)
	r.balanced()
}

func leaseDelivers(r *rig) {
	for _, o := range outcomes {
		c := r.kept(o.name, o.Delivered)
		r.advance(lease + tick)
		sweep := r.look()
		is(r, "moved by the sweep", r.sweep(), 1)
		r.delivered(c, o)
		before := r.job(c.ID)
		is(r, "another sweep that saw the same", r.apply(sweep...)[0], settle.Already)
		r.untouched(before)
		is(r, "the late worker's success", r.apply(on(c, succeeded("1")))[0], settle.Stale)
		is(r, "the late worker's failure", r.apply(on(c, submitFailed(false)))[0], settle.Stale)
		r.untouched(before)
		r.finishNow(c.ID)
	}
	r.balanced()
}

func keepMeetsSweep(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	r.advance(lease + tick)
	sweep := r.look()
	is(r, "an answer before the sweep acts", r.says(c.ID, answer("t", "out")), settle.Done)
	r.comesTooLate(sweep, c.ID)
	is(r, "moved by the next sweep", r.sweep(), 1)
	is(r, "crashes", r.job(c.ID).Crashed, 0)
	is(r, "steps", len(r.job(c.ID).Steps), 1)
	r.balanced()
}

func keptAndRenewed(r *rig) {
	c := r.kept("t", answer("t", "out"))
	r.advance(lease + tick)
	sweep := r.look()
	is(r, "lost by the renewal", len(r.renew(c)), 0)
	r.comesTooLate(sweep, c.ID)
	r.keeps("a reader", r.job(c.ID), answer("t", "out"))
	r.moves(on(c, settle.Parked{Wait: submission("t")}))
	is(r, "steps", len(r.job(c.ID).Steps), 1)
	r.balanced()
}

func keptAndOverdue(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{Deadline: 10 * time.Second}), submission("t"))
	is(r, "an answer before the park", r.says(c.ID, answer("t", "out")), settle.Done)
	is(r, "moved by a sweep at the deadline", r.sweptAfter(10*time.Second+tick), 1)
	is(r, "reason", r.job(c.ID).Reason, settle.EndExpired)
	c = r.started(task(settle.EnqueueOpts{Deadline: lease + time.Second}))
	r.submits(&c, submission("u"))
	is(r, "an answer before the park", r.says(c.ID, answer("u", "out")), settle.Done)
	is(r, "moved by a sweep after lease and deadline", r.sweptAfter(lease+2*time.Second), 1)
	is(r, "state once the lease is over", r.job(c.ID).State, settle.Pending)
	is(r, "claimed after the deadline", len(r.claim()), 0)
	is(r, "moved by the next sweep", r.sweep(), 1)
	is(r, "reason", r.job(c.ID).Reason, settle.EndExpired)
	is(r, "steps", len(r.job(c.ID).Steps), 1)
	r.balanced()
}

func parkRepeated(r *rig) {
	for _, o := range outcomes {
		c := r.kept(o.name, o.Delivered)
		park := on(c, settle.Parked{Wait: submission(o.name)})
		r.moves(park)
		r.parkedAlready(o.name, park)
		if j := r.job(c.ID); j.State == settle.Pending {
			second := r.again(c.ID)
			r.parkedAlready(o.name+" and the next claim", park)
			r.submits(&second, submission(o.name+" 2"))
			r.parkedAlready(o.name+" and the next ticket", park)
			r.moves(on(second, succeeded("1")))
		}
		r.parkedAlready(o.name+" and the end", park)
	}
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	park := on(c, settle.Parked{Wait: submission("t")})
	r.moves(park)
	r.parkedAlready("nothing", park)
	r.advance(time.Hour + tick)
	is(r, "moved by the sweep", r.sweep(), 1)
	r.parkedAlready("the end of its wait", park)
	r.balanced()
}

// parkedAlready reports a repeated park that is not known, or moves anything.
func (r *rig) parkedAlready(after string, park settle.Transition) {
	r.Helper()
	before := r.job(park.Job)
	is(r, "the park once more after "+after, r.apply(park)[0], settle.Already)
	r.untouched(before)
}

// isForgotten records the same ticket for a next attempt, which no program does:
// what was kept for it would show.
func (r *rig) isForgotten(after string, n settle.ID, ticket string) {
	r.Helper()
	if r.job(n).State != settle.Pending {
		r.moves(r.seen(n, settle.RedriveAsked{}))
	}
	c := r.again(n)
	r.submits(&c, submission(ticket))
	check(r, r.job(n).Answer == nil, "nothing is kept after %s: got %+v", after, r.job(n).Answer)
	r.moves(on(c, settle.Parked{Wait: submission(ticket)}))
	is(r, "state after a park beyond "+after, r.job(n).State, settle.Awaiting)
	r.finishNow(n)
}

func keptGoes(r *rig) {
	for _, o := range outcomes {
		c := r.kept(o.name, o.Delivered)
		r.moves(on(c, settle.Parked{Wait: submission(o.name)}))
		r.isForgotten("the park that delivered "+o.name, c.ID, o.name)
	}
	for name, ev := range map[string]settle.Event{"a failure": submitFailed(false), "a terminal failure": hopeless("no"), "a cancel": settle.CancelAsked{}} {
		c := r.kept(name, answer(name, "out"))
		if _, person := ev.(settle.CancelAsked); person {
			r.moves(r.seen(c.ID, ev))
		} else {
			r.moves(on(c, ev))
		}
		r.isForgotten(name, c.ID, name)
	}
	c := r.kept("swept", answer("swept", "out"))
	r.crash()
	r.isForgotten("a sweep that delivered it", c.ID, "swept")
	r.balanced()
}

func keptPruned(r *rig) {
	living := r.kept("living", answer("living", "out"))
	for name, ev := range map[string]settle.Event{"a refusal": submitFailed(true), "a deferral": settle.Deferred{Reason: settle.AttemptShutdown}} {
		c := r.kept(name, answer(name, "out"))
		r.moves(on(c, ev))
		r.prune(settle.Keep{}, page)
		r.isForgotten(name+" and Prune", c.ID, name)
	}
	c := r.kept("replaced", answer("replaced", "out"))
	r.submits(&c, submission("new"))
	r.prune(settle.Keep{}, page)
	r.submits(&c, submission("replaced"))
	check(r, r.job(c.ID).Answer == nil, "nothing is kept for a ticket that was replaced, after Prune: got %+v", r.job(c.ID).Answer)
	c = r.kept("removed", answer("removed", "out"))
	r.moves(on(c, succeeded("1")))
	is(r, "removed", r.remove(c.ID), 1)
	r.prune(settle.Keep{}, page)
	r.keeps("a reader after Prune", r.job(living.ID), answer("living", "out"))
	r.moves(on(living, settle.Parked{Wait: submission("living")}))
	is(r, "steps of the living", len(r.job(living.ID).Steps), 1)
	r.balanced()
}

func keptBytes(r *rig) {
	for i, out := range append(bytePayloads, string(make([]byte, settle.MaxPayload))) {
		ticket := fmt.Sprint(i)
		c := r.kept(ticket, answer(ticket, out))
		r.moves(on(c, settle.Parked{Wait: submission(ticket)}))
		r.isStep(r.job(c.ID).Steps, settle.StepResult{Step: "s", Ticket: id(ticket), Node: "node-a", Output: []byte(out)})
		r.finishNow(c.ID)
	}
}
