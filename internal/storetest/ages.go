package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var ageClauses = []clause{
	{"B-040 ages count what waits and what is unfinished and nothing else", agesOfAll},
	{"B-040 without claimable work the waiting age is zero", agesOfNoneWaiting},
	{"the unfinished age is not reset by a retry a hold or a wait", ageNotReset},
	{"the waiting age leaves out what is held", ageHeld},
	{"a redriven job is unfinished since its redrive", ageRedriven},
	{"each queue and kind has ages of its own", agesApart},
	{"the oldest unfinished job is named", ageNamed},
}

func (r *rig) age(queue, kind string) settle.Age {
	r.Helper()
	all, err := r.store.Ages(r.ctx)
	ok(r, "Ages", err)
	for _, a := range all {
		if a.Queue == queue && a.Kind == kind {
			return a
		}
	}
	return settle.Age{Queue: queue, Kind: kind}
}

// b040 builds the jobs A to F of the case, C and F only when asked for, and
// returns B.
func (r *rig) b040(waiting bool) settle.ID {
	r.Helper()
	at := func(ago time.Duration) { r.clock.Set(Start.Add(100*time.Hour - ago)) }
	at(73 * time.Hour)
	e := r.started(task(settle.EnqueueOpts{}))
	at(72 * time.Hour)
	r.moves(on(e, hopeless("no")))
	at(10 * time.Hour)
	r.insert(task(settle.EnqueueOpts{Delay: 24 * time.Hour})) // A
	at(2 * time.Hour)
	b := r.started(task(settle.EnqueueOpts{}))
	at(30 * time.Minute)
	d := r.started(task(settle.EnqueueOpts{}))
	at(0)
	r.renew(b)
	r.moves(on(d, failedFor(time.Hour)))
	if waiting {
		at(30 * time.Second)
		r.insert(task(settle.EnqueueOpts{})) // C
		at(5 * time.Second)
		r.insert(task(settle.EnqueueOpts{Due: time.Time{}})) // F
	}
	at(0)
	return b.ID
}

func agesOfAll(r *rig) {
	b := r.b040(true)
	a := r.age(queue, work)
	is(r, "waiting", a.Waiting, 30*time.Second)
	is(r, "unfinished", a.Unfinished, 2*time.Hour)
	is(r, "the oldest", a.Oldest, b)
}

func agesOfNoneWaiting(r *rig) {
	r.b040(false)
	a := r.age(queue, work)
	is(r, "waiting", a.Waiting, 0)
	is(r, "unfinished", a.Unfinished, 2*time.Hour)
}

func ageNotReset(r *rig) {
	c := r.started(tenant("a"))
	r.advance(10 * time.Minute)
	r.moves(on(c, failedFor(time.Hour)))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: 2 * time.Hour})
	is(r, "after a retry and a hold", r.age(queue, work).Unfinished, 10*time.Minute)
	r.advance(3 * time.Hour)
	r.moves(on(r.claimOne(), parked("s", "t")))
	r.advance(time.Minute)
	is(r, "while it waits for a node", r.age(queue, work).Unfinished, 3*time.Hour+11*time.Minute)
}

func ageHeld(r *rig) {
	r.insert(tenant("a"))
	r.advance(time.Hour)
	r.insert(tenant("b"))
	r.advance(time.Minute)
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	is(r, "waiting", r.age(queue, work).Waiting, time.Minute)
	is(r, "unfinished", r.age(queue, work).Unfinished, time.Hour+time.Minute)
	r.hold(settle.Hold{Queue: queue, Whole: true, For: time.Minute})
	is(r, "waiting with the queue held", r.age(queue, work).Waiting, 0)
	r.advance(2 * time.Hour)
	is(r, "waiting after the holds", r.age(queue, work).Waiting, 3*time.Hour+time.Minute)
}

func ageRedriven(r *rig) {
	n := r.died(task(settle.EnqueueOpts{}))
	r.advance(24 * time.Hour)
	is(r, "unfinished while dead", r.age(queue, work).Unfinished, 0)
	r.redrive(n)
	r.advance(time.Minute)
	is(r, "unfinished after the redrive", r.age(queue, work).Unfinished, time.Minute)
	is(r, "waiting after the redrive", r.age(queue, work).Waiting, time.Minute)
}

func agesApart(r *rig) {
	r.insert(task(settle.EnqueueOpts{}))
	r.advance(time.Minute)
	r.insert(of(other, settle.EnqueueOpts{}), task(settle.EnqueueOpts{Queue: "q2"}))
	r.advance(time.Minute)
	is(r, "waiting", r.age(queue, work).Waiting, 2*time.Minute)
	is(r, "waiting of another kind", r.age(queue, other).Waiting, time.Minute)
	is(r, "waiting in another queue", r.age("q2", work).Waiting, time.Minute)
	all, err := r.store.Ages(r.ctx)
	ok(r, "Ages", err)
	is(r, "ages listed", len(all), 3)
}

func ageNamed(r *rig) {
	r.insert(task(settle.EnqueueOpts{Delay: time.Minute}))
	first := r.add(task(settle.EnqueueOpts{}))
	r.advance(time.Hour)
	is(r, "the oldest", r.age(queue, work).Oldest, first)
	r.moves(r.seen(first, settle.CancelAsked{}))
	is(r, "unfinished after its end", r.age(queue, work).Unfinished, 59*time.Minute)
}
