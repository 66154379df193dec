package sim

import (
	"slices"

	"github.com/settle-go/settle"
)

// submit lets a handler record a ticket, before it sends anything, again for
// another node, or after its worker has lost the job.
func (w *world) submit() {
	h := pickOne(w, w.hands[:])
	if w.one(8) && len(w.ghosts) > 0 {
		g := &w.ghosts[w.rng.IntN(len(w.ghosts))]
		w.records(w.any(), &g.job, g.by)
		w.hit("ticket of a late handler")
		return
	}
	if len(h.held) == 0 {
		return
	}
	c := pickOne(w, h.held)
	if slices.ContainsFunc(h.offers, func(d deed) bool { return d.t.Job == c.ID && d.t.Fence.Attempt == c.Attempt }) {
		return // it has said what it came to
	}
	if c.Wait != nil {
		w.hit("second ticket of an attempt")
	}
	w.records(h.at, c, h.id)
}

// records is what worker.Job.Submitting does.
func (w *world) records(at int, c *settle.ClaimedJob, by int64) {
	wait := w.newWait(c)
	ev := settle.Submitting{Wait: wait}
	t := settle.Decide(c.Snapshot, ev, c.Policy, 0)
	t.Fence.Handle, t.Fence.Worker = c.Handle, by
	w.tickets = append(w.tickets, ticket{c.ID, wait.Ticket, wait.Step})
	said := w.apply(at, []deed{{ev: ev, t: t, left: c.Remaining, wait: knows(c)}})
	a := attemptOf{c.Handle, c.Attempt}
	switch {
	case w.one(10):
		w.unsure[a] = true
		w.hit("lost answer: a ticket")
	case said[0] == settle.Done:
		w.unsure[a] = false
		c.Wait, c.StepSpent = &wait, w.m.byID[c.ID].spent(wait.Step)
	}
}

func (w *world) newWait(c *settle.ClaimedJob) settle.Wait {
	wait := settle.Wait{Ticket: w.id("ticket"), Step: w.openStep(c), Node: pickOne(w, []string{"", "n"}), Pool: "p", Recall: w.one(2)}
	if j := w.m.byID[c.ID]; j != nil && len(j.attempts) > 0 {
		wait.Retryable = j.attempts[len(j.attempts)-1].Retryable
	}
	return wait
}

// knows is the ticket that a handler knows of.
func knows(c *settle.ClaimedJob) (wait settle.Wait) {
	if c.Wait != nil {
		wait = *c.Wait
	}
	return wait
}

// comesTo is what one handler came to: one that has submitted mostly parks.
func (w *world) comesTo(c *settle.ClaimedJob) settle.Event {
	failed := settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptSubmitFailed, Error: "no reply"}}
	switch {
	case w.unsure[attemptOf{c.Handle, c.Attempt}]:
		return failed
	case c.Wait == nil:
		return w.handler(c)
	}
	switch w.rng.IntN(12) {
	case 0:
		return failed
	case 1, 2:
		refused := settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptSubmitFailed, Error: "refused"}
		if w.one(3) {
			refused.Verdict, refused.Reason = settle.VerdictTerminal, settle.AttemptRefused
		}
		return settle.Settled{Outcome: refused, Refused: true}
	case 3:
		return settle.Deferred{Reason: pickOne(w, []settle.AttemptReason{settle.AttemptBusy, settle.AttemptShutdown, settle.AttemptSnoozed}), Node: c.Wait.Node}
	case 4, 5:
		return w.handler(c)
	default:
		return settle.Parked{Wait: *c.Wait}
	}
}

// early lets a node answer before its submission has parked: once, twice, or so
// that its bridge decides now and acts later.
func (w *world) early() {
	var open []*job
	for _, j := range w.m.in(settle.Running) {
		if j.waits() {
			open = append(open, j)
		}
	}
	if len(open) == 0 {
		return
	}
	j := pickOne(w, open)
	at := w.any()
	got := w.waits(at, j)
	for range 1 + w.rng.IntN(2) {
		answer, ok := w.answer(ticket{j.id, j.wait.Ticket, j.wait.Step}).(settle.Delivered)
		if !ok {
			w.hit("sign of life before the park")
			w.apply(at, []deed{decided(&got, settle.Progressed{Ticket: j.wait.Ticket}, 0, false)})
			continue
		}
		d := decided(&got, got.Answered(answer), w.rng.Float64(), false)
		if w.one(3) {
			w.wishes = append(w.wishes, d)
			continue
		}
		if said := w.apply(at, []deed{d}); said[0] == settle.Already {
			w.hit("second answer before the park")
		}
	}
}

// waits reads what an answer is decided on, among others.
func (w *world) waits(at int, j *job) settle.Job {
	asked := []settle.ID{w.id("nobody"), j.id, pickOne(w, w.m.jobs).id}
	got, err := w.store[at].Waits(w.ctx, asked)
	w.must(err, "Waits")
	w.check(len(got) == len(asked), "Waits", "%d jobs for %d ids", len(got), len(asked))
	for i := range got {
		m := w.m.byID[asked[i]]
		if m == nil || m.state.Ended() {
			w.check(got[i].ID.IsZero() && got[i].State == "", "Waits", "nobody is live there, and it shows %+v", got[i])
			continue
		}
		if m.state != settle.Pending { // holds are not read
			w.same("Waits", differ([]string{w.line(&got[i])}, []string{w.modelLine(m)}))
		}
		w.check(got[i].ID == asked[i] && got[i].Input == nil, "Waits", "got %+v", got[i])
	}
	return got[1]
}

// met delivers in the model what the store delivers with a park.
func (w *world) met(j *job) {
	d, ok := w.m.meets(j)
	if !ok {
		return
	}
	said, moved := w.m.apply(d)
	w.check(moved == j && said[0] == settle.Done, "park", "what was kept for %s is not delivered: %v", j, said)
	w.hit("park met its answer")
	w.moved(j, d)
}

// ---- rules

// charges is the ticket that an event charges to its step's budget, if any.
func charges(d deed) settle.ID {
	switch e := d.ev.(type) {
	case settle.Settled:
		if e.Verdict == settle.VerdictOK || e.Refused {
			return settle.ID{}
		}
		return d.wait.Ticket
	case settle.Delivered:
		if e.Verdict == settle.VerdictOK {
			return settle.ID{}
		}
		return e.Ticket
	case settle.LeaseOver, settle.WaitOver, settle.DeadlineOver, settle.CancelAsked:
		return d.wait.Ticket
	}
	return settle.ID{}
}

// leaves says whether an event leaves a node alone that may be at work.
func leaves(d deed) bool {
	switch e := d.ev.(type) {
	case settle.Settled:
		return !e.Refused
	case settle.Deferred:
		switch e.Reason {
		case settle.AttemptNoNode, settle.AttemptBusy, settle.AttemptRateLimited, settle.AttemptLaneHeld:
			return false
		}
		return true
	case settle.LeaseOver, settle.WaitOver, settle.DeadlineOver, settle.CancelAsked:
		return true
	}
	return false
}

// ofStep holds what was recorded, and who is told to stop, to the events.
func (w *world) ofStep(j *job, d deed) {
	got := settle.ID{}
	if r := d.t.Record; r != nil {
		got = r.Ticket
	}
	if d.t.Fence.Seen != 0 {
		w.check(d.wait.Ticket == j.own.out, "sweep", "%s: %T was decided with ticket %s, out is %s", j, d.ev, d.wait.Ticket, j.own.out)
	}
	if j.own.out = j.own.ticket; !j.waits() {
		j.own.out = settle.ID{}
	}
	if _, answer := d.ev.(settle.Delivered); answer && d.t.Fence.State == settle.Running {
		j.own.delivered = w.mono + 1
	}
	w.check(got == charges(d), "step budget", "%s after %T: charged to ticket %s, want %s", j, d.ev, got, charges(d))
	if d.t.Fence.State == settle.Running && !got.IsZero() {
		w.hit("charged to the step before its park")
	}
	id := settle.DeriveID([]byte("recall"), d.wait.Ticket[:])
	recalls := d.wait.Recall && leaves(d)
	w.check((d.t.Recall != nil) == recalls, "recall", "%s after %T: told to stop %v, want %v", j, d.ev, d.t.Recall != nil, recalls)
	if recalls {
		w.check(w.m.byID[id] != nil, "recall", "%s after %T: nobody tells its node", j, d.ev)
		w.hit("node told to stop")
	}
}
