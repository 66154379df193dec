package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var cancelClauses = []clause{
	{"a cancel ends a pending job at once", cancelPending},
	{"a cancel ends a running job at once and its attempt is recorded", cancelRunning},
	{"a cancel ends an awaiting job at once", cancelAwaiting},
	{"B-009.1 after an accepted cancel no outcome of the handler counts", cancelThenFinish},
	{"B-009.2 a cancel prepared before the end changes nothing", finishThenCancel},
	{"B-009.3 a job cancelled after its claim is lost at the first renewal", cancelAfterClaim},
	{"a cancelled job stays readable and is not claimed", cancelledStays},
	{"a cancel of a cancelled job is refused", cancelTwice},
}

func cancelPending(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Delay: time.Hour}))
	r.moves(r.seen(n, settle.CancelAsked{Why: "no need"}))
	j := r.job(n)
	is(r, "state", j.State, settle.Cancelled)
	is(r, "reason", j.Reason, settle.EndCancelled)
	is(r, "attempts recorded", len(j.Attempts), 0)
	is(r, "why", j.Note, "no need")
	near(r, "ended at", j.EndedAt, Start)
}

func cancelRunning(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(r.seen(c.ID, settle.CancelAsked{Why: "no need"}))
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Cancelled)
	is(r, "attempts recorded", len(j.Attempts), 1)
	is(r, "reason of the attempt", r.attempt(j, 0).Reason, settle.AttemptCancelled)
	is(r, "text of the attempt", r.attempt(j, 0).Error, "no need")
}

func cancelAwaiting(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, parked("s", "t")))
	late := r.seen(c.ID, answered("t", "1"))
	r.moves(r.seen(c.ID, settle.CancelAsked{}))
	is(r, "state", r.job(c.ID).State, settle.Cancelled)
	is(r, "answer to the node", r.apply(late)[0], settle.Stale)
	is(r, "steps", len(r.job(c.ID).Steps), 0)
}

func cancelThenFinish(r *rig) {
	for _, ev := range []settle.Event{succeeded("1"), failed("no"), hopeless("no")} {
		c := r.started(task(settle.EnqueueOpts{}))
		r.moves(r.seen(c.ID, settle.CancelAsked{}))
		is(r, "answer to the handler", r.apply(on(c, ev))[0], settle.Stale)
		is(r, "state", r.job(c.ID).State, settle.Cancelled)
		r.advance(24 * time.Hour)
		is(r, "claimed a day later", len(r.claim()), 0)
	}
}

func finishThenCancel(r *rig) {
	for _, ev := range []settle.Event{succeeded("1"), hopeless("no")} {
		c := r.started(task(settle.EnqueueOpts{}))
		wish := r.seen(c.ID, settle.CancelAsked{})
		r.moves(on(c, ev))
		before := r.job(c.ID)
		is(r, "answer to the cancel", r.apply(wish)[0], settle.Stale)
		r.untouched(before)
		is(r, "what a person is told then", r.seen(c.ID, settle.CancelAsked{}).Refusal, settle.RefusedEnded)
	}
}

func cancelAfterClaim(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(r.seen(c.ID, settle.CancelAsked{}))
	same(r, "lost", r.renew(c), []settle.ID{c.ID})
}

func cancelledStays(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	r.moves(r.seen(n, settle.CancelAsked{}))
	is(r, "claimed", len(r.claim()), 0)
	is(r, "input", string(r.job(n).Input), `{"n":1}`)
	is(r, "listed as cancelled", r.count(settle.Filter{States: []settle.State{settle.Cancelled}}), 1)
}

func cancelTwice(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	first, second := r.seen(n, settle.CancelAsked{Why: "a"}), r.seen(n, settle.CancelAsked{Why: "b"})
	r.moves(first)
	is(r, "a second person at the same moment", r.apply(second)[0], settle.Already)
	is(r, "a third person later", r.seen(n, settle.CancelAsked{}).Refusal, settle.RefusedEnded)
}
