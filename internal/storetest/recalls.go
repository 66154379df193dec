package storetest

import (
	"encoding/json"
	"time"

	"github.com/settle-go/settle"
)

var recallClauses = []clause{
	{"a node that may still be at work is told once to stop", recalls},
	{"a node that has answered or has not begun is not told to stop", recallsNot},
	{"a stale transition tells no node to stop", recallStale},
	{"a recall is a job like any other", recallIsAJob},
}

func recallable(ticket string) settle.Wait {
	w := submission(ticket)
	w.Recall = true
	return w
}

// recalled are the recalls that were inserted so far.
func (r *rig) recalled() []settle.Recall {
	r.Helper()
	var all []settle.Recall
	for _, j := range r.list(settle.Filter{Kind: settle.RecallKind}) {
		var in settle.Recall
		ok(r, "input of a recall", json.Unmarshal(r.job(j.ID).Input, &in))
		all = append(all, in)
	}
	return all
}

// abandonings lead a job whose ticket is out away from its node. park says that
// it waits for the answer by then.
var abandonings = []struct {
	name  string
	park  bool
	leads func(*rig, settle.ClaimedJob) settle.Transition
}{
	{"a cancel while it waits", true, func(r *rig, c settle.ClaimedJob) settle.Transition {
		return r.seen(c.ID, settle.CancelAsked{})
	}},
	{"a cancel while it runs", false, func(r *rig, c settle.ClaimedJob) settle.Transition {
		return r.seen(c.ID, settle.CancelAsked{})
	}},
	{"the deadline", true, func(r *rig, c settle.ClaimedJob) settle.Transition {
		r.clock.Set(r.job(c.ID).Deadline)
		return r.lookAt(c.ID)
	}},
	{"the end of the wait", true, func(r *rig, c settle.ClaimedJob) settle.Transition {
		r.advance(time.Hour + tick)
		return r.lookAt(c.ID)
	}},
	{"the end of the lease", false, func(r *rig, c settle.ClaimedJob) settle.Transition {
		r.advance(lease + tick)
		return r.lookAt(c.ID)
	}},
	{"a submission without a reply", false, func(_ *rig, c settle.ClaimedJob) settle.Transition { return on(c, submitFailed(false)) }},
	{"a terminal failure", false, func(_ *rig, c settle.ClaimedJob) settle.Transition { return on(c, hopeless("no")) }},
	{"a success without the answer", false, func(_ *rig, c settle.ClaimedJob) settle.Transition { return on(c, succeeded("1")) }},
	{"a shutdown", false, func(_ *rig, c settle.ClaimedJob) settle.Transition {
		return on(c, settle.Deferred{Reason: settle.AttemptShutdown})
	}},
	{"a snooze", false, func(_ *rig, c settle.ClaimedJob) settle.Transition {
		return on(c, settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Minute})
	}},
	{"a wish of the handler's own", false, func(_ *rig, c settle.ClaimedJob) settle.Transition {
		return on(c, settle.Deferred{Reason: "words", After: time.Minute})
	}},
}

// lookAt is what a sweep decides now of one job.
func (r *rig) lookAt(n settle.ID) settle.Transition {
	r.Helper()
	for _, t := range r.look() {
		if t.Job == n {
			return t
		}
	}
	r.Fatalf("a sweep sees job %s: it is not overdue", n)
	return settle.Transition{}
}

func recalls(r *rig) {
	for i, a := range abandonings {
		ticket := string(rune('a' + i))
		c := r.submitted(task(settle.EnqueueOpts{Tenant: "t", Deadline: 24 * time.Hour}), recallable(ticket))
		if a.park {
			r.moves(on(c, settle.Parked{Wait: recallable(ticket)}))
		}
		is(r, "recalls before "+a.name, len(r.recalled()), i)
		t := a.leads(r, c)
		r.moves(t)
		r.apply(t, t)
		got := r.recalled()
		if len(got) != i+1 {
			r.Fatalf("recalls after %s: got %d, want %d", a.name, len(got), i+1)
		}
		is(r, "recall after "+a.name, got[i], settle.Recall{Job: c.ID, Step: "s", Attempt: id(ticket), Node: "node-a", Pool: "pool"})
		if r.job(c.ID).State.Live() {
			r.moves(r.seen(c.ID, settle.CancelAsked{}))
		}
	}
	is(r, "recalls in all", len(r.recalled()), len(abandonings))
	r.balanced()
}

func recallsNot(r *rig) {
	for name, ev := range map[string]settle.Event{"an answer": answer("t", "out"), "a failure": stepFailed("t", false),
		"a terminal answer": settle.Delivered{Ticket: id("t"), Outcome: settle.Outcome{Verdict: settle.VerdictTerminal}}} {
		c := r.submitted(task(settle.EnqueueOpts{}), recallable("t"))
		r.moves(on(c, settle.Parked{Wait: recallable("t")}))
		r.moves(r.seen(c.ID, ev))
		is(r, "recalls after "+name, len(r.recalled()), 0)
		r.finishNow(c.ID)
		c = r.submitted(task(settle.EnqueueOpts{}), recallable("t"))
		is(r, name+" that is kept", r.says(c.ID, ev.(settle.Delivered)), settle.Done)
		r.moves(on(c, settle.Parked{Wait: recallable("t")}))
		is(r, "recalls after "+name+" that was kept", len(r.recalled()), 0)
		r.finishNow(c.ID)
		c = r.submitted(task(settle.EnqueueOpts{}), recallable("t"))
		is(r, name+" that is kept", r.says(c.ID, ev.(settle.Delivered)), settle.Done)
		r.crash()
		is(r, "recalls after "+name+" that was kept and a crash", len(r.recalled()), 0)
		r.finishNow(c.ID)
	}
	for name, ev := range map[string]settle.Event{"a refusal": submitFailed(true), "a busy node": settle.Deferred{Reason: settle.AttemptBusy},
		"no node": settle.Deferred{Reason: settle.AttemptNoNode}, "a limit": settle.Deferred{Reason: settle.AttemptRateLimited}} {
		c := r.submitted(task(settle.EnqueueOpts{}), recallable("t"))
		r.moves(on(c, ev))
		is(r, "recalls after "+name, len(r.recalled()), 0)
		r.finishNow(c.ID)
	}
	c := r.submitted(task(settle.EnqueueOpts{}), submission("t"))
	r.moves(r.seen(c.ID, settle.CancelAsked{}))
	is(r, "recalls of a node that wants none", len(r.recalled()), 0)
	r.balanced()
}

// finishNow ends what is still live of a job.
func (r *rig) finishNow(n settle.ID) {
	r.Helper()
	if r.job(n).State.Live() {
		r.moves(r.seen(n, settle.CancelAsked{}))
	}
}

func recallStale(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{}), recallable("t"))
	cancel := r.seen(c.ID, settle.CancelAsked{})
	is(r, "an answer that is kept", r.says(c.ID, answer("t", "out")), settle.Done)
	r.moves(on(c, settle.Parked{Wait: recallable("t")}))
	is(r, "the cancel decided before", r.apply(cancel)[0], settle.Stale)
	is(r, "recalls", len(r.recalled()), 0)
	r.balanced()
}

func recallIsAJob(r *rig) {
	c := r.submitted(task(settle.EnqueueOpts{Tenant: "a"}), recallable("t"))
	r.moves(r.seen(c.ID, settle.CancelAsked{}))
	got := r.first(r.ask(settle.ClaimReq{Kinds: []string{settle.RecallKind}}).Jobs)
	is(r, "queue", got.Queue, queue)
	is(r, "tenant", got.Tenant, "a")
	check(r, got.Remaining <= time.Hour, "it does not outlive its use: %s are left", got.Remaining)
	r.moves(on(got, succeeded("1")))
	r.balanced()
}
