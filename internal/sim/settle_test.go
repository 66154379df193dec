package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// ticket is a submission of a step: its node may answer at any time.
type ticket struct {
	job    settle.ID
	ticket settle.ID
	step   string
}

// settle sends what a worker's handlers came to, and what was not acknowledged
// before.
func (w *world) settle() {
	h := pickOne(w, w.hands[:])
	for range min(1+w.rng.IntN(3), len(h.held)) {
		c := pickOne(w, h.held)
		if slices.ContainsFunc(h.offers, func(d deed) bool { return d.t.Job == c.ID && d.t.Fence.Attempt == c.Attempt }) {
			continue
		}
		h.offers = append(h.offers, w.outcome(c, h.id))
	}
	if len(h.offers) == 0 {
		return
	}
	if w.one(12) {
		w.hit("lost request: Apply")
		return
	}
	w.apply(h.at, h.offers)
	if w.one(8) {
		w.hit("lost answer: Apply")
		return // sent again, with the same fence
	}
	for i := range h.offers {
		d := &h.offers[i]
		for _, c := range h.held {
			if c.ID == d.t.Job && c.Attempt == d.t.Fence.Attempt {
				w.haunt(ghost{job: *c, by: h.id, said: d})
				h.held = slices.DeleteFunc(h.held, func(x *settle.ClaimedJob) bool { return x == c })
				break
			}
		}
	}
	h.offers = nil
}

// outcome is what one handler came to.
func (w *world) outcome(c *settle.ClaimedJob, worker int64) deed {
	ev := w.comesTo(c)
	t := settle.Decide(c.Snapshot, ev, c.Policy, w.rng.Float64())
	t.Fence.Worker, t.Fence.Handle = worker, c.Handle
	if j := w.m.byID[c.ID]; w.one(4) && j != nil && j.n == c.Handle {
		t.Fence.Handle = 0 // found by id, where the id is still this job's
	}
	if p, ok := ev.(settle.Parked); ok {
		w.tickets = append(w.tickets, ticket{c.ID, p.Wait.Ticket, p.Wait.Step})
	}
	return deed{ev: ev, t: t, left: c.Remaining, wait: knows(c)}
}

func (w *world) handler(c *settle.ClaimedJob) settle.Event {
	text := fmt.Sprint("error ", w.rng.IntN(1000))
	fails := func(v settle.Verdict, r settle.AttemptReason, after time.Duration) settle.Event {
		return settle.Settled{Outcome: settle.Outcome{Verdict: v, Reason: r, Error: text, After: after}}
	}
	switch w.rng.IntN(20) {
	case 0, 1, 2, 3:
		return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: fmt.Appendf(nil, "out %d", w.rng.IntN(1000))}}
	case 4, 5, 6:
		return fails(settle.VerdictRetry, pickOne(w, []settle.AttemptReason{"", settle.AttemptPanic, settle.AttemptGoexit, settle.AttemptTimedOut}), 0)
	case 7:
		return fails("maybe", "made up", 0)
	case 8:
		return fails(settle.VerdictRetry, settle.AttemptError, w.between(time.Second, time.Minute))
	case 9:
		return fails(settle.VerdictTerminal, pickOne(w, []settle.AttemptReason{settle.AttemptError, settle.AttemptOutput}), 0)
	case 10:
		return fails(settle.VerdictTerminal, settle.AttemptUndecodable, 0)
	case 11, 12, 13:
		return settle.Deferred{Reason: pickOne(w, []settle.AttemptReason{settle.AttemptSnoozed, settle.AttemptNoNode, settle.AttemptBusy, settle.AttemptRateLimited}),
			After: w.between(0, 20*time.Second), Error: text, Node: pickOne(w, []string{"", "n"})}
	case 14:
		return settle.Deferred{Reason: settle.AttemptShutdown}
	case 15:
		return settle.Deferred{Reason: settle.AttemptLaneHeld, After: w.between(0, 5*time.Second), Uncounted: true}
	default:
		return settle.Parked{Wait: settle.Wait{Ticket: w.id("ticket"), Step: w.openStep(c), Node: pickOne(w, []string{"", "n"}),
			Silence: time.Duration(w.rng.IntN(3)) * 4 * time.Second}}
	}
}

// openStep names a step that has not been finished.
func (w *world) openStep(c *settle.ClaimedJob) string {
	for _, name := range []string{pickOne(w, []string{"s0", "s1"}), "s0", "s1", "s2"} {
		if !slices.ContainsFunc(c.Steps, func(s settle.StepResult) bool { return s.Step == name }) {
			return name
		}
	}
	return fmt.Sprint("s", c.Attempt+2)
}

// apply carries out deeds and holds the store's answers, one by one, to the
// model's.
func (w *world) apply(at int, deeds []deed) []settle.Applied {
	ts := make([]settle.Transition, len(deeds))
	for i := range deeds {
		ts[i] = deeds[i].t
	}
	before := len(w.m.live())
	got, err := w.store[at].Apply(w.ctx, ts)
	w.must(err, "Apply")
	w.dirty = true
	w.check(len(got) == len(ts), "Apply", "%d answers to %d transitions", len(got), len(ts))
	for i, d := range deeds {
		want, moved := w.m.apply(d)
		w.say("apply %T to job %s attempt %d: %s %s → %s %s: %s", d.ev, d.t.Job.String()[:8], d.t.Fence.Attempt, d.t.Fence.State, d.t.Refusal, d.t.To, d.t.End, got[i])
		w.check(slices.Contains(want, got[i]), "Apply: answer", "to %T %+v: got %s, want %v (the job is %+v)", d.ev, d.t, got[i], want, w.m.byID[d.t.Job])
		w.hit("apply: " + string(got[i]))
		if p, parks := d.ev.(settle.Parked); parks && got[i] != settle.Done && p.Wait.Ticket == d.wait.Ticket {
			w.hit("park of a recorded ticket: " + string(got[i]))
		}
		if moved != nil {
			w.hit(fmt.Sprintf("%s by %T", d.t.Fence.State, d.ev))
			w.moved(moved, d)
			w.met(moved)
		}
	}
	w.changed(at, before)
	w.adopt()
	return got
}

// late lets an attempt speak whose worker crashed, lost its lease, or has
// already settled it: something else, or the same once more.
func (w *world) late() {
	if h := pickOne(w, w.hands[:]); len(h.held) > 0 && w.one(6) {
		c := pickOne(w, h.held)
		w.renewed(w.any(), h.id+100, []settle.Held{{Job: c.ID, Attempt: c.Attempt, Handle: c.Handle}}, 30*time.Second)
		w.hit("renewal by a stranger")
		return
	}
	if len(w.ghosts) == 0 {
		return
	}
	g := pickOne(w, w.ghosts)
	switch {
	case w.one(4):
		w.renewed(w.any(), g.by, []settle.Held{{Job: g.job.ID, Attempt: g.job.Attempt, Handle: g.job.Handle}}, 30*time.Second)
		w.hit("late renewal")
	case g.said != nil && w.one(2):
		w.apply(w.any(), []deed{*g.said})
		w.hit("settle repeated")
	default:
		w.apply(w.any(), []deed{w.outcome(&g.job, g.by)})
		w.hit("late settle")
	}
}

// forge asks for a pending row that is spent: it cannot be stored (P2).
func (w *world) forge() {
	h := pickOne(w, w.hands[:])
	if len(h.held) == 0 {
		return
	}
	c := pickOne(w, h.held)
	t := settle.Decide(c.Snapshot, settle.Deferred{Reason: settle.AttemptSnoozed}, c.Policy, 0)
	t.To, t.End, t.Excused, t.OnEnd = settle.Pending, "", c.Attempt-c.Tries, nil
	t.Fence.Handle = c.Handle
	w.apply(h.at, []deed{{ev: settle.Deferred{}, t: t, forged: true}})
	w.hit("spent row offered")
}

// ---- answers of nodes

// deliver lets a node answer a submission, in time or not, once or again.
func (w *world) deliver() {
	if len(w.tickets) == 0 {
		return
	}
	k := pickOne(w, w.tickets)
	if waiting := w.m.in(settle.Awaiting); len(waiting) > 0 && !w.one(3) {
		j := pickOne(w, waiting)
		k = ticket{j.id, j.wait.Ticket, j.wait.Step}
	}
	at := w.any()
	got, j := w.read(w.store[at], k.job)
	if j == nil {
		return
	}
	ev := w.answer(k)
	if answer, ok := ev.(settle.Delivered); ok {
		ev = got.Answered(answer)
	}
	d := decided(&got, ev, w.rng.Float64(), false)
	if d.t.Refusal != "" {
		w.hit("answer refused: " + string(d.t.Refusal))
	}
	if w.one(4) {
		w.wishes = append(w.wishes, d) // carried out later
		return
	}
	w.apply(at, []deed{d})
	if w.one(4) {
		w.apply(at, []deed{d})
		w.hit("answer delivered twice")
	}
}

func (w *world) answer(k ticket) settle.Event {
	out := settle.Outcome{Reason: settle.AttemptStepError, Error: fmt.Sprint("node ", w.rng.IntN(100)), Node: pickOne(w, []string{"", "m"})}
	switch w.rng.IntN(12) {
	case 0, 1:
		return settle.Progressed{Ticket: k.ticket}
	case 2:
		return settle.Delivered{Ticket: w.id("stranger"), Outcome: settle.Outcome{Verdict: settle.VerdictOK}}
	case 3:
		out.Verdict, out.Reason = settle.VerdictTerminal, pickOne(w, []settle.AttemptReason{settle.AttemptStepError, settle.AttemptRefused})
	case 4, 5, 6:
		out.Verdict, out.Reason = settle.VerdictRetry, pickOne(w, []settle.AttemptReason{settle.AttemptStepError, settle.AttemptProtocol})
		if w.one(3) {
			out.After = w.between(time.Second, 20*time.Second)
		}
	default:
		out = settle.Outcome{Verdict: settle.VerdictOK, Output: fmt.Appendf(nil, "result %d", w.rng.IntN(100)), Node: out.Node}
	}
	return settle.Delivered{Ticket: k.ticket, Outcome: out, Retryable: w.one(2)}
}

// decided is a deed on a reading of the job.
func decided(j *settle.Job, ev settle.Event, jitter float64, compareAlarm bool) deed {
	d := deed{ev: ev, t: j.Decide(ev, jitter, compareAlarm), left: j.Deadline.Sub(j.Now)}
	if j.Wait != nil {
		d.wait = *j.Wait
	}
	return d
}
