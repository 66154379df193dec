package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

var walkClauses = []clause{
	{"P1 P3 P10 every arrow of Decide is carried out as decided (seed 1)", func(r *rig) { walk(r, 1) }},
	{"P1 P3 P10 every arrow of Decide is carried out as decided (seed 2)", func(r *rig) { walk(r, 2) }},
	{"P1 P3 P10 every arrow of Decide is carried out as decided (seed 3)", func(r *rig) { walk(r, 3) }},
}

// The size of one walk.
const (
	walkers = 25
	strides = 40
)

// walker leads many jobs through random arrows and compares each row that the
// store shows with the transition that was decided.
type walker struct {
	*rig
	rng  *rand.Rand
	ids  []settle.ID
	seen map[string]int                    // how often each arrow was taken
	told map[settle.ID][]settle.Transition // carried out, with a trace that lasts
	jobs map[settle.ID]settle.Job          // as last read
	hook map[settle.ID]struct{}            // jobs that ends must have inserted
}

func walk(r *rig, seed uint64) {
	w := &walker{rig: r, rng: rand.New(rand.NewPCG(seed, 7)), seen: map[string]int{},
		told: map[settle.ID][]settle.Transition{}, jobs: map[settle.ID]settle.Job{}, hook: map[settle.ID]struct{}{}}
	w.begin()
	for range strides {
		r.advance(time.Duration(w.rng.IntN(4000)) * time.Millisecond)
		w.claimDue()
		w.stride()
		if r.Failed() {
			return // the rest would only repeat it
		}
	}
	w.arrowsTaken()
	w.replay()
	w.allEnd()
}

// begin inserts the jobs, each with numbers of its own.
func (w *walker) begin() {
	for i := range walkers {
		p := settle.Policy{Attempts: 1 + w.rng.IntN(6), Crashes: 1 + w.rng.IntN(3), Deferrals: 1 + w.rng.IntN(4), Redrives: 1 + w.rng.IntN(3),
			BackoffMin: 10 * time.Millisecond, BackoffMax: 4 * time.Second, Deadline: time.Duration(1+w.rng.IntN(300)) * time.Second,
			Wait: time.Duration(1+w.rng.IntN(20)) * time.Second}
		if i%3 == 0 {
			p.OnEnd = told
		}
		w.ids = append(w.ids, w.add(task(settle.EnqueueOpts{Tenant: fmt.Sprint("t", i%4), Policy: &p, Delay: time.Duration(w.rng.IntN(3000)) * time.Millisecond})))
	}
	for _, n := range w.ids {
		w.jobs[n] = w.job(n)
	}
}

// claimDue claims all that is due and nothing else: suspects alone.
func (w *walker) claimDue() {
	var due, alone []settle.ID
	for n, j := range w.jobs {
		if j.State == settle.Pending && !j.Due.After(w.now()) && j.Deadline.After(w.now()) {
			if j.Suspect {
				alone = append(alone, n)
			} else {
				due = append(due, n)
			}
		}
	}
	got := w.ask(settle.ClaimReq{})
	sameSet(w, "claimed", ids(got.Jobs), due)
	is(w, "suspects wait", got.Suspects, len(alone) > 0)
	all := got.Jobs
	for range alone {
		more := w.claimSuspect()
		is(w, "suspects in one claim", len(more), 1)
		all = append(all, more...)
	}
	for _, c := range all {
		was := w.jobs[c.ID]
		was.Now = w.now()
		t := was.Decide(settle.Claimed{}, 0, false)
		is(w, "claimed counters", c.Counters, t.Counters)
		is(w, "claimed state", c.State, t.To)
		w.seen["claimed"]++
		w.jobs[c.ID] = w.job(c.ID)
		is(w, "stored counters", w.jobs[c.ID].Counters, t.Counters)
	}
}

// stride moves some of the jobs with one Apply.
func (w *walker) stride() {
	var ts []settle.Transition
	var before []settle.Job
	for _, n := range w.ids {
		j := w.job(n)
		ev := w.event(j)
		if ev == nil {
			continue
		}
		t := j.Decide(ev, w.rng.Float64(), w.rng.IntN(2) == 0)
		if w.rng.IntN(3) == 0 {
			t.Fence.Handle = 0
		}
		ts, before = append(ts, t), append(before, j)
		w.seen[fmt.Sprintf("%s %T", j.State, ev)]++
	}
	said := w.apply(ts...)
	for i, t := range ts {
		w.judge(before[i], t, said[i])
	}
	w.repeat(ts)
}

func (w *walker) judge(before settle.Job, t settle.Transition, said settle.Applied) {
	w.Helper()
	after := w.job(t.Job)
	w.jobs[t.Job] = after
	if t.Refusal != "" {
		is(w, "answer to a refusal", said, settle.Stale)
		w.untouched(before)
		return
	}
	is(w, fmt.Sprintf("answer to %s → %s", before.State, t.To), said, settle.Done)
	if early := before.Answer; early != nil && t.To == settle.Awaiting && early.Ticket == t.Wait.Ticket {
		before, t = w.meets(before, t) // the park met its answer
	}
	w.matches(before, after, t)
	if t.Record != nil || t.Step != nil {
		w.told[t.Job] = append(w.told[t.Job], t)
	}
	if t.OnEnd != nil {
		w.hook[t.OnEnd.ID] = struct{}{}
	}
}

// repeat sends the same transitions once more: a progress note or a ticket may be
// taken again, all else has been applied already, and no row changes.
func (w *walker) repeat(ts []settle.Transition) {
	for i, said := range w.apply(ts...) {
		t := ts[i]
		noted := t.To == t.Fence.State && t.Keep == nil // progress, or a ticket
		again := noted && said == settle.Done
		switch {
		case t.Refusal != "":
			is(w, "answer to a repeated refusal", said, settle.Stale)
		case !again:
			is(w, fmt.Sprintf("answer to a repeated %s → %s", t.Fence.State, t.To), said, settle.Already)
		}
		if again && t.To == settle.Running {
			w.goesOn(w.jobs[t.Job])
			w.jobs[t.Job] = w.job(t.Job)
		}
		w.untouched(w.jobs[t.Job])
	}
}

// event chooses what happens to a job; nil = nothing.
func (w *walker) event(j settle.Job) settle.Event {
	switch w.rng.IntN(100) {
	case 0:
		return settle.CancelAsked{Why: "walk"}
	case 1:
		return settle.DeadlineOver{}
	case 2:
		return settle.RedriveAsked{}
	case 3:
		return settle.LeaseOver{}
	case 4:
		return settle.WaitOver{}
	}
	switch j.State {
	case settle.Running:
		if j.Wait != nil && w.rng.IntN(4) > 0 {
			return w.ticketOut(j)
		}
		return w.handlerSays(j)
	case settle.Awaiting:
		return w.nodeSays(*j.Wait)
	case settle.Dead, settle.Cancelled:
		if w.rng.IntN(3) == 0 {
			return settle.RedriveAsked{}
		}
	}
	return nil
}

func (w *walker) handlerSays(j settle.Job) settle.Event {
	text := fmt.Sprint("error ", w.rng.IntN(1000))
	switch w.rng.IntN(20) {
	case 0:
		return succeeded("out")
	case 1:
		return hopeless(text)
	case 2, 3:
		return failed(text)
	case 4, 5:
		return failedFor(time.Duration(1+w.rng.IntN(2000)) * time.Millisecond)
	case 6, 7:
		return settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Duration(w.rng.IntN(3000)) * time.Millisecond, Error: text, Node: "busy"}
	case 8:
		return settle.Deferred{Reason: settle.AttemptShutdown}
	case 9:
		return settle.Deferred{Reason: settle.AttemptLaneHeld, Uncounted: true}
	case 10, 11:
		return settle.LeaseOver{}
	case 12, 13, 14, 15, 16:
		return w.submits(j)
	}
	return nil
}

// matches compares a row with the transition that led to it.
func (w *walker) matches(before, after settle.Job, t settle.Transition) {
	w.Helper()
	is(w, "state", after.State, t.To)
	is(w, "counters", after.Counters, t.Counters)
	is(w, "input", string(after.Input), string(before.Input))
	is(w, "enqueued", after.Enqueued, before.Enqueued)
	w.matchTimes(before, after, t)
	w.matchWait(before, after, t)
	w.matchHistory(before, after, t)
	if after.State.Ended() {
		is(w, "reason", after.Reason, t.End)
		is(w, "note", after.Note, t.Note)
		near(w, "ended at", after.EndedAt, w.now())
		is(w, "output", string(after.Output), string(t.Output))
	} else {
		is(w, "reason and note of a live job", string(after.Reason)+after.Note, "")
		is(w, "suspect", after.Suspect, t.To == settle.Pending && t.Suspect || t.To == settle.Running && before.Suspect)
	}
}

func (w *walker) matchTimes(before, after settle.Job, t settle.Transition) {
	w.Helper()
	if t.Deadline > 0 {
		near(w, "deadline anew", after.Deadline, w.now().Add(t.Deadline))
		near(w, "first due anew", after.FirstDue, w.now())
	} else {
		is(w, "first due", after.FirstDue, before.FirstDue)
	}
	if after.State.Ended() {
		check(w, after.EndsBy.IsZero(), "an ended job has no time by which it ends")
		return
	}
	if t.Deadline == 0 {
		is(w, "deadline", after.Deadline, before.Deadline)
	}
	check(w, !after.Alarm.IsZero() && !after.Alarm.After(after.Deadline), "P1 a live job has an alarm, not after its deadline: got %s, deadline %s", after.Alarm, after.Deadline)
	is(w, "P1 ends by", after.EndsBy, settle.EndsBy(after.Deadline))
	if t.To == settle.Pending {
		near(w, "due", after.Due, w.now().Add(t.After))
		check(w, !after.Due.Before(w.now().Add(t.After)), "a job is never due early")
		is(w, "alarm of a pending job", after.Alarm, after.Deadline)
	}
}

func (w *walker) matchHistory(before, after settle.Job, t settle.Transition) {
	w.Helper()
	want := slices.Clone(before.Attempts)
	if rec := t.Record; rec != nil && len(after.Attempts) > 0 {
		last := after.Attempts[len(after.Attempts)-1]
		near(w, "when the attempt was recorded", last.At, w.now())
		want = append(want, settle.Attempt{N: before.Attempt, Reason: rec.Reason, Error: rec.Error, Step: rec.Step,
			Ticket: rec.Ticket, Node: rec.Node, Retryable: rec.Retryable, Worker: last.Worker, At: last.At})
	}
	same(w, "attempts", after.Attempts, want)
	is(w, "steps", len(after.Steps), len(before.Steps)+btoi(t.Step != nil && !hasStep(before.Steps, t.Step.Step)))
	if t.Step != nil {
		check(w, slices.ContainsFunc(after.Steps, func(s settle.StepResult) bool {
			return s.Step == t.Step.Step && bytes.Equal(s.Output, t.Step.Output)
		}), "the result of step %s is kept", t.Step.Step)
	}
}

func hasStep(steps []settle.StepResult, name string) bool {
	return slices.ContainsFunc(steps, func(s settle.StepResult) bool { return s.Step == name })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// arrowsTaken holds the walk to its purpose.
func (w *walker) arrowsTaken() {
	for _, arrow := range []string{"claimed", "running settle.Settled", "running settle.Deferred", "running settle.Submitting",
		"running settle.Kept", "running settle.Parked", "park met its answer", "running settle.LeaseOver", "awaiting settle.Delivered", "awaiting settle.Progressed", "dead settle.RedriveAsked"} {
		check(w, w.seen[arrow] > 0, "the walk takes the arrow %q: got %v", arrow, w.seen)
	}
}

// replay sends every recorded transition once more, long after.
func (w *walker) replay() {
	for n, ts := range w.told {
		before := w.job(n)
		for i, said := range w.apply(ts...) {
			is(w, fmt.Sprintf("answer to a late repeat of %s → %s", ts[i].Fence.State, ts[i].To), said, settle.Already)
		}
		w.untouched(before)
	}
}

// allEnd passes all deadlines: nothing may stay live, and the books balance.
func (w *walker) allEnd() {
	w.advance(40 * 24 * time.Hour)
	w.sweep()
	is(w, "P1 live jobs after every deadline", w.count(settle.Filter{Kind: work, States: []settle.State{settle.Pending, settle.Running, settle.Awaiting}}), 0)
	is(w, "P14 jobs in all", w.count(settle.Filter{Kind: work}), walkers)
	inserted := map[settle.ID]bool{}
	for _, j := range w.list(settle.Filter{Kind: told}) {
		inserted[j.ID] = true
	}
	for n := range w.hook {
		check(w, inserted[n], "the hook job %s of an end was inserted", n)
	}
}
