package storetest

import (
	"encoding/json"
	"time"

	"github.com/settle-go/settle"
)

var hookClauses = []clause{
	{"OnEnd tells of an end by the holder", hookByHolder},
	{"OnEnd tells of an end by a sweep", hookBySweep},
	{"OnEnd tells of an end by a person", hookByPerson},
	{"OnEnd tells nothing while the job lives", hookNotYet},
	{"OnEnd tells of an end once however often it is repeated", hookOnce},
	{"OnEnd tells nothing of a stale end", hookNotStale},
	{"OnEnd tells of each end of a redriven job", hookEachEnd},
	{"OnEnd of one job does not depend on its neighbours", hookAmongStale},
	{"a hook job is a job like any other", hookIsAJob},
}

const told = "told" // the kind that OnEnd names

func hooked(o settle.EnqueueOpts) settle.New {
	o.Policy = &settle.Policy{Attempts: 2, Redrives: 5, OnEnd: told}
	return task(o)
}

// hooks are the ends that were told so far.
func (r *rig) hooks() []settle.Ended {
	r.Helper()
	var all []settle.Ended
	for _, j := range r.list(settle.Filter{Kind: told}) {
		var in settle.Ended
		ok(r, "input of a hook job", json.Unmarshal(r.job(j.ID).Input, &in))
		all = append(all, in)
	}
	return all
}

// told1 is the one end that must have been told.
func (r *rig) told1() settle.Ended {
	r.Helper()
	all := r.hooks()
	if len(all) != 1 {
		r.Fatalf("hook jobs: got %d, want one", len(all))
	}
	return all[0]
}

func hookByHolder(r *rig) {
	c := r.started(hooked(settle.EnqueueOpts{Tenant: "a"}))
	r.moves(on(c, succeeded("1")))
	is(r, "what is told", r.told1(), settle.Ended{Job: c.ID, Kind: work, Queue: queue, Tenant: "a", State: settle.Succeeded, Reason: settle.EndOK, Attempt: 1})
}

func hookBySweep(r *rig) {
	n := r.add(hooked(settle.EnqueueOpts{Deadline: time.Minute}))
	is(r, "moved by the sweep", r.sweptAfter(time.Minute+tick), 1)
	is(r, "what is told", r.told1(), settle.Ended{Job: n, Kind: work, Queue: queue, State: settle.Dead, Reason: settle.EndExpired, Error: "the deadline passed"})
}

func hookByPerson(r *rig) {
	c := r.started(hooked(settle.EnqueueOpts{}))
	r.moves(r.seen(c.ID, settle.CancelAsked{Why: "no need"}))
	is(r, "what is told", r.told1(), settle.Ended{Job: c.ID, Kind: work, Queue: queue, State: settle.Cancelled, Reason: settle.EndCancelled, Attempt: 1, Error: "no need"})
}

func hookNotYet(r *rig) {
	c := r.started(hooked(settle.EnqueueOpts{}))
	r.moves(on(c, failed("no")))
	is(r, "told after a retry", len(r.hooks()), 0)
}

func hookOnce(r *rig) {
	c := r.started(hooked(settle.EnqueueOpts{}))
	t := on(c, hopeless("no"))
	r.moves(t)
	r.apply(t, t)
	r.apply(t)
	is(r, "what is told", r.told1().Error, "no")
}

func hookNotStale(r *rig) {
	c := r.started(hooked(settle.EnqueueOpts{}))
	r.crash()
	r.apply(on(c, succeeded("1")), on(c, hopeless("no")))
	is(r, "told", len(r.hooks()), 0)
}

func hookEachEnd(r *rig) {
	n := r.died(hooked(settle.EnqueueOpts{}))
	r.moves(r.seen(n, settle.RedriveAsked{}))
	r.moves(r.seen(n, settle.CancelAsked{})) // no attempt in between
	r.moves(r.seen(n, settle.RedriveAsked{}))
	r.moves(on(r.claimOne(), succeeded("1")))
	var states []settle.State
	for _, e := range r.hooks() {
		states = append(states, e.State)
	}
	same(r, "ends that are told", states, []settle.State{settle.Dead, settle.Cancelled, settle.Succeeded})
}

func hookAmongStale(r *rig) {
	a, b := r.started(hooked(settle.EnqueueOpts{})), r.started(hooked(settle.EnqueueOpts{}))
	r.moves(on(a, failed("no")))
	same(r, "answers", r.apply(on(a, succeeded("1")), on(b, succeeded("1"))), []settle.Applied{settle.Stale, settle.Done})
	is(r, "what is told", r.told1().Job, b.ID)
}

func hookIsAJob(r *rig) {
	r.ended(hooked(settle.EnqueueOpts{Queue: queue, Tenant: "a"}), succeeded("1"))
	got := r.ask(settle.ClaimReq{Kinds: []string{told}}).Jobs
	c := r.first(got)
	is(r, "queue", c.Queue, queue)
	is(r, "tenant", c.Tenant, "a")
	is(r, "key", c.Key, "")
	is(r, "policy", c.Policy, settle.DefaultPolicy())
	j := r.job(c.ID)
	near(r, "deadline", j.Deadline, Start.Add(30*24*time.Hour))
	r.moves(on(c, succeeded("1")))
}
