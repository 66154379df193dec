package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var timeClauses = []clause{
	{"P13 the store tells its own clock", tellsClock},
	{"B-044 one instant in three zones is one due time", threeZones},
	{"B-044 order follows the instant to the microsecond", dueOrder},
	{"B-044 a due time is never early and rounded up to the microsecond", neverEarly},
	{"B-044 a whole second sorts before half a second", wholeSecond},
	{"B-044 views are in UTC", viewsInUTC},
	{"B-061 a retry that asks for the largest wait ends visibly", largestRetry},
	{"a due time in the past means now", duePast},
	{"Due wins over Delay", dueWins},
	{"P1 a deadline counts from the due time", deadlineFromDue},
}

func due(t time.Time) settle.New { return task(settle.EnqueueOpts{Due: t}) }

func tellsClock(r *rig) {
	r.advance(90 * time.Second)
	got, err := r.store.Clock(r.ctx)
	ok(r, "Clock", err)
	near(r, "the store's clock", got, Start.Add(90*time.Second))
}

func threeZones(r *rig) {
	at := Start.Add(6 * time.Hour)
	tokyo, bogota := time.FixedZone("JST", 9*3600), time.FixedZone("COT", -5*3600)
	ids := r.addAll([]settle.New{due(at.In(tokyo)), due(at), due(at.In(bogota))})
	for _, n := range ids {
		near(r, "due", r.job(n).Due, at)
	}
	r.clock.Set(at.Add(-time.Microsecond))
	is(r, "claimed a microsecond before", len(r.claim()), 0)
	r.clock.Set(at)
	is(r, "claimed at the instant", len(r.claim()), 3)
}

func dueOrder(r *rig) {
	at := Start.Add(time.Hour)
	steps := []time.Duration{time.Millisecond, 0, 3 * time.Microsecond, time.Second, time.Microsecond}
	var jobs []settle.New
	for _, d := range steps {
		jobs = append(jobs, due(at.Add(d)))
	}
	ids := r.addAll(jobs)
	r.advance(2 * time.Hour)
	for _, i := range []int{1, 4, 2, 0, 3} {
		got := r.ask(settle.ClaimReq{Limit: 1}).Jobs
		is(r, "the job due at "+steps[i].String(), r.first(got).ID, ids[i])
	}
}

func neverEarly(r *rig) {
	for _, ns := range []time.Duration{1, 999, 1000, 1001, 123_456_789} {
		at := r.now().Add(time.Second + ns)
		n := r.add(due(at))
		got := r.job(n).Due
		check(r, !got.Before(at), "due %s is not before what was asked, %s", got, at)
		check(r, got.Sub(at) < time.Microsecond, "due %s is within a microsecond of %s", got, at)
		r.clock.Set(at.Add(-1))
		is(r, "claimed a nanosecond early", len(r.claim()), 0)
		r.clock.Set(at.Add(time.Microsecond))
		is(r, "claimed a microsecond later", r.claimOne().ID, n)
	}
}

func wholeSecond(r *rig) {
	at := Start.Add(time.Minute)
	half := r.add(due(at.Add(500 * time.Millisecond)))
	whole := r.add(due(at))
	r.advance(time.Hour)
	same(r, "claimed in order", ids(r.claim()), []settle.ID{whole, half})
}

func viewsInUTC(r *rig) {
	zone := time.FixedZone("JST", 9*3600)
	n := r.add(due(Start.Add(time.Hour).In(zone)))
	j := r.job(n)
	for what, at := range map[string]time.Time{"enqueued": j.Enqueued, "due": j.Due, "first due": j.FirstDue,
		"deadline": j.Deadline, "alarm": j.Alarm, "ends by": j.EndsBy, "now": j.Now} {
		is(r, "zone of "+what, at.Location(), time.UTC)
	}
	j = r.list(settle.Filter{})[0]
	near(r, "due in the list", j.Due, Start.Add(time.Hour))
	is(r, "zone in the list", j.Due.Location(), time.UTC)
}

func largestRetry(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, failedFor(1<<63-1)))
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndExpired)
}

func duePast(r *rig) {
	n := r.add(due(Start.Add(-time.Hour)))
	near(r, "due", r.job(n).Due, Start)
	is(r, "claimed", r.claimOne().ID, n)
	zero := r.add(due(time.Unix(0, 0)))
	near(r, "due of 1970", r.job(zero).Due, Start)
}

func dueWins(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Delay: time.Hour, Due: Start.Add(time.Minute)}))
	near(r, "due", r.job(n).Due, Start.Add(time.Minute))
}

func deadlineFromDue(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Delay: time.Hour, Policy: &settle.Policy{Deadline: 2 * time.Hour}}))
	near(r, "deadline of the policy", r.job(n).Deadline, Start.Add(3*time.Hour))
	n = r.add(task(settle.EnqueueOpts{Delay: time.Hour, Deadline: time.Minute, Policy: &settle.Policy{Deadline: 2 * time.Hour}}))
	near(r, "deadline of the job", r.job(n).Deadline, Start.Add(time.Hour+time.Minute))
}
