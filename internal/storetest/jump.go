package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var jumpClauses = []clause{
	{"B-059 a job whose due time was slept through is due at once", sleptThroughDue},
	{"B-059 a lease that was slept through can be renewed until a sweep has ended it", sleptThroughLease},
	{"B-060 jobs stranded by a jump back are pulled to now", pulledDue},
	{"B-060 pulled jobs have their turn in their lane", pulledTurn},
	{"B-060 leases stranded by a jump back are cut", pulledLease},
	{"B-060 Pull moves no more than it was asked to", pullLimit},
	{"B-060 Pull counts jobs and leases against one limit", pullOneLimit},
	{"B-060 Pull leaves alone what is due later", pullWithin},
	{"B-060 Pull leaves ends waits and attempts alone", pullOnlyStranded},
	{"B-060 no age is ever negative", agesAfterJumpBack},
	{"B-060 new work runs at once after a jump back", newAfterJumpBack},
	{"B-060 a job that is stranded shows when it is due", strandedIsVisible},
}

func (r *rig) pull(within, cut time.Duration, limit int) int {
	r.Helper()
	n, err := r.store.Pull(r.ctx, within, cut, limit)
	ok(r, "Pull", err)
	return n
}

func sleptThroughDue(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Delay: 8 * time.Hour}))
	r.advance(9 * time.Hour)
	c := r.claimOne()
	is(r, "the job that is claimed", c.ID, n)
	is(r, "age", c.Age, time.Hour)
}

func sleptThroughLease(r *rig) {
	lucky, lost := r.started(task(settle.EnqueueOpts{})), r.started(task(settle.EnqueueOpts{}))
	r.advance(9 * time.Hour)
	is(r, "lost before a sweep", len(r.renew(lucky)), 0)
	is(r, "moved by the sweep", r.sweep(), 1)
	same(r, "lost after a sweep", r.renew(lucky, lost), []settle.ID{lost.ID})
	r.moves(on(lucky, succeeded("1")))
	is(r, "answer to the one that was lost", r.apply(on(lost, succeeded("1")))[0], settle.Stale)
}

// jumped inserts under a clock that is d ahead, and puts it back.
func (r *rig) jumped(d time.Duration, then func()) {
	r.Helper()
	before := r.now()
	r.advance(d)
	then()
	r.clock.Set(before)
}

func pulledDue(r *rig) {
	r.jumped(8*time.Hour, func() {
		r.moves(on(r.started(task(settle.EnqueueOpts{Tenant: "b"})), failedFor(time.Second)))
		r.add(task(settle.EnqueueOpts{HeadStart: time.Hour}))
	})
	is(r, "claimed while stranded", len(r.claim()), 0)
	is(r, "pulled", r.pull(9*time.Hour, time.Hour, page), 2)
	for _, j := range r.list(settle.Filter{States: []settle.State{settle.Pending}}) {
		near(r, "due", j.Due, r.now())
	}
	lane := r.lanes(page)
	is(r, "claimed by lane afterwards", len(r.ask(settle.ClaimReq{Lanes: lane}).Jobs), 2)
	is(r, "pulled once more", r.pull(9*time.Hour, time.Hour, page), 0)
}

func pulledTurn(r *rig) {
	r.insert(tenant("older"))
	r.advance(time.Second)
	var in settle.Inserted
	r.jumped(8*time.Hour, func() { in = r.insert(tenant("stranded"))[0] })
	is(r, "pulled", r.pull(9*time.Hour, time.Hour, page), 1)
	same(r, "claimed by its lane", r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{in.Lane}, Limit: 1}), []settle.ID{in.ID})
}

func pulledLease(r *rig) {
	var c settle.ClaimedJob
	r.jumped(30*24*time.Hour, func() { c = r.started(task(settle.EnqueueOpts{})) })
	is(r, "pulled", r.pull(time.Hour, lease, page), 1)
	check(r, !r.job(c.ID).Alarm.After(r.now().Add(lease)), "the lease ends within %s: got %s", lease, r.job(c.ID).Alarm)
	is(r, "state", r.job(c.ID).State, settle.Running)
	is(r, "pulled once more", r.pull(time.Hour, lease, page), 0)
	is(r, "moved by the sweep after the lease", r.sweptAfter(lease+tick), 1)
	is(r, "attempts recorded", len(r.job(c.ID).Attempts), 1)
}

func pullLimit(r *rig) {
	r.insert(many(10, work, settle.EnqueueOpts{Delay: time.Hour})...)
	is(r, "pulled at first", r.pull(2*time.Hour, lease, 4), 4)
	is(r, "claimed", len(r.claim()), 4)
	is(r, "pulled then", r.pull(2*time.Hour, lease, 100), 6)
}

func pullOneLimit(r *rig) {
	r.jumped(30*day, func() {
		r.insert(manyNow(10, "a")...)
		r.want(r.claim(), 10)
	})
	r.insert(many(10, work, settle.EnqueueOpts{Delay: time.Hour})...)
	moved := r.pull(2*time.Hour, lease, 4)
	check(r, moved > 0 && moved <= 4, "a pull of 4 moves at most 4 rows: got %d", moved)
	for calls := 0; moved < 20 && calls < 20; calls++ {
		moved += r.pull(2*time.Hour, lease, 4)
	}
	is(r, "pulled in all", moved, 20)
}

func pullWithin(r *rig) {
	r.insert(task(settle.EnqueueOpts{Delay: time.Hour}), task(settle.EnqueueOpts{Delay: 3 * time.Hour}), task(settle.EnqueueOpts{}))
	is(r, "pulled", r.pull(2*time.Hour, lease, page), 1)
	is(r, "claimed", len(r.claim()), 2)
}

func pullOnlyStranded(r *rig) {
	dead := r.died(task(settle.EnqueueOpts{}))
	runs := r.started(task(settle.EnqueueOpts{}))
	waits := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(waits, parked("s", "t")))
	before := []settle.Job{r.job(dead), r.job(runs.ID), r.job(waits.ID)}
	is(r, "pulled", r.pull(24*time.Hour, time.Minute, page), 0)
	for _, j := range before {
		r.untouched(j)
	}
}

func agesAfterJumpBack(r *rig) {
	r.insert(task(settle.EnqueueOpts{}), task(settle.EnqueueOpts{Delay: time.Hour}))
	c := r.first(r.claim())
	r.clock.Set(Start.Add(-8 * time.Hour))
	r.insert(of(other, settle.EnqueueOpts{}))
	ages, err := r.store.Ages(r.ctx)
	ok(r, "Ages", err)
	for _, a := range ages {
		check(r, a.Unfinished >= 0 && a.Waiting >= 0, "the ages of %s are not negative: got %s and %s", a.Kind, a.Unfinished, a.Waiting)
	}
	r.clock.Set(Start)
	r.moves(on(c, failedFor(time.Second)))
	r.clock.Set(Start.Add(-8 * time.Hour))
	r.pull(10*time.Hour, lease, page)
	for _, c := range r.claim() {
		check(r, c.Age >= 0, "the age of a claimed job is not negative: got %s", c.Age)
	}
}

func newAfterJumpBack(r *rig) {
	r.jumped(30*24*time.Hour, func() { r.insert(many(50, work, settle.EnqueueOpts{})...) })
	n := r.add(task(settle.EnqueueOpts{}))
	is(r, "the job that is claimed", r.claimOne().ID, n)
}

func strandedIsVisible(r *rig) {
	var n settle.ID
	r.jumped(30*24*time.Hour, func() { n = r.add(task(settle.EnqueueOpts{})) })
	j := r.job(n)
	near(r, "due", j.Due, r.now().Add(30*24*time.Hour))
	is(r, "label", j.Label(), "scheduled")
	is(r, "next", r.ask(settle.ClaimReq{}).Next, 30*24*time.Hour)
}
