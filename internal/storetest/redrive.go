package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var redriveClauses = []clause{
	{"a redrive is due at once with its time anew", redriveAnew},
	{"a redrive of a cancelled job runs again", redriveCancelled},
	{"a redrive of a succeeded or live job is refused", redriveRefused},
	{"B-012.1 attempts go on counting and all of them stay readable", redriveHistory},
	{"B-012.2 redrives are bounded", redriveBounded},
	{"P10 two people who redrive at once give one chance", redriveTwice},
	{"P10 a repeated redrive does not redrive a later death", redriveRepeated},
	{"P10 a repeated command from before a redrive can not reset the redrives", redriveNotReset},
	{"a redrive meets a live job with its key and is superseded", redriveSuperseded},
	{"a superseded redrive does not hold its neighbours", redriveNeighbours},
	{"a redrive takes its key back when it is free", redriveKey},
	{"a redriven job is no longer acknowledged", redriveUnacked},
	{"P6 a redriven job leaves the dead letters", redriveLeavesDead},
}

func (r *rig) redrive(n settle.ID) {
	r.Helper()
	r.moves(r.seen(n, settle.RedriveAsked{}))
}

func redriveAnew(r *rig) {
	n := r.died(withPolicy(settle.Policy{Attempts: 3, Deadline: time.Hour}))
	r.advance(24 * time.Hour)
	r.redrive(n)
	j := r.job(n)
	is(r, "state", j.State, settle.Pending)
	is(r, "counters", j.Counters, settle.Counters{Attempt: 1, Tries: 4, Redrives: 1, Base: 1})
	near(r, "due", j.Due, r.now())
	near(r, "first due", j.FirstDue, r.now())
	near(r, "enqueued", j.Enqueued, Start)
	near(r, "deadline", j.Deadline, r.now().Add(time.Hour))
	near(r, "alarm", j.Alarm, j.Deadline)
	check(r, j.EndedAt.IsZero() && j.Reason == "" && j.Note == "", "a live job has no end: got %s %q", j.EndedAt, j.Reason)
	same(r, "errors that are kept", errorsOf(j), []string{"it can not work"})
	c := r.claimOne()
	is(r, "attempt", c.Attempt, 2)
	is(r, "input", string(c.Input), `{"n":1}`)
}

func redriveCancelled(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Tenant: "a"}))
	r.moves(r.seen(n, settle.CancelAsked{}))
	r.redrive(n)
	c := r.claimOne()
	is(r, "the job that is claimed", c.ID, n)
	is(r, "tenant", c.Tenant, "a")
	is(r, "attempt", c.Attempt, 1)
}

func redriveRefused(r *rig) {
	n := r.ended(task(settle.EnqueueOpts{}), succeeded("1"))
	is(r, "refusal of a succeeded job", r.seen(n, settle.RedriveAsked{}).Refusal, settle.RefusedDone)
	n = r.add(task(settle.EnqueueOpts{}))
	is(r, "refusal of a live job", r.seen(n, settle.RedriveAsked{}).Refusal, settle.RefusedNotEnded)
}

// failAll lets the job fail until it is dead.
func (r *rig) failAll(n settle.ID) {
	r.Helper()
	for range 50 {
		j := r.job(n)
		if j.State.Ended() {
			return
		}
		r.moves(on(r.again(n), failed("always")))
	}
	r.Fatalf("job %s: got 50 failures and no end", n)
}

func redriveHistory(r *rig) {
	n := r.add(withPolicy(settle.Policy{Attempts: 3}))
	r.failAll(n)
	for range 2 {
		r.redrive(n)
		r.failAll(n)
	}
	j := r.job(n)
	same(r, "attempt numbers", numbersOf(j), []int{1, 2, 3, 4, 5, 6, 7, 8, 9})
	is(r, "redrives", j.Redrives, 2)
	is(r, "reason", j.Reason, settle.EndExhausted)
}

func redriveBounded(r *rig) {
	n := r.add(withPolicy(settle.Policy{Attempts: 2, Redrives: 5}))
	for minute := range 60 {
		r.failAll(n)
		t := r.seen(n, settle.RedriveAsked{})
		if minute >= 5 {
			is(r, "refusal once they are spent", t.Refusal, settle.RefusedRedrives)
			is(r, "answer", r.apply(t)[0], settle.Stale)
			continue
		}
		r.moves(t)
		r.advance(time.Minute)
	}
	is(r, "redrives", r.job(n).Redrives, 5)
	is(r, "attempts in all", r.job(n).Attempt, 12)
}

func redriveTwice(r *rig) {
	n := r.died(task(settle.EnqueueOpts{}))
	one, two := r.seen(n, settle.RedriveAsked{}), r.seen(n, settle.RedriveAsked{})
	r.moves(one)
	is(r, "answer to the second", r.apply(two)[0], settle.Already)
	is(r, "redrives", r.job(n).Redrives, 1)
	is(r, "tries", r.job(n).Tries, 11)
}

func redriveRepeated(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	r.moves(r.seen(n, settle.CancelAsked{}))
	t := r.seen(n, settle.RedriveAsked{})
	r.moves(t)
	r.moves(r.seen(n, settle.CancelAsked{}))
	check(r, r.apply(t)[0] != settle.Done, "a redrive that was applied once is not applied again")
	is(r, "state", r.job(n).State, settle.Cancelled)
	is(r, "redrives", r.job(n).Redrives, 1)
}

func redriveNotReset(r *rig) {
	n := r.add(withPolicy(settle.Policy{Redrives: 1}))
	stop := r.seen(n, settle.CancelAsked{})
	r.moves(stop)
	r.redrive(n)
	r.apply(stop) // its sender never got the first answer
	is(r, "redrives", r.job(n).Redrives, 1)
	if r.job(n).State.Live() {
		r.moves(r.seen(n, settle.CancelAsked{}))
	}
	is(r, "a second redrive of one", r.seen(n, settle.RedriveAsked{}).Refusal, settle.RefusedRedrives)
}

func redriveSuperseded(r *rig) {
	dead := r.died(keyed("k"))
	live := r.add(keyed("k"))
	before := r.job(dead)
	is(r, "answer", r.apply(r.seen(dead, settle.RedriveAsked{}))[0], settle.Superseded)
	r.untouched(before)
	is(r, "the job that has the key", r.claimOne().ID, live)
}

func redriveNeighbours(r *rig) {
	blocked, lone := r.died(keyed("k")), r.died(keyed("l"))
	r.add(keyed("k"))
	said := r.apply(r.seen(blocked, settle.RedriveAsked{}), r.seen(lone, settle.RedriveAsked{}))
	same(r, "answers", said, []settle.Applied{settle.Superseded, settle.Done})
	is(r, "state of the neighbour", r.job(lone).State, settle.Pending)
}

func redriveKey(r *rig) {
	n := r.died(keyed("k"))
	r.redrive(n)
	r.taken("k", n, settle.Pending)
	is(r, "key", r.job(n).Key, "k")
}

func redriveUnacked(r *rig) {
	n := r.died(task(settle.EnqueueOpts{}))
	r.ack(true, n)
	is(r, "acknowledged", r.job(n).Acked, true)
	r.redrive(n)
	is(r, "acknowledged while live", r.job(n).Acked, false)
	r.moves(on(r.claimOne(), hopeless("again")))
	is(r, "acknowledged after the next death", r.job(n).Acked, false)
}

func redriveLeavesDead(r *rig) {
	n := r.died(task(settle.EnqueueOpts{}))
	r.redrive(n)
	is(r, "dead letters", r.count(settle.Filter{States: []settle.State{settle.Dead}}), 0)
	is(r, "jobs", r.count(settle.Filter{}), 1)
	is(r, "counted as dead", r.counted(queue, settle.Dead).N, 0)
}
