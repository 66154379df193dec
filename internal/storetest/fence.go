package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var fenceClauses = []clause{
	{"P3 the same transition again is already applied", repeatIsAlready},
	{"P3 a retry repeated after the job moved on is already applied", lateRepeatOfRetry},
	{"P3 an end repeated after a redrive does not end it again", lateRepeatOfEnd},
	{"P3 a stale transition never rolls back its neighbours", staleNeighbours},
	{"P3 two settles of one attempt and the first one stands", secondSettle},
	{"P3 a late worker after a sweep changes nothing", lateWorker},
	{"P3 a late worker can not settle the next attempt", lateWorkerNextAttempt},
	{"P3 a late worker can not settle a job that has ended", lateWorkerAfterEnd},
	{"P3 a handle of a removed job never leads to its successor", reusedHandle},
	{"P3 a transition finds a job by its id alone", applyByID},
	{"P3 a person's wish decided on an old picture is stale", oldPicture},
	{"P3 another attempt's answer is stale", oldTicket},
	{"P9 an answer that is delivered twice counts once", deliveredTwice},
	{"a claimed row never moves but by its holder a sweep or a person", onlyAlarmMoves},
}

func repeatIsAlready(r *rig) {
	for name, ev := range map[string]settle.Event{"success": succeeded("1"), "failure": failed("no"), "terminal": hopeless("no"),
		"deferral": settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Hour}, "uncounted": settle.Deferred{After: time.Hour, Uncounted: true},
		"park": parked("s", "t"), "crash": settle.LeaseOver{}, "deadline": settle.DeadlineOver{}, "cancel": settle.CancelAsked{Why: "no need"}} {
		c := r.started(task(settle.EnqueueOpts{}))
		t := on(c, ev)
		r.moves(t)
		before := r.job(c.ID)
		r.advance(tick)
		is(r, "answer to the same "+name, r.apply(t)[0], settle.Already)
		is(r, "twice in one call after "+name, r.apply(t, t)[1], settle.Already)
		r.untouched(before)
		if before.State.Live() {
			r.moves(r.seen(c.ID, settle.CancelAsked{}))
		}
	}
}

// untouched reports a job that is not as it was.
func (r *rig) untouched(before settle.Job) {
	r.Helper()
	after := r.job(before.ID)
	is(r, "state", after.State, before.State)
	is(r, "counters", after.Counters, before.Counters)
	is(r, "due", after.Due, before.Due)
	is(r, "alarm", after.Alarm, before.Alarm)
	is(r, "deadline", after.Deadline, before.Deadline)
	is(r, "ended at", after.EndedAt, before.EndedAt)
	is(r, "reason", after.Reason, before.Reason)
	is(r, "output", string(after.Output), string(before.Output))
	same(r, "attempts", after.Attempts, before.Attempts)
	is(r, "steps", len(after.Steps), len(before.Steps))
}

// goesOn reports an attempt that does not run on, with the lease that it had.
func (r *rig) goesOn(before settle.Job) {
	r.Helper()
	after := r.job(before.ID)
	d := after.Alarm.Sub(before.Alarm)
	check(r, d >= 0 && d < tick, "the lease goes on: it ended at %s, now at %s", before.Alarm, after.Alarm)
	is(r, "holder", after.Worker, before.Worker)
	before.Alarm = after.Alarm
	r.untouched(before)
}

func lateRepeatOfRetry(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	t := on(c, failed("no"))
	r.moves(t)
	second := r.again(c.ID)
	before := r.job(c.ID)
	is(r, "answer while the next attempt runs", r.apply(t)[0], settle.Already)
	r.untouched(before)
	r.moves(on(second, succeeded("1")))
	before = r.job(c.ID)
	is(r, "answer after the end", r.apply(t)[0], settle.Already)
	r.untouched(before)
}

func lateRepeatOfEnd(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	t := on(c, hopeless("no"))
	r.moves(t)
	r.moves(r.seen(c.ID, settle.RedriveAsked{}))
	before := r.job(c.ID)
	is(r, "answer", r.apply(t)[0], settle.Already)
	r.untouched(before)
	r.again(c.ID)
	before = r.job(c.ID)
	is(r, "answer while the next attempt runs", r.apply(t)[0], settle.Already)
	r.untouched(before)
}

func staleNeighbours(r *rig) {
	a, b, c := r.started(task(settle.EnqueueOpts{})), r.started(task(settle.EnqueueOpts{})), r.started(task(settle.EnqueueOpts{}))
	r.moves(on(b, hopeless("no")))
	said := r.apply(on(a, succeeded("1")), on(b, succeeded("1")), on(c, failed("no")))
	same(r, "answers", said, []settle.Applied{settle.Done, settle.Stale, settle.Done})
	is(r, "state of the first", r.job(a.ID).State, settle.Succeeded)
	is(r, "state of the stale one", r.job(b.ID).State, settle.Dead)
	is(r, "state of the third", r.job(c.ID).State, settle.Pending)
}

func secondSettle(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	said := r.apply(on(c, succeeded("1")), on(c, failed("no")), on(c, hopeless("no")), on(c, parked("s", "t")))
	same(r, "answers", said, []settle.Applied{settle.Done, settle.Stale, settle.Stale, settle.Stale})
	is(r, "state", r.job(c.ID).State, settle.Succeeded)
	is(r, "attempts recorded", len(r.job(c.ID).Attempts), 0)
}

func lateWorker(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.crash()
	before := r.job(c.ID)
	for _, ev := range []settle.Event{succeeded("1"), failed("no"), hopeless("no"), parked("s", "t"), settle.Deferred{Reason: settle.AttemptShutdown}} {
		is(r, "answer to the late worker", r.apply(on(c, ev))[0], settle.Stale)
	}
	r.untouched(before)
}

func lateWorkerNextAttempt(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.crash()
	second := r.again(c.ID)
	before := r.job(c.ID)
	for _, ev := range []settle.Event{succeeded("1"), failed("no"), hopeless("no"), parked("s", "t")} {
		is(r, "answer to the late worker", r.apply(on(c, ev))[0], settle.Stale)
	}
	r.untouched(before)
	r.moves(on(second, succeeded("2")))
	is(r, "output", string(r.job(c.ID).Output), "2")
	is(r, "answer after the end", r.apply(on(c, succeeded("1")))[0], settle.Stale)
}

func lateWorkerAfterEnd(r *rig) {
	for _, ev := range []settle.Event{settle.CancelAsked{}, settle.DeadlineOver{}} {
		c := r.started(task(settle.EnqueueOpts{}))
		r.moves(r.seen(c.ID, ev))
		before := r.job(c.ID)
		for _, late := range []settle.Event{succeeded("1"), failed("no"), hopeless("no")} {
			is(r, "answer to the late worker", r.apply(on(c, late))[0], settle.Stale)
		}
		r.untouched(before)
	}
}

func reusedHandle(r *rig) {
	r.add(task(settle.EnqueueOpts{Delay: time.Hour}))
	late := r.started(task(settle.EnqueueOpts{}))
	r.moves(r.seen(late.ID, settle.CancelAsked{}))
	r.remove(late.ID)
	next := r.started(task(settle.EnqueueOpts{}))
	before := r.job(next.ID)
	is(r, "answer to the late worker", r.apply(on(late, succeeded("1")))[0], settle.Stale)
	r.advance(time.Second)
	same(r, "lost by the late worker", r.renew(late), []settle.ID{late.ID})
	r.untouched(before)
}

func applyByID(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	t := on(c, succeeded("1"))
	t.Fence.Handle = 0
	r.moves(t)
	is(r, "state", r.job(c.ID).State, settle.Succeeded)
	is(r, "answer to the repeat", r.apply(t)[0], settle.Already)
}

func oldPicture(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	wish := r.seen(n, settle.CancelAsked{})
	c := r.claimOne()
	is(r, "cancel decided while pending", r.apply(wish)[0], settle.Stale)
	wish = r.seen(n, settle.CancelAsked{})
	r.moves(on(c, failed("no")))
	is(r, "cancel decided while running", r.apply(wish)[0], settle.Stale)
	is(r, "state", r.job(n).State, settle.Pending)
}

func oldTicket(r *rig) {
	c := r.started(withPolicy(settle.Policy{StepAttempts: 5}))
	r.moves(on(c, parked("s", "t1")))
	late := r.seen(c.ID, answered("t1", "late"))
	r.moves(r.seen(c.ID, settle.WaitOver{}))
	is(r, "the answer after the wait", r.apply(late)[0], settle.Stale)
	second := r.again(c.ID)
	r.moves(on(second, parked("s", "t2")))
	before := r.job(c.ID)
	is(r, "the answer while another is waited for", r.apply(late)[0], settle.Stale)
	is(r, "an answer for the old ticket", r.apply(r.seen(c.ID, answered("t1", "late")))[0], settle.Stale)
	r.untouched(before)
}

func deliveredTwice(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, parked("s", "t")))
	one, two := r.seen(c.ID, answered("t", "out")), r.seen(c.ID, answered("t", "out"))
	r.moves(one)
	before := r.job(c.ID)
	is(r, "the second bridge", r.apply(two)[0], settle.Already)
	r.untouched(before)
	r.again(c.ID)
	before = r.job(c.ID)
	is(r, "the second bridge after the next claim", r.apply(two)[0], settle.Already)
	r.untouched(before)
}

func onlyAlarmMoves(r *rig) {
	c := r.started(task(settle.EnqueueOpts{Key: "k"}))
	r.insert(keyed("k"))
	r.hold(settle.Hold{Queue: queue, For: time.Hour})
	r.ack(true, c.ID)
	r.advance(time.Second)
	r.renew(c)
	is(r, "what the claim saw", steady(r.job(c.ID)), steady(settle.Job{ID: c.ID, Kind: c.Kind, Queue: c.Queue, Tenant: c.Tenant, State: c.State, Counters: c.Counters}))
	r.moves(on(c, succeeded("1")))
}
