package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

var readClauses = []clause{
	{"an unknown job is not found", readUnknown},
	{"P12 the last real error is never replaced by a generic one", lastErrorStays},
	{"the label tells what a pending job waits for", labels},
	{"Counts tells each state of each queue", counts},
	{"Counts stops at its limit and says so", countsLimited},
	{"P6 a count never hides a small queue behind a large one", countsApart},
	{"Ack marks dead jobs and nothing else", acks},
	{"the books balance over every way to an end", booksBalance},
}

func (r *rig) counted(queue string, state settle.State) settle.Count {
	r.Helper()
	return r.countedTo(queue, state, 0)
}

func (r *rig) countedTo(queue string, state settle.State, limit int) settle.Count {
	r.Helper()
	all, err := r.store.Counts(r.ctx, limit)
	ok(r, "Counts", err)
	for _, c := range all {
		if c.Queue == queue && c.State == state {
			return c
		}
	}
	return settle.Count{Queue: queue, State: state}
}

func (r *rig) ack(acked bool, jobs ...settle.ID) int {
	r.Helper()
	n, err := r.store.Ack(r.ctx, jobs, acked)
	ok(r, "Ack", err)
	return n
}

func readUnknown(r *rig) {
	_, err := r.store.Job(r.ctx, id("nobody"))
	check(r, errors.Is(err, settle.ErrNotFound), "an unknown job is ErrNotFound: got %v", err)
}

func lastErrorStays(r *rig) {
	c := r.started(withPolicy(settle.Policy{Crashes: 5}))
	r.moves(on(c, failed("disk quota exceeded")))
	r.again(c.ID)
	r.crash()
	c = r.again(c.ID)
	r.moves(on(c, settle.Deferred{Reason: settle.AttemptShutdown}))
	r.again(c.ID)
	r.moves(r.seen(c.ID, settle.DeadlineOver{}))
	j := r.job(c.ID)
	is(r, "attempts recorded", len(j.Attempts), 4)
	last, _ := j.LastError()
	is(r, "last error", last.Error, "disk quota exceeded")
	var end *settle.EndError
	check(r, errors.As(j.EndError(), &end), "a dead job has an end error")
	is(r, "message of the end", end.Message, "disk quota exceeded")
	is(r, "reason of the end", end.Reason, settle.EndExpired)
}

func labels(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Minute}))
	is(r, "after a deferral", r.job(c.ID).Label(), "deferred")
	is(r, "after a deferral, in a list", r.list(settle.Filter{})[0].Label(), "deferred")
	c = r.again(c.ID)
	is(r, "while it runs", r.job(c.ID).Label(), "running")
	r.moves(on(c, failedFor(time.Minute)))
	is(r, "after a failure", r.job(c.ID).Label(), "retrying")
	is(r, "before its first due", r.job(r.add(task(settle.EnqueueOpts{Delay: time.Hour}))).Label(), "scheduled")
	is(r, "when due", r.job(r.add(tenant("b"))).Label(), "pending")
}

func counts(r *rig) {
	r.ended(task(settle.EnqueueOpts{}), succeeded("1"))
	r.ended(task(settle.EnqueueOpts{}), succeeded("1"))
	r.ended(task(settle.EnqueueOpts{}), settle.CancelAsked{})
	dead := r.died(task(settle.EnqueueOpts{}))
	r.died(task(settle.EnqueueOpts{}))
	r.moves(on(r.started(task(settle.EnqueueOpts{})), parked("s", "t")))
	r.started(task(settle.EnqueueOpts{}))
	r.insert(task(settle.EnqueueOpts{}), task(settle.EnqueueOpts{Queue: "q2"}), task(settle.EnqueueOpts{Queue: "q2"}))
	r.ack(true, dead)
	for state, want := range map[settle.State]int{settle.Pending: 1, settle.Running: 1, settle.Awaiting: 1, settle.Succeeded: 2, settle.Dead: 2, settle.Cancelled: 1} {
		got := r.counted(queue, state)
		is(r, string(state), got.N, want)
		is(r, string(state)+" and more", got.More, false)
	}
	is(r, "acknowledged", r.counted(queue, settle.Dead).Acked, 1)
	is(r, "pending in another queue", r.counted("q2", settle.Pending).N, 2)
	is(r, "dead in another queue", r.counted("q2", settle.Dead).N, 0)
}

func countsLimited(r *rig) {
	r.insert(many(7, work, settle.EnqueueOpts{})...)
	got := r.countedTo(queue, settle.Pending, 5)
	is(r, "counted", got.N, 5)
	is(r, "and more", got.More, true)
	got = r.countedTo(queue, settle.Pending, 8)
	is(r, "counted below the limit", got.N, 7)
	is(r, "and more", got.More, false)
}

func countsApart(r *rig) {
	r.insert(many(5, work, settle.EnqueueOpts{Queue: "small", Delay: time.Hour})...)
	r.insert(many(20, work, settle.EnqueueOpts{Queue: "large", Delay: time.Hour})...)
	small := r.countedTo("small", settle.Pending, 10)
	check(r, small.N == 5 || small.More, "the small queue has 5, or says that there is more: got %+v", small)
	large := r.countedTo("large", settle.Pending, 10)
	check(r, large.N <= 10 && large.More, "the large queue has more than 10: got %+v", large)
}

func acks(r *rig) {
	dead, live, done := r.died(task(settle.EnqueueOpts{})), r.add(task(settle.EnqueueOpts{Delay: time.Hour})), r.ended(task(settle.EnqueueOpts{}), succeeded("1"))
	is(r, "acknowledged", r.ack(true, dead, live, done, id("nobody")), 1)
	is(r, "the dead job", r.job(dead).Acked, true)
	is(r, "the live job", r.job(live).Acked, false)
	is(r, "the succeeded job", r.job(done).Acked, false)
	is(r, "acknowledged again", r.ack(true, dead), 0)
	is(r, "unacknowledged dead jobs", r.count(settle.Filter{States: []settle.State{settle.Dead}, Unacked: true}), 0)
	is(r, "taken back", r.ack(false, dead), 1)
	is(r, "unacknowledged dead jobs afterwards", r.count(settle.Filter{States: []settle.State{settle.Dead}, Unacked: true}), 1)
}

// balance is every job that was accepted: live, ended or counted as removed.
func (r *rig) balance() (jobs int) {
	r.Helper()
	all, err := r.store.Counts(r.ctx, 0)
	ok(r, "Counts", err)
	for _, c := range all {
		jobs += c.N
	}
	removed, err := r.store.Removed(r.ctx)
	ok(r, "Removed", err)
	for _, c := range removed {
		jobs += int(c.N)
	}
	return jobs
}

func booksBalance(r *rig) {
	r.insert(many(60, work, settle.EnqueueOpts{Deadline: time.Hour})...)
	r.advance(time.Second)
	var ts []settle.Transition
	for i, c := range r.ask(settle.ClaimReq{Limit: 50}).Jobs {
		ts = append(ts, on(c, []settle.Event{succeeded("1"), hopeless("no"), failed("no"), settle.LeaseOver{}, parked("s", fmt.Sprint(i))}[i%5]))
	}
	r.apply(ts...)
	is(r, "P14 jobs on the books", r.balance(), 60)
	r.remove(ts[0].Job, ts[1].Job, ts[2].Job)
	is(r, "P14 after a removal", r.balance(), 60)
	r.advance(8 * 24 * time.Hour)
	r.sweep()
	is(r, "P14 after the sweep", r.balance(), 60)
	r.prune(settle.Keep{Dead: time.Hour}, 1000)
	is(r, "P14 after retention", r.balance(), 60)
}
