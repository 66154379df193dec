package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var batchClauses = []clause{
	{"a batch is of one lane and in order", batchOneLane},
	{"a batch is of one kind", batchOneKind},
	{"a batch is bounded by Limit", batchLimit},
	{"a batch is bounded by Bytes and one row always fits", batchBytes},
	{"a due head takes along what is due within Linger", batchLingers},
	{"a batch comes from the named lanes and from no other", batchNamedLane},
	{"a batch is sealed under its id", batchSealed},
	{"a sealed batch is taken exactly as it was sealed", batchTakenAgain},
	{"a batch never mixes sealed rows with others", batchNotMixed},
	{"a crash keeps the seal", batchAfterCrash},
	{"SetBatch without an id unseals the rows", batchUnsealed},
	{"SetBatch replaces the seal so a batch can be split", batchSplit},
	{"a batch counts an attempt of each of its rows", batchCounts},
}

func (r *rig) batch(q settle.ClaimReq, name string) []settle.ClaimedJob {
	r.Helper()
	q.Batch = id(name)
	return r.ask(q).Jobs
}

// events inserts n due jobs of one tenant, oldest first.
func (r *rig) events(n int, tenant string) []settle.ID {
	r.Helper()
	got := r.addAll(many(n, work, settle.EnqueueOpts{Tenant: tenant}))
	r.advance(time.Second)
	return got
}

// giveBack retries all rows of a batch at the same moment.
func (r *rig) giveBack(jobs []settle.ClaimedJob, seal *settle.ID) {
	r.Helper()
	var ts []settle.Transition
	for _, c := range jobs {
		t := on(c, failedFor(time.Second))
		if seal != nil {
			t.SetBatch, t.Batch = true, *seal
		}
		ts = append(ts, t)
	}
	for _, said := range r.apply(ts...) {
		is(r, "answer", said, settle.Done)
	}
	r.advance(2 * time.Second)
}

func batchOneLane(r *rig) {
	a, b := r.events(3, "a"), r.events(3, "b")
	same(r, "the first batch", ids(r.batch(settle.ClaimReq{}, "1")), a)
	same(r, "the second batch", ids(r.batch(settle.ClaimReq{}, "2")), b)
	is(r, "a third", len(r.batch(settle.ClaimReq{}, "3")), 0)
}

func batchOneKind(r *rig) {
	both := settle.ClaimReq{Kinds: []string{work, other}}
	for i := range 6 {
		r.add(of([]string{work, other}[i%2], settle.EnqueueOpts{}))
		r.advance(tick)
	}
	for _, name := range []string{"1", "2"} {
		got := r.batch(both, name)
		is(r, "rows of the batch", len(got), 3)
		for _, c := range got {
			is(r, "kind", c.Kind, r.first(got).Kind)
		}
	}
}

func batchLimit(r *rig) {
	a := r.events(5, "a")
	same(r, "the first batch", ids(r.batch(settle.ClaimReq{Limit: 2}, "1")), a[:2])
	same(r, "the second batch", ids(r.batch(settle.ClaimReq{Limit: 2}, "2")), a[2:4])
	same(r, "the third batch", ids(r.batch(settle.ClaimReq{Limit: 2}, "3")), a[4:])
}

func batchBytes(r *rig) {
	var all []settle.ID
	for _, size := range []int{500, 40, 60, 1, 10} {
		n := task(settle.EnqueueOpts{Tenant: "a"})
		n.Input = make([]byte, size)
		all = append(all, r.add(n))
		r.advance(tick)
	}
	q := settle.ClaimReq{Bytes: 100}
	same(r, "a row larger than the bound goes alone", ids(r.batch(q, "1")), all[:1])
	same(r, "rows up to the bound", ids(r.batch(q, "2")), all[1:3])
	same(r, "the rest", ids(r.batch(q, "3")), all[3:])
}

func batchLingers(r *rig) {
	in := r.addAll([]settle.New{tenant("a"), task(settle.EnqueueOpts{Tenant: "a", Delay: time.Second}), task(settle.EnqueueOpts{Tenant: "a", Delay: time.Minute}),
		task(settle.EnqueueOpts{Tenant: "b", Delay: time.Second})})
	same(r, "the batch", ids(r.batch(settle.ClaimReq{Linger: 2 * time.Second}, "1")), in[:2])
	is(r, "a batch without a due head", len(r.batch(settle.ClaimReq{Linger: time.Hour}, "2")), 0)
}

func batchNamedLane(r *rig) {
	r.events(2, "a")
	b := r.events(2, "b")
	lane := r.insert(task(settle.EnqueueOpts{Tenant: "b", Delay: time.Hour}))[0].Lane
	same(r, "the batch", ids(r.batch(settle.ClaimReq{Lanes: []settle.Lane{lane}}, "1")), b)
	is(r, "a batch when the named lane has nothing due", len(r.batch(settle.ClaimReq{Lanes: []settle.Lane{lane}}, "2")), 0)
	is(r, "a batch of no named lane", len(r.batch(settle.ClaimReq{}, "3")), 2)
}

func batchSealed(r *rig) {
	r.events(2, "a")
	for _, c := range r.batch(settle.ClaimReq{}, "1") {
		is(r, "batch of the claimed row", c.Batch, id("1"))
		is(r, "batch of the stored row", r.job(c.ID).Batch, id("1"))
	}
}

func batchTakenAgain(r *rig) {
	a := r.events(5, "a")
	got := r.batch(settle.ClaimReq{Limit: 3}, "1")
	r.giveBack(got, nil)
	again := r.batch(settle.ClaimReq{Limit: 50}, "2") // the rows that have waited longest come first
	same(r, "the rows that were not sealed", ids(again), a[3:])
	again = r.batch(settle.ClaimReq{Limit: 50}, "3")
	same(r, "the sealed rows with a larger limit", ids(again), a[:3])
	is(r, "the id that they were sealed under", r.first(again).Batch, id("1"))
	r.giveBack(again, nil)
	again = r.batch(settle.ClaimReq{Limit: 1, Bytes: 1}, "4")
	same(r, "the sealed rows with a smaller limit", ids(again), a[:3])
	is(r, "attempt", r.first(again).Attempt, 3)
}

func batchNotMixed(r *rig) {
	a := r.events(2, "a")
	r.giveBack(r.batch(settle.ClaimReq{}, "1"), nil)
	b := r.events(2, "a")
	same(r, "the sealed rows alone", ids(r.batch(settle.ClaimReq{}, "2")), a)
	same(r, "the others alone", ids(r.batch(settle.ClaimReq{}, "3")), b)
}

func batchAfterCrash(r *rig) {
	a := r.events(3, "a")
	r.batch(settle.ClaimReq{Limit: 2}, "1")
	r.crash()
	r.untilDue(a[0])
	same(r, "the row that was never sealed is the oldest", ids(r.batch(settle.ClaimReq{}, "2")), a[2:])
	got := r.batch(settle.ClaimReq{}, "3")
	same(r, "the sealed rows", ids(got), a[:2])
	is(r, "their seal", r.first(got).Batch, id("1"))
}

func batchUnsealed(r *rig) {
	a := r.events(2, "a")
	r.giveBack(r.batch(settle.ClaimReq{}, "1"), &settle.ID{})
	check(r, r.job(a[0]).Batch.IsZero(), "the row has no seal")
	b := r.events(1, "a")
	got := r.batch(settle.ClaimReq{}, "2")
	same(r, "the batch", ids(got), append(a, b...))
	is(r, "its seal", r.first(got).Batch, id("2"))
}

func batchSplit(r *rig) {
	a := r.events(4, "a")
	got := r.batch(settle.ClaimReq{}, "1")
	r.want(got, 4)
	left, right := id("left"), id("right")
	r.giveBack(got[:2], &left)
	r.giveBack(got[2:], &right)
	first, second := r.batch(settle.ClaimReq{}, "2"), r.batch(settle.ClaimReq{}, "3")
	same(r, "the first half", ids(first), a[:2])
	is(r, "its seal", r.first(first).Batch, left)
	same(r, "the second half", ids(second), a[2:])
	is(r, "its seal", r.first(second).Batch, right)
}

func batchCounts(r *rig) {
	r.events(3, "a")
	got := r.batch(settle.ClaimReq{Worker: 9}, "1")
	is(r, "rows", len(got), 3)
	for _, c := range got {
		j := r.job(c.ID)
		is(r, "attempt", j.Attempt, 1)
		is(r, "state", j.State, settle.Running)
		is(r, "holder", j.Worker, 9)
	}
}
