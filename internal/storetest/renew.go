package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var renewClauses = []clause{
	{"a renewal extends the lease from now", renewExtends},
	{"a renewed job is not overdue and not claimed", renewKeeps},
	{"P1 a renewal never reaches past the deadline", renewWithinDeadline},
	{"P3 a renewal tells what is no longer held", renewTellsLost},
	{"P3 a lost job does not keep its neighbours from being renewed", renewNeighbours},
	{"P3 a renewal can not bring back an attempt that has been ended", renewRevivesNothing},
	{"P3 another worker can not renew", renewOtherWorker},
	{"a renewal finds a job by its id alone", renewByID},
	{"a renewal after the lease and before a sweep keeps the job", renewLate},
	{"a renewal changes nothing but the alarm", renewChangesAlarmOnly},
	{"a renewal of nothing and of unknown jobs is fine", renewNothing},
}

func renewExtends(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(10 * time.Second)
	is(r, "lost", len(r.renew(c)), 0)
	near(r, "end of the lease", r.job(c.ID).Alarm, r.now().Add(lease))
}

func renewKeeps(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	for range 6 {
		r.advance(lease - time.Second)
		is(r, "lost", len(r.renew(c)), 0)
		is(r, "moved by the sweep", r.sweep(), 0)
		is(r, "claimed by others", len(r.claim()), 0)
	}
	r.moves(on(c, succeeded("1")))
}

func renewWithinDeadline(r *rig) {
	c := r.started(task(settle.EnqueueOpts{Deadline: 40 * time.Second}))
	r.advance(20 * time.Second)
	r.renew(c)
	near(r, "end of the lease", r.job(c.ID).Alarm, Start.Add(40*time.Second))
	r.advance(20*time.Second + tick)
	r.renew(c)
	is(r, "ended by the sweep", r.sweep(), 1)
	is(r, "reason", r.job(c.ID).Reason, settle.EndExpired)
}

func renewTellsLost(r *rig) {
	var all []settle.ClaimedJob
	for range 7 {
		all = append(all, r.started(withPolicy(settle.Policy{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})))
	}
	kept, success, dead, retried, claimedAgain, called, waits := all[0], all[1], all[2], all[3], all[4], all[5], all[6]
	r.apply(on(success, succeeded("1")), on(dead, hopeless("no")), on(claimedAgain, failed("no")), r.seen(called.ID, settle.CancelAsked{}), on(waits, parked("s", "t")))
	r.advance(time.Second)
	is(r, "the job that is claimed again", r.claimOne().ID, claimedAgain.ID)
	r.apply(on(retried, failedFor(time.Hour)))
	sameSet(r, "lost", r.renew(all...), []settle.ID{success.ID, dead.ID, retried.ID, claimedAgain.ID, called.ID, waits.ID})
	is(r, "state of the one that is held", r.job(kept.ID).State, settle.Running)
}

func renewNeighbours(r *rig) {
	a, b := r.started(task(settle.EnqueueOpts{})), r.started(task(settle.EnqueueOpts{}))
	r.moves(on(a, succeeded("1")))
	r.advance(10 * time.Second)
	same(r, "lost", r.renew(a, b), []settle.ID{a.ID})
	near(r, "end of the neighbour's lease", r.job(b.ID).Alarm, r.now().Add(lease))
}

func renewRevivesNothing(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.crash()
	same(r, "lost", r.renew(c), []settle.ID{c.ID})
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Pending)
	near(r, "alarm", j.Alarm, j.Deadline)
	second := r.again(c.ID)
	before := r.job(c.ID).Alarm
	r.advance(time.Second)
	same(r, "lost to the next attempt", r.renew(c), []settle.ID{c.ID})
	near(r, "the lease of the next attempt", r.job(c.ID).Alarm, before)
	is(r, "lost by the next attempt", len(r.renew(second)), 0)
}

func renewOtherWorker(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	before := r.job(c.ID).Alarm
	r.advance(time.Second)
	same(r, "lost", r.renewAs(worker+1, c), []settle.ID{c.ID})
	near(r, "end of the lease", r.job(c.ID).Alarm, before)
}

func renewByID(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	c.Handle = 0
	r.advance(time.Second)
	is(r, "lost", len(r.renew(c)), 0)
	near(r, "end of the lease", r.job(c.ID).Alarm, r.now().Add(lease))
}

func renewLate(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(time.Hour)
	is(r, "lost", len(r.renew(c)), 0)
	is(r, "moved by the sweep", r.sweep(), 0)
	r.moves(on(c, succeeded("1")))
}

func renewChangesAlarmOnly(r *rig) {
	c := r.started(task(settle.EnqueueOpts{Key: "k"}))
	before := r.job(c.ID)
	r.advance(time.Second)
	r.renew(c)
	after := r.job(c.ID)
	near(r, "alarm", after.Alarm, before.Alarm.Add(time.Second))
	is(r, "snapshot but for the time", steady(after), steady(before))
	r.moves(on(c, failed("decided on what the claim saw")))
}

// steady is what time alone does not change in a job's snapshot.
func steady(j settle.Job) settle.Snapshot {
	s := j.Snapshot()
	s.Remaining, s.WaitLeft = 0, 0
	return s
}

func renewNothing(r *rig) {
	is(r, "lost of nothing", len(r.renew()), 0)
	lost, err := r.store.Renew(r.ctx, worker, []settle.Held{{Job: id("nobody"), Attempt: 1}, {Job: id("handle"), Attempt: 1, Handle: 77}}, lease)
	ok(r, "Renew", err)
	sameSet(r, "lost", lost, []settle.ID{id("nobody"), id("handle")})
}
