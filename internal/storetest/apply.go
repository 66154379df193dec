package storetest

import (
	"errors"
	"time"

	"github.com/settle-go/settle"
)

var applyClauses = []clause{
	{"P5 a success is an end with its output", appliesSuccess},
	{"P5 a failure is recorded and due again after its backoff", appliesFailure},
	{"P5 the last failure is an end and keeps every error", appliesExhausted},
	{"P5 a terminal failure is an end", appliesTerminal},
	{"B-013 deferrals cost no attempt and are bounded", appliesDeferrals},
	{"an uncounted deferral leaves no trace but its due time", appliesUncounted},
	{"a shutdown gives the job back at once", appliesShutdown},
	{"P3 a refused decision touches nothing", appliesRefusal},
	{"P3 unknown jobs are stale", appliesUnknown},
	{"an apply of nothing is fine", appliesNothing},
	{"one call carries many transitions of many jobs", appliesMany},
	{"several transitions of one job in one call follow each other", appliesInOrder},
	{"P2 a spent job can not be stored as pending", spentIsRefused},
	{"P6 an ended job leaves the alarms the lanes and the claims", endedIsGone},
	{"an apply whose context has ended changes nothing", cancelledApply},
}

func appliesSuccess(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(3 * time.Second)
	r.moves(on(c, succeeded("out")))
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Succeeded)
	is(r, "reason", j.Reason, settle.EndOK)
	is(r, "output", string(j.Output), "out")
	is(r, "input", string(j.Input), string(c.Input))
	is(r, "attempts counted", j.Attempt, 1)
	is(r, "attempts recorded", len(j.Attempts), 0)
	near(r, "ended at", j.EndedAt, Start.Add(3*time.Second))
	check(r, j.EndsBy.IsZero(), "an ended job has no time by which it ends: got %s", j.EndsBy)
}

func appliesFailure(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(2 * time.Second)
	t := on(c, failed("no route"))
	r.moves(t)
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Pending)
	is(r, "holder", j.Worker, 0)
	near(r, "due", j.Due, r.now().Add(t.After))
	near(r, "first due", j.FirstDue, Start)
	near(r, "alarm", j.Alarm, j.Deadline)
	is(r, "attempts recorded", len(j.Attempts), 1)
	want := settle.Attempt{N: 1, Reason: settle.AttemptError, Error: "no route", Worker: worker, At: r.attempt(j, 0).At}
	is(r, "the record", r.attempt(j, 0), want)
	near(r, "when it was recorded", r.attempt(j, 0).At, r.now())
}

func appliesExhausted(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 3}))
	r.moves(on(c, failed("first")))
	r.moves(on(r.again(c.ID), failed("second")))
	r.moves(on(r.again(c.ID), failed("third")))
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndExhausted)
	same(r, "errors", errorsOf(j), []string{"first", "second", "third"})
	same(r, "numbers", numbersOf(j), []int{1, 2, 3})
	r.advance(24 * time.Hour)
	is(r, "claimed a day later", len(r.claim()), 0)
}

func errorsOf(j settle.Job) (texts []string) {
	for _, a := range j.Attempts {
		texts = append(texts, a.Error)
	}
	return texts
}

func numbersOf(j settle.Job) (numbers []int) {
	for _, a := range j.Attempts {
		numbers = append(numbers, a.N)
	}
	return numbers
}

func appliesTerminal(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptUndecodable, Error: "not JSON", Node: "n1"}}))
	j := r.job(c.ID)
	is(r, "state", j.State, settle.Dead)
	is(r, "reason", j.Reason, settle.EndUndecodable)
	is(r, "attempts recorded", len(j.Attempts), 1)
	is(r, "reason of the attempt", r.attempt(j, 0).Reason, settle.AttemptUndecodable)
	is(r, "node of the attempt", r.attempt(j, 0).Node, "n1")
}

func appliesDeferrals(r *rig) {
	c := r.started(withPolicy(settle.Policy{Deferrals: 3, Attempts: 1}))
	for n := 1; n <= 3; n++ {
		r.moves(on(c, settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Minute}))
		j := r.job(c.ID)
		is(r, "deferrals", j.Deferred, n)
		is(r, "charged", j.Charged(), 0)
		is(r, "attempts recorded", len(j.Attempts), n)
		near(r, "due", j.Due, r.now().Add(time.Minute))
		c = r.again(c.ID)
	}
	r.moves(on(c, settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Minute}))
	is(r, "state", r.job(c.ID).State, settle.Dead)
	is(r, "reason", r.job(c.ID).Reason, settle.EndDeferredOut)
}

func appliesUncounted(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, settle.Deferred{Reason: settle.AttemptLaneHeld, After: time.Minute, Uncounted: true}))
	j := r.job(c.ID)
	is(r, "counters", j.Counters, settle.Counters{Attempt: 1, Excused: 1, Tries: 10})
	is(r, "attempts recorded", len(j.Attempts), 0)
	near(r, "due", j.Due, r.now().Add(time.Minute))
}

func appliesShutdown(r *rig) {
	c := r.started(withPolicy(settle.Policy{Attempts: 1}))
	r.moves(on(c, settle.Deferred{Reason: settle.AttemptShutdown}))
	again := r.claimOne()
	is(r, "attempt", again.Attempt, 2)
	is(r, "charged", again.Charged(), 1)
}

func appliesRefusal(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	before := r.job(n)
	for _, ev := range []settle.Event{succeeded("1"), settle.LeaseOver{}, settle.WaitOver{}, settle.RedriveAsked{}, answered("t", "1")} {
		t := before.Decide(ev, jitter, false)
		check(r, t.Refusal != "", "%T of a pending job is refused", ev)
		is(r, "answer", r.apply(t)[0], settle.Stale)
	}
	is(r, "the job", steady(r.job(n)), steady(before))
}

func appliesUnknown(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	stranger := on(c, succeeded("1"))
	stranger.Job, stranger.Fence.Handle = id("nobody"), 0
	same(r, "answers", r.apply(stranger, on(c, succeeded("1"))), []settle.Applied{settle.Stale, settle.Done})
	_, err := r.store.Job(r.ctx, id("nobody"))
	check(r, errors.Is(err, settle.ErrNotFound), "an unknown job is ErrNotFound: got %v", err)
}

func appliesNothing(r *rig) {
	said, err := r.store.Apply(r.ctx, nil)
	ok(r, "Apply of nothing", err)
	is(r, "answers", len(said), 0)
}

func appliesMany(r *rig) {
	r.insert(many(500, work, settle.EnqueueOpts{})...)
	r.advance(time.Second)
	var ts []settle.Transition
	for i, c := range r.ask(settle.ClaimReq{Limit: 500}).Jobs {
		ts = append(ts, on(c, []settle.Event{succeeded("1"), failed("no"), hopeless("no"), parked("s", c.ID.String())}[i%4]))
	}
	for _, said := range r.apply(ts...) {
		is(r, "answer", said, settle.Done)
	}
	for _, state := range []settle.State{settle.Succeeded, settle.Pending, settle.Dead, settle.Awaiting} {
		is(r, string(state), r.count(settle.Filter{States: []settle.State{state}}), 125)
	}
}

func appliesInOrder(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	retry := on(c, failedFor(time.Hour))
	wish := settle.Decide(settle.Snapshot{ID: c.ID, State: settle.Pending, Counters: retry.Counters, Remaining: time.Hour}, settle.CancelAsked{}, c.Policy, jitter)
	same(r, "answers", r.apply(retry, on(c, succeeded("1")), wish), []settle.Applied{settle.Done, settle.Stale, settle.Done})
	is(r, "state", r.job(c.ID).State, settle.Cancelled)
}

func spentIsRefused(r *rig) {
	spent, neighbour := r.started(withPolicy(settle.Policy{Attempts: 1})), r.started(task(settle.EnqueueOpts{}))
	t := on(spent, failed("no"))
	t.To, t.End, t.After = settle.Pending, "", 0 // what a broken Decide would say
	said, err := r.store.Apply(r.ctx, []settle.Transition{t, on(neighbour, succeeded("1"))})
	ok(r, "Apply", err)
	same(r, "answers", said, []settle.Applied{settle.Rejected, settle.Done})
	is(r, "state of the spent job", r.job(spent.ID).State, settle.Running)
	is(r, "attempts recorded", len(r.job(spent.ID).Attempts), 0)
	is(r, "state of the neighbour", r.job(neighbour.ID).State, settle.Succeeded)
	is(r, "claimed", len(r.claim()), 0)
	r.moves(on(spent, failed("no")))
}

func endedIsGone(r *rig) {
	for _, ev := range []settle.Event{succeeded("1"), hopeless("no"), settle.CancelAsked{}} {
		r.ended(task(settle.EnqueueOpts{Deadline: time.Hour}), ev)
	}
	r.advance(24 * time.Hour)
	is(r, "overdue", len(r.overdue(settle.Cursor{}, page).Jobs), 0)
	is(r, "lanes", len(r.lanes(page)), 0)
	is(r, "claimed", len(r.claim()), 0)
	is(r, "jobs that can be read", r.count(settle.Filter{}), 3)
}

func cancelledApply(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	ctx, stop := cancelled(r)
	defer stop()
	_, err := r.store.Apply(ctx, []settle.Transition{on(c, succeeded("1"))})
	check(r, err != nil, "a call whose context has ended tells an error")
	is(r, "state", r.job(c.ID).State, settle.Running)
	r.moves(on(c, succeeded("1")))
}
