package storetest

import (
	"slices"
	"time"

	"github.com/settle-go/settle"
)

var sweepClauses = []clause{
	{"P1 a lease that is over is overdue", overdueLease},
	{"P1 a wait that is over is overdue", overdueWait},
	{"P1 a deadline that has passed is overdue whatever the state", overdueDeadline},
	{"P1 nothing is overdue before its alarm", notYetOverdue},
	{"P4 overdue jobs come by their alarm and page by page", overduePages},
	{"P4 overdue jobs with one alarm come page by page too", overdueAlike},
	{"P4 a row that can not move does not hold the others", overdueStuck},
	{"P4 rows that end between two pages skip nothing", overdueMoving},
	{"Overdue tells the store's clock", overdueClock},
	{"B-006.1 a sweep that acts on an old picture of a finished job changes nothing", sweepAfterSuccess},
	{"B-006.2 a sweep that acts on an old picture of a reclaimed job changes nothing", sweepAfterReclaim},
	{"B-006 a renewal between look and act wins", sweepAfterRenewal},
	{"B-006 a renewal between look and a last end wins", lastEndAfterRenewal},
	{"B-006 a progress note between look and act wins", sweepAfterProgress},
	{"two sweeps at once end a lease once", twoSweeps},
	{"P1 B-005 every live job ends by the sweep after its deadline", everyLiveJobEnds},
}

func overdueLease(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(lease + tick)
	same(r, "overdue", ids(r.overdue(settle.Cursor{}, page).Jobs), []settle.ID{c.ID})
	r.sweep()
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Pending)
	is(r, "crashes", j.Crashed, 1)
	is(r, "reason", r.attempt(j, 0).Reason, settle.AttemptWorkerLost)
	is(r, "who was lost", r.attempt(j, 0).Worker, worker)
	is(r, "overdue afterwards", len(r.overdue(settle.Cursor{}, page).Jobs), 0)
}

func overdueWait(r *rig) {
	c := r.started(withPolicy(settle.Policy{Wait: time.Minute}))
	r.moves(on(c, parked("s", "t")))
	r.advance(time.Minute + tick)
	same(r, "overdue", ids(r.overdue(settle.Cursor{}, page).Jobs), []settle.ID{c.ID})
}

func overdueDeadline(r *rig) {
	o := settle.EnqueueOpts{Deadline: time.Minute}
	waits := r.started(task(o))
	r.moves(on(waits, parked("s", "t")))
	runs := r.started(task(o))
	pending := r.add(task(o))
	r.advance(time.Minute + tick)
	sameSet(r, "overdue", ids(r.overdue(settle.Cursor{}, page).Jobs), []settle.ID{waits.ID, runs.ID, pending})
	is(r, "moved", r.sweep(), 3)
	for _, n := range []settle.ID{waits.ID, runs.ID, pending} {
		is(r, "state", r.job(n).State, settle.Dead)
		is(r, "reason", r.job(n).Reason, settle.EndExpired)
	}
}

func notYetOverdue(r *rig) {
	o := settle.EnqueueOpts{Deadline: time.Hour}
	r.moves(on(r.started(task(o)), parked("s", "t")))
	r.started(task(o))
	r.insert(task(o), task(settle.EnqueueOpts{Delay: time.Second, Deadline: time.Hour}))
	r.advance(lease - tick)
	is(r, "overdue", len(r.overdue(settle.Cursor{}, page).Jobs), 0)
}

// expired inserts n jobs whose deadlines pass one tick after the other.
func (r *rig) expired(n int) []settle.ID {
	r.Helper()
	var jobs []settle.New
	for i := range n {
		jobs = append(jobs, task(settle.EnqueueOpts{Deadline: time.Second + time.Duration(n-i)*tick}))
	}
	got := r.addAll(jobs)
	slices.Reverse(got)
	r.advance(time.Minute)
	return got
}

func (r *rig) overdueIn(limit int, between func(settle.Overdue)) (all []settle.ID) {
	r.Helper()
	for after := (settle.Cursor{}); ; {
		over := r.overdue(after, limit)
		check(r, len(over.Jobs) <= limit, "a page has at most %d jobs: got %d", limit, len(over.Jobs))
		all = append(all, ids(over.Jobs)...)
		between(over)
		if over.Next == (settle.Cursor{}) {
			return all
		}
		after = over.Next
	}
}

func overduePages(r *rig) {
	want := r.expired(23)
	for _, limit := range []int{1, 5, 23, 100} {
		same(r, "overdue in order", r.overdueIn(limit, func(settle.Overdue) {}), want)
	}
}

func overdueAlike(r *rig) {
	var jobs []settle.New
	for range 10 {
		jobs = append(jobs, task(settle.EnqueueOpts{Deadline: time.Second}))
	}
	want := r.addAll(jobs)
	r.advance(time.Minute)
	sameSet(r, "overdue", r.overdueIn(3, func(settle.Overdue) {}), want)
}

func overdueStuck(r *rig) {
	want := r.expired(10)
	moved := func(over settle.Overdue) {
		for _, j := range over.Jobs {
			if !slices.Contains(want[:5], j.ID) { // the five in front can not be moved
				r.moves(j.Decide(j.Passed(true, true), jitter, true))
			}
		}
	}
	same(r, "overdue", r.overdueIn(3, moved), want)
	is(r, "dead", r.count(settle.Filter{States: []settle.State{settle.Dead}}), 5)
	same(r, "left", ids(r.overdue(settle.Cursor{}, page).Jobs), want[:5])
}

func overdueMoving(r *rig) {
	want := r.expired(30)
	same(r, "overdue", r.overdueIn(4, func(over settle.Overdue) { r.apply(decideOverdue(over.Jobs)...) }), want)
	is(r, "dead", r.count(settle.Filter{States: []settle.State{settle.Dead}}), 30)
}

func overdueClock(r *rig) {
	r.advance(time.Hour)
	near(r, "now", r.overdue(settle.Cursor{}, page).Now, r.now())
	r.expired(1)
	over := r.overdue(settle.Cursor{}, page)
	near(r, "now of a job", over.Jobs[0].Now, r.now())
	check(r, over.Jobs[0].Fence.Seen != 0, "an overdue job is handed out with the alarm that was seen")
}

// look is what a sweep decides now and carries out later.
func (r *rig) look() []settle.Transition {
	r.Helper()
	return decideOverdue(r.overdue(settle.Cursor{}, page).Jobs)
}

// comesTooLate reports a held sweep that changes anything.
func (r *rig) comesTooLate(sweep []settle.Transition, n settle.ID) {
	r.Helper()
	before := r.job(n)
	is(r, "jobs that the sweep saw", len(sweep), 1)
	same(r, "answer to the sweep", r.apply(sweep...), []settle.Applied{settle.Stale})
	r.untouched(before)
}

func sweepAfterSuccess(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(lease + tick)
	held := r.look()
	r.moves(on(c, succeeded("1")))
	r.comesTooLate(held, c.ID)
	is(r, "state", r.job(c.ID).State, settle.Succeeded)
}

func sweepAfterReclaim(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(lease + tick)
	held := r.look()
	r.moves(on(c, settle.Deferred{Reason: settle.AttemptShutdown}))
	second := r.claimOne()
	r.comesTooLate(held, c.ID)
	is(r, "attempt", r.job(c.ID).Attempt, 2)
	is(r, "state", r.job(c.ID).State, settle.Running)
	r.moves(on(second, succeeded("1")))
}

func sweepAfterRenewal(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(lease + tick)
	held := r.look()
	is(r, "lost", len(r.renew(c)), 0)
	r.comesTooLate(held, c.ID)
	is(r, "state", r.job(c.ID).State, settle.Running)
}

func lastEndAfterRenewal(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 1}))
	r.advance(lease + tick)
	held := r.look()
	is(r, "lost", len(r.renew(c)), 0)
	r.comesTooLate(held, c.ID)
	r.moves(on(c, succeeded("1")))
}

func sweepAfterProgress(r *rig) {
	n := r.inStep(settle.Policy{}, settle.Wait{Ticket: id("t"), Step: "s", Silence: time.Minute})
	r.advance(time.Minute + tick)
	held := r.look()
	r.moves(r.seen(n, settle.Progressed{Ticket: id("t")}))
	r.comesTooLate(held, n)
	is(r, "state", r.job(n).State, settle.Awaiting)
}

func twoSweeps(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(lease + tick)
	one, two := r.look(), r.look()
	same(r, "the first", r.apply(one...), []settle.Applied{settle.Done})
	same(r, "the second", r.apply(two...), []settle.Applied{settle.Already})
	is(r, "crashes", r.job(c.ID).Crashed, 1)
	is(r, "attempts recorded", len(r.job(c.ID).Attempts), 1)
}

func everyLiveJobEnds(r *rig) {
	o := settle.EnqueueOpts{Deadline: time.Hour}
	r.moves(on(r.started(task(o)), parked("s", "t")))
	r.moves(on(r.started(task(o)), failed("no")))
	r.started(task(o))
	r.insert(task(o), of("nobody runs it", o), task(settle.EnqueueOpts{Tenant: "held", Deadline: time.Hour}))
	r.hold(settle.Hold{Queue: queue, Tenant: "held", For: 30 * 24 * time.Hour})
	var last time.Time
	for _, j := range r.list(settle.Filter{}) {
		check(r, j.State.Live() && !j.EndsBy.IsZero() && !j.Alarm.After(j.Deadline), "a live job shows by when it ends: got %s %s", j.State, j.EndsBy)
		if j.EndsBy.After(last) {
			last = j.EndsBy
		}
	}
	r.clock.Set(last)
	r.sweep()
	for _, j := range r.list(settle.Filter{}) {
		check(r, j.State.Ended(), "job %s has ended by then: got %s", j.ID, j.State)
	}
}
