package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var insertClauses = []clause{
	{"P6 an accepted job can be read at once with all that was said of it", acceptedIsRead},
	{"an insert of nothing is fine and stores nothing", insertNothing},
	{"a job without id gets one of its own", ownID},
	{"mixed kinds queues and tenants go in with one call", mixedInsert},
	{"an id that exists is not an error and stores nothing", existingID},
	{"an id of an ended job is answered with its end", endedID},
	{"an id given twice in one call is stored once", twiceInOneCall},
	{"P6 a lost answer can be repeated", repeatedInsert},
	{"an id wins over a key that another job has taken since", idBeforeKey},
	{"P6 one bad job in a call and nothing is stored", allOrNone},
	{"an insert whose context has ended stores nothing", cancelledInsert},
	{"the lane is the same number wherever it is told", laneIsStable},
	{"P1 every accepted job has an alarm and a time by which it ends", insertedHasAlarm},
}

func acceptedIsRead(r *rig) {
	p := settle.Policy{Attempts: 7, OnEnd: "told"}
	in := settle.New{Kind: work, Input: []byte("in"), EnqueueOpts: settle.EnqueueOpts{ID: id("a"), Queue: "q",
		Tenant: "acme", Key: "k", Delay: time.Minute, Deadline: time.Hour, Policy: &p}}
	got := r.insert(in)[0]
	is(r, "the id of the answer", got.ID, id("a"))
	is(r, "Existing", got.Existing, false)
	is(r, "the state of the answer", got.State, settle.Pending)
	j := r.job(id("a"))
	is(r, "kind", j.Kind, work)
	is(r, "queue", j.Queue, "q")
	is(r, "tenant", j.Tenant, "acme")
	is(r, "key", j.Key, "k")
	is(r, "state", j.State, settle.Pending)
	is(r, "input", string(j.Input), "in")
	is(r, "policy, with the deadline of the job", j.Policy, settle.Policy{Attempts: 7, OnEnd: "told", Deadline: time.Hour}.WithDefaults())
	is(r, "counters", j.Counters, settle.Counters{Tries: 7})
	near(r, "enqueued", j.Enqueued, Start)
	near(r, "first due", j.FirstDue, Start.Add(time.Minute))
	near(r, "due", j.Due, Start.Add(time.Minute))
	near(r, "deadline, counted from due", j.Deadline, Start.Add(time.Minute+time.Hour))
	near(r, "the store's clock", j.Now, Start)
}

func insertNothing(r *rig) {
	got, err := r.store.Insert(r.ctx)
	ok(r, "Insert of nothing", err)
	is(r, "answers", len(got), 0)
	is(r, "jobs", r.count(settle.Filter{}), 0)
}

func ownID(r *rig) {
	got := r.insert(task(settle.EnqueueOpts{}), task(settle.EnqueueOpts{}))
	check(r, !got[0].ID.IsZero(), "the answer tells the id that was made")
	check(r, got[0].ID != got[1].ID, "two jobs have two ids")
	is(r, "queue", r.job(got[0].ID).Queue, settle.DefaultQueue)
}

func mixedInsert(r *rig) {
	got := r.insert(task(settle.EnqueueOpts{Tenant: "a"}), of(other, settle.EnqueueOpts{Tenant: "b"}), task(settle.EnqueueOpts{Queue: "q2"}))
	is(r, "kind of the second", r.job(got[1].ID).Kind, other)
	is(r, "tenant of the second", r.job(got[1].ID).Tenant, "b")
	is(r, "queue of the third", r.job(got[2].ID).Queue, "q2")
}

func existingID(r *rig) {
	r.add(task(settle.EnqueueOpts{ID: id("a"), Tenant: "first"}))
	got := r.insert(of(other, settle.EnqueueOpts{ID: id("a"), Tenant: "second"}), task(settle.EnqueueOpts{ID: id("b")}))
	is(r, "Existing", got[0].Existing, true)
	is(r, "id", got[0].ID, id("a"))
	is(r, "state", got[0].State, settle.Pending)
	is(r, "Existing of the neighbour", got[1].Existing, false)
	is(r, "kind of the stored job", r.job(id("a")).Kind, work)
	is(r, "tenant of the stored job", r.job(id("a")).Tenant, "first")
	is(r, "jobs", r.count(settle.Filter{}), 2)
}

func endedID(r *rig) {
	r.ended(task(settle.EnqueueOpts{ID: id("a")}), succeeded("1"))
	got := r.insert(task(settle.EnqueueOpts{ID: id("a")}))[0]
	is(r, "Existing", got.Existing, true)
	is(r, "state", got.State, settle.Succeeded)
	is(r, "claimed afterwards", len(r.claim()), 0)
}

func twiceInOneCall(r *rig) {
	got := r.insert(task(settle.EnqueueOpts{ID: id("a")}), task(settle.EnqueueOpts{ID: id("a")}))
	is(r, "Existing of the first", got[0].Existing, false)
	is(r, "Existing of the second", got[1].Existing, true)
	is(r, "id of the second", got[1].ID, id("a"))
	is(r, "claimed", len(r.claim()), 1)
}

func repeatedInsert(r *rig) {
	jobs := many(20, work, settle.EnqueueOpts{Tenant: "a"})
	for i := range jobs {
		jobs[i].ID = settle.NewID()
		jobs[i].Key = jobs[i].ID.String()
	}
	first := r.insert(jobs...)
	for i, got := range r.insert(jobs...) {
		check(r, got.Existing && got.ID == first[i].ID, "answer %d of the repeat names the job that exists, %s: got %+v", i, first[i].ID, got)
	}
	is(r, "jobs", r.count(settle.Filter{}), 20)
}

func idBeforeKey(r *rig) {
	lost := task(settle.EnqueueOpts{ID: id("a"), Key: "k"})
	r.ended(lost, succeeded("1"))
	r.add(task(settle.EnqueueOpts{ID: id("b"), Key: "k"}))
	got := r.insert(lost)[0]
	is(r, "Existing", got.Existing, true)
	is(r, "the job that is named", got.ID, id("a"))
	is(r, "its state", got.State, settle.Succeeded)
}

func allOrNone(r *rig) {
	_, err := r.store.Insert(r.ctx, task(settle.EnqueueOpts{ID: id("a")}), settle.New{Kind: ""}, task(settle.EnqueueOpts{ID: id("b")}))
	check(r, err != nil, "a call with one invalid job is refused")
	is(r, "jobs", r.count(settle.Filter{}), 0)
	is(r, "claimed", len(r.claim()), 0)
}

func cancelledInsert(r *rig) {
	ctx, stop := cancelled(r)
	defer stop()
	_, err := r.store.Insert(ctx, task(settle.EnqueueOpts{}))
	check(r, err != nil, "a call whose context has ended tells an error")
	is(r, "jobs", r.count(settle.Filter{}), 0)
}

func laneIsStable(r *rig) {
	a := r.insert(task(settle.EnqueueOpts{Tenant: "a"}))[0]
	again := r.insert(task(settle.EnqueueOpts{Tenant: "a"}))[0]
	b := r.insert(of(other, settle.EnqueueOpts{Tenant: "b"}))[0]
	elsewhere := r.insert(task(settle.EnqueueOpts{Tenant: "a", Queue: "q2"}))[0]
	check(r, a.Lane != 0 && b.Lane != 0, "no lane is 0, which means none: got %d and %d", a.Lane, b.Lane)
	is(r, "the lane of the same tenant", again.Lane, a.Lane)
	check(r, a.Lane != b.Lane, "two tenants have two lanes")
	check(r, a.Lane != elsewhere.Lane, "one tenant has a lane in each queue")
	is(r, "lanes listed", len(r.lanes(page)), 2)
	for _, c := range r.claim() {
		is(r, "the lane of a claimed job", c.Lane, a.Lane)
	}
}

func insertedHasAlarm(r *rig) {
	r.insert(task(settle.EnqueueOpts{}), task(settle.EnqueueOpts{Delay: time.Hour}), task(settle.EnqueueOpts{Deadline: time.Minute}),
		task(settle.EnqueueOpts{Delay: settle.MaxAhead, Deadline: 10 * 365 * 24 * time.Hour}))
	for _, j := range r.list(settle.Filter{}) {
		near(r, "the alarm of a pending job", j.Alarm, j.Deadline)
		near(r, "ends by", j.EndsBy, settle.EndsBy(j.Deadline))
	}
}
