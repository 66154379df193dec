package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var crashClauses = []clause{
	{"B-001 a hard kill with budget left is recovered by another handle", killedWorker},
	{"B-002 a job is recovered although its worker's number lives on", sameWorkerName},
	{"B-003 who does not know the kind recovers the job and never ends it", unknownKindRecovered},
	{"B-005 leases that run out do not end a job with budget left", leasesRunOut},
	{"B-005 the last lease that runs out ends the job with a reason", lastLeaseRunsOut},
	{"the crash budget names the end when several are spent", crashBudgetFirst},
	{"P10 a crash stays charged", crashIsCharged},
}

func killedWorker(r *rig) {
	n := r.add(withPolicy(settle.Policy{Attempts: 3}))
	a := r
	if r.h.Again != nil {
		a = r.beside()
	}
	is(r, "claimed by A", a.claimOne().ID, n) // A ends here without a word
	r.advance(lease + tick)
	is(r, "moved by the sweep", r.sweep(), 1)
	j := r.job(n)
	is(r, "state", j.State, settle.Pending)
	is(r, "reason of attempt 1", r.attempt(j, 0).Reason, settle.AttemptWorkerLost)
	c := r.again(n)
	is(r, "attempt", c.Attempt, 2)
	r.moves(on(c, succeeded("1")))
	is(r, "state", r.job(n).State, settle.Succeeded)
	is(r, "running", r.running(), 0)
}

func sameWorkerName(r *rig) {
	old := r.started(task(settle.EnqueueOpts{}))
	fresh := r.started(task(settle.EnqueueOpts{})) // by a new process that calls itself the same
	r.advance(lease / 2)
	is(r, "lost", len(r.renew(fresh)), 0)
	r.advance(lease/2 + tick)
	is(r, "moved by the sweep", r.sweep(), 1)
	is(r, "state", r.job(old.ID).State, settle.Pending)
	same(r, "lost", r.renew(old), []settle.ID{old.ID})
	is(r, "answer to the old attempt", r.apply(on(old, succeeded("1")))[0], settle.Stale)
	r.again(old.ID)
	same(r, "lost to the next attempt of the same worker", r.renew(old), []settle.ID{old.ID})
}

func unknownKindRecovered(r *rig) {
	b := of(other, settle.EnqueueOpts{})
	n := r.add(b)
	c := r.first(r.ask(settle.ClaimReq{Kinds: []string{other}, Worker: 2}).Jobs)
	r.advance(lease + tick)
	for range 3 {
		r.sweep()
		is(r, "claimed by who does not know the kind", len(r.claim()), 0)
	}
	j := r.job(n)
	is(r, "state", j.State, settle.Pending)
	is(r, "attempts", j.Attempt, 1)
	r.advance(time.Hour)
	before := r.age(queue, other).Waiting
	r.advance(time.Hour)
	is(r, "growth of the waiting age", r.age(queue, other).Waiting-before, time.Hour)
	c = r.first(r.ask(settle.ClaimReq{Kinds: []string{other}, Worker: 2}).Jobs)
	is(r, "attempt", c.Attempt, 2)
	r.moves(on(c, succeeded("1")))
}

func leasesRunOut(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 5}))
	for range 2 {
		r.crash()
		is(r, "state", r.job(c.ID).State, settle.Pending)
		r.untilDue(c.ID)
		r.claimAny()
	}
	r.moves(r.job(c.ID).Decide(succeeded("1"), jitter, false))
	is(r, "state", r.job(c.ID).State, settle.Succeeded)
	is(r, "attempts", r.job(c.ID).Attempt, 3)
}

// claimAny claims what is due, suspects too.
func (r *rig) claimAny() settle.ClaimedJob {
	r.Helper()
	if got := r.claim(); len(got) > 0 {
		return got[0]
	}
	return r.first(r.claimSuspect())
}

func lastLeaseRunsOut(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 2}))
	r.crash()
	r.again(c.ID)
	r.crash()
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndExhausted)
	is(r, "attempts recorded", len(j.Attempts), 2)
	is(r, "reason of the last attempt", r.attempt(j, 1).Reason, settle.AttemptWorkerLost)
	check(r, r.attempt(j, 1).Error != "", "the last attempt says what happened")
}

func crashBudgetFirst(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 2, Crashes: 2}))
	r.crash()
	r.untilDue(c.ID)
	r.claimAny()
	r.crash()
	is(r, "reason", r.job(c.ID).Reason, settle.EndWorkerLost)
}

func crashIsCharged(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.crash()
	j := r.job(c.ID)
	is(r, "charged", j.Charged(), 1)
	is(r, "excused", j.Excused, 0)
	is(r, "attempts", j.Attempt, 1)
}
