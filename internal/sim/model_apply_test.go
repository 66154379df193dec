package sim

import (
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// deed is one transition with the event that it was decided for.
type deed struct {
	ev   settle.Event
	t    settle.Transition
	left time.Duration // to the deadline, when it was decided
	wait settle.Wait   // the ticket that whoever decided knew of
	// forged transitions are no work of Decide: the store must refuse them.
	forged bool
}

// apply predicts the answers to one transition and, if it moves the row,
// carries it out.
func (m *model) apply(d deed) (answers []settle.Applied, moved *job) {
	t := &d.t
	if t.Refusal != "" {
		return []settle.Applied{settle.Stale}, nil
	}
	j := m.find(t.Job, t.Fence.Handle)
	if j == nil {
		return []settle.Applied{settle.Stale}, nil
	}
	if t.Keep != nil {
		return m.keeps(j, t)
	}
	if !m.fits(j, t) || t.To == settle.Running && j.deadline <= m.now {
		return m.again(j, t), nil
	}
	switch {
	case d.forged:
		return []settle.Applied{settle.Rejected}, nil
	case t.Fence.State.Ended() && j.key != "" && m.keyed(j.queue, j.kind, j.tenant, j.key) != nil:
		return []settle.Applied{settle.Superseded}, nil
	case t.Fence.State.Ended():
		m.revive(j, t)
	case t.To.Ended():
		m.end(j, t)
	case t.To == settle.Running:
		m.orphan(j)
		j.wait, j.until = *t.Wait, m.now
		j.noted()
	default:
		m.move(j, t)
	}
	m.follow(j, t)
	j.last = arrowOf(t)
	j.arrows[j.last] = true
	return []settle.Applied{settle.Done}, j
}

// fits says whether the row still is what the decision was made on.
func (m *model) fits(j *job, t *settle.Transition) bool {
	redrives := t.Redrives
	if t.Fence.State.Ended() {
		redrives-- // a redrive counts itself
	}
	return j.state == t.Fence.State && j.Attempt == t.Fence.Attempt && j.Redrives == redrives &&
		(t.Fence.State.Ended() || t.Fence.Seen == 0 || j.alarm == t.Fence.Seen)
}

func arrowOf(t *settle.Transition) arrow {
	a := arrow{to: t.To, end: t.End, attempt: t.Attempt, excused: t.Excused, deferred: t.Deferred, crashed: t.Crashed, redrives: t.Redrives}
	if t.To.Ended() { // an end is told by its reason
		a.excused, a.deferred, a.crashed = 0, 0, 0
	}
	if t.Wait != nil {
		a.ticket = t.Wait.Ticket
	}
	if t.Keep != nil {
		a.ticket, a.keep = t.Keep.Ticket, true
	}
	return a
}

// again is the answer to a transition that moves nothing: "already" if this
// arrow was taken. Where the job has moved on and nothing was recorded, or only
// the record is the same, the store may say either.
func (m *model) again(j *job, t *settle.Transition) []settle.Applied {
	a := arrowOf(t)
	recorded := t.Record != nil && slices.ContainsFunc(j.attempts, func(b settle.Attempt) bool {
		return b.N == t.Attempt && b.Reason == t.Record.Reason && b.Error == t.Record.Error
	}) || t.Step != nil && slices.ContainsFunc(j.steps, func(s step) bool {
		return s.Step == t.Step.Step && s.Ticket == t.Step.Ticket
	})
	parks := t.To == settle.Awaiting && t.Fence.State == settle.Running
	recorded = recorded || parks && j.answered(t.Wait.Ticket)
	switch taken := j.arrows[a]; {
	case !recorded && !t.To.Ended() && (t.Record != nil || t.Step != nil):
		return []settle.Applied{settle.Stale} // another end of the same attempt
	case taken && (recorded || a == j.last && j.state == t.To):
		return []settle.Applied{settle.Already}
	case taken || recorded:
		return []settle.Applied{settle.Already, settle.Stale}
	}
	return []settle.Applied{settle.Stale}
}

// answered says whether a ticket had its answer, or waited for it in vain.
func (j *job) answered(ticket settle.ID) bool {
	return slices.ContainsFunc(j.steps, func(s step) bool { return s.Ticket == ticket }) ||
		slices.ContainsFunc(j.attempts, func(a settle.Attempt) bool {
			never := []settle.AttemptReason{settle.AttemptWorkerLost, settle.AttemptCancelled, settle.AttemptExpired}
			return a.Ticket == ticket && !slices.Contains(never, a.Reason)
		})
}

// keeps predicts what becomes of an answer that is to be kept: the first one
// for the ticket of the attempt that runs.
func (m *model) keeps(j *job, t *settle.Transition) ([]settle.Applied, *job) {
	a := arrowOf(t)
	switch _, kept := m.inbox[t.Keep.Ticket]; {
	case kept:
		return []settle.Applied{settle.Already}, nil
	case m.fits(j, t) && j.wait.Ticket == t.Keep.Ticket:
		m.inbox[t.Keep.Ticket] = early{j, *t.Keep}
		j.noted()
		j.arrows[a] = true
		return []settle.Applied{settle.Done}, j
	case j.arrows[a]:
		return []settle.Applied{settle.Already, settle.Stale}, nil
	}
	return []settle.Applied{settle.Stale}, nil
}

// noted: a sweep that looked before comes too late.
func (j *job) noted() { j.alarm = min(j.alarm+1, j.deadline) }

// meets is what a park finds: the store delivers it in the same transaction.
func (m *model) meets(j *job) (d deed, ok bool) {
	e, ok := m.inbox[j.wait.Ticket]
	if !ok || j.state != settle.Awaiting {
		return d, false
	}
	t := settle.Decide(m.snapshot(j), e.Delivered, j.pol, float64(j.wait.Ticket[15])/256)
	t.Fence.Handle = j.n
	return deed{ev: e.Delivered, t: t, left: span(j.deadline - m.now), wait: j.wait}, true
}

// orphan notes that nobody will read what was kept for the job so far.
func (m *model) orphan(j *job) {
	for ticket, e := range m.inbox {
		if e.j == j {
			delete(m.inbox, ticket)
			m.orphans[ticket] = e
		}
	}
}

func (m *model) end(j *job, t *settle.Transition) {
	j.state, j.reason, j.note, j.output, j.ended = t.To, t.End, t.Note, string(t.Output), m.now
	j.Attempt, j.Excused, j.Deferred, j.Crashed = t.Attempt, t.Excused, t.Deferred, t.Crashed
	j.acked = false
	j.wait, j.until = settle.Wait{}, 0
}

func (m *model) move(j *job, t *settle.Transition) {
	j.state, j.worker, j.suspect = t.To, 0, t.Suspect
	j.Excused, j.Deferred, j.Crashed = t.Excused, t.Deferred, t.Crashed
	at := m.now + micros(t.After)
	if t.To == settle.Pending {
		j.due, j.ord, j.alarm = at, at, j.deadline
		j.wait, j.until = settle.Wait{}, 0
		return
	}
	j.wait = *t.Wait
	if t.Fence.State != settle.Awaiting {
		j.until = m.now + micros(t.WaitLeft)
	}
	j.alarm = min(at, j.until, j.deadline)
}

func (m *model) revive(j *job, t *settle.Transition) {
	j.state, j.Counters, j.worker, j.suspect = settle.Pending, t.Counters, 0, false
	j.due = m.now + micros(t.After)
	j.ord, j.since = j.due, j.due
	j.deadline = j.due + micros(t.Deadline)
	j.alarm = j.deadline
	j.reason, j.note, j.output, j.ended, j.acked = "", "", "", 0, false
}

// follow is what goes with a transition.
func (m *model) follow(j *job, t *settle.Transition) {
	if r := t.Record; r != nil {
		j.record(settle.Attempt{N: t.Attempt, Reason: r.Reason, Error: r.Error, Step: r.Step, Ticket: r.Ticket, Node: r.Node,
			Worker: t.Fence.Worker, At: instant(m.now), Retryable: r.Retryable})
	}
	if r := t.Step; r != nil {
		j.steps = slices.DeleteFunc(j.steps, func(s step) bool { return s.Step == r.Step })
		j.steps = append(j.steps, step{*r, m.now})
	}
	m.over(j, t)
	for _, n := range []*settle.New{t.OnEnd, t.Recall} {
		if n == nil {
			continue
		}
		if ready, pol, err := n.Prepare(instant(m.now)); err == nil {
			m.insertOne(&ready, pol)
		}
	}
}

// over removes what was kept for a ticket that this ends, and leaves to Prune
// what else nobody will read.
func (m *model) over(j *job, t *settle.Transition) {
	done := settle.ID{}
	switch {
	case t.Step != nil:
		done = t.Step.Ticket
	case t.Record != nil:
		done = t.Record.Ticket
	}
	delete(m.inbox, done)
	delete(m.orphans, done)
	if e, ok := m.inbox[j.wait.Ticket]; j.state != settle.Running && !(ok && e.j == j && j.state == settle.Awaiting) {
		m.orphan(j)
	}
}
