package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var suspectClauses = []clause{
	{"a job whose next crash would end it is a suspect", becomesSuspect},
	{"an ordinary claim leaves suspects out and says that they wait", suspectsApart},
	{"suspects are claimed one at a time and nothing beside them", suspectsAlone},
	{"a claim of suspects when there are none brings nothing", noSuspects},
	{"a suspect that is not due does not wait", suspectNotDue},
	{"a claim of suspects respects queue kinds and holds", suspectRespects},
	{"P5 a suspect that crashes again is dead by worker_lost", suspectDies},
	{"a suspect that fails stays one and a redrive clears it", suspectRedriven},
}

// suspect inserts a job that crashes once, of two.
func (r *rig) suspect(o settle.EnqueueOpts) settle.ID {
	r.Helper()
	o.Policy = &settle.Policy{Crashes: 2}
	c := r.started(task(o))
	r.crash()
	return c.ID
}

func (r *rig) claimSuspect() []settle.ClaimedJob {
	r.Helper()
	return r.ask(settle.ClaimReq{Suspects: true}).Jobs
}

func becomesSuspect(r *rig) {
	c := r.started(task(settle.EnqueueOpts{})) // three crashes
	r.crash()
	is(r, "suspect after one crash of three", r.job(c.ID).Suspect, false)
	r.again(c.ID)
	r.crash()
	is(r, "suspect after two crashes of three", r.job(c.ID).Suspect, true)
	is(r, "suspect with one crash in all", r.job(r.started(withPolicy(settle.Policy{Crashes: 1})).ID).Suspect, false)
}

func suspectsApart(r *rig) {
	n := r.suspect(settle.EnqueueOpts{})
	r.untilDue(n)
	in := r.insert(task(settle.EnqueueOpts{}))[0]
	got := r.ask(settle.ClaimReq{Lanes: []settle.Lane{in.Lane}})
	same(r, "claimed", ids(got.Jobs), []settle.ID{in.ID})
	is(r, "suspects wait", got.Suspects, true)
	is(r, "state of the suspect", r.job(n).State, settle.Pending)
	is(r, "suspects wait for another kind", r.ask(settle.ClaimReq{Kinds: []string{other}}).Suspects, false)
}

func suspectsAlone(r *rig) {
	a := r.suspect(settle.EnqueueOpts{})
	r.advance(time.Minute)
	b := r.suspect(settle.EnqueueOpts{Tenant: "b"})
	r.advance(time.Minute)
	r.add(task(settle.EnqueueOpts{}))
	first, second := r.claimSuspect(), r.claimSuspect()
	is(r, "claimed first", len(first), 1)
	is(r, "claimed second", len(second), 1)
	sameSet(r, "both", append(ids(first), ids(second)...), []settle.ID{a, b})
	is(r, "claimed third", len(r.claimSuspect()), 0)
	is(r, "suspects wait", r.ask(settle.ClaimReq{}).Suspects, false)
	is(r, "attempt of a claimed suspect", r.first(first).Attempt, 2)
}

func noSuspects(r *rig) {
	r.add(task(settle.EnqueueOpts{}))
	is(r, "claimed", len(r.claimSuspect()), 0)
	is(r, "suspects wait", r.ask(settle.ClaimReq{}).Suspects, false)
}

func suspectNotDue(r *rig) {
	n := r.suspect(settle.EnqueueOpts{})
	check(r, r.job(n).Due.After(r.now()), "a crashed job backs off")
	is(r, "claimed before it is due", len(r.claimSuspect()), 0)
	is(r, "suspects wait", r.ask(settle.ClaimReq{}).Suspects, false)
	r.untilDue(n)
	is(r, "suspects wait when it is due", r.ask(settle.ClaimReq{}).Suspects, true)
}

func suspectRespects(r *rig) {
	n := r.suspect(settle.EnqueueOpts{Tenant: "a"})
	r.untilDue(n)
	is(r, "claimed for another queue", len(r.ask(settle.ClaimReq{Suspects: true, Queue: "q2"}).Jobs), 0)
	is(r, "claimed for another kind", len(r.ask(settle.ClaimReq{Suspects: true, Kinds: []string{other}}).Jobs), 0)
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Minute})
	is(r, "claimed from a held lane", len(r.claimSuspect()), 0)
	r.advance(time.Minute + tick)
	is(r, "claimed after the hold", len(r.claimSuspect()), 1)
}

func suspectDies(r *rig) {
	n := r.suspect(settle.EnqueueOpts{})
	r.untilDue(n)
	is(r, "claimed", len(r.claimSuspect()), 1)
	r.crash()
	j := r.job(n)
	is(r, "state", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndWorkerLost)
	is(r, "crashes", j.Crashed, 2)
}

func suspectRedriven(r *rig) {
	n := r.suspect(settle.EnqueueOpts{})
	r.untilDue(n)
	r.moves(on(r.first(r.claimSuspect()), failed("no")))
	is(r, "suspect after a failure", r.job(n).Suspect, true)
	r.untilDue(n)
	r.moves(on(r.first(r.claimSuspect()), hopeless("no")))
	r.moves(r.seen(n, settle.RedriveAsked{}))
	is(r, "suspect after a redrive", r.job(n).Suspect, false)
	is(r, "claimed by an ordinary claim", r.claimOne().ID, n)
}
