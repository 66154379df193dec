package settle

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// minDeferral is the shortest deferral that is not a shutdown's.
const minDeferral = time.Second

// Decide chooses the next state of a job. It is pure and total: every state
// meets every event, with an arrow or a refusal. It knows durations only.
// jitter is uniform in [0, 1). docs/lifecycle.md shows the same table.
func Decide(s Snapshot, ev Event, p Policy, jitter float64) Transition {
	d := decision{s: s, p: p.bounded(), jitter: jitter}
	d.t = Transition{Job: s.ID, Fence: Fence{Attempt: s.Attempt, State: s.State}, Counters: s.Counters}
	switch e := ev.(type) {
	case Claimed:
		d.only(Pending, d.claim)
	case Settled:
		d.only(Running, func() { d.settle(e) })
	case Deferred:
		d.only(Running, func() { d.postpone(e) })
	case Submitting:
		d.only(Running, func() { d.t.To, d.t.Wait = Running, &e.Wait })
	case Parked:
		d.only(Running, func() { d.park(e.Wait) })
	case Delivered:
		d.ticket(e.Ticket, func() { d.deliver(e) }, Awaiting, Running)
	case Kept:
		d.ticket(e.Ticket, func() { d.t.To, d.t.Keep = Running, &e.Delivered }, Running)
	case Progressed:
		d.ticket(e.Ticket, d.progress, Awaiting)
	case LeaseOver:
		d.only(Running, d.crash)
	case WaitOver:
		d.only(Awaiting, func() { d.failStep(Outcome{Reason: AttemptNoResult, Error: "no answer in time"}) })
	case DeadlineOver:
		d.live(func() { d.expire("the deadline passed") })
	case CancelAsked:
		d.live(func() { d.cancel(e.Why) })
	case RedriveAsked:
		d.redrive()
	default:
		d.refuse(RefusedState)
	}
	if d.t.Refusal == "" && d.abandons(ev) {
		d.t.Recall = d.recall()
	}
	return d.t
}

// decision is one call of Decide under way.
type decision struct {
	s       Snapshot
	p       Policy
	jitter  float64
	t       Transition
	stepOut bool // the budget of the step that failed is spent
}

// ---- which states an event may meet

func (d *decision) only(want State, arrow func()) {
	switch {
	case d.s.State == want:
		arrow()
	case d.s.State.Ended():
		d.refuse(RefusedEnded)
	default:
		d.refuse(RefusedState)
	}
}

func (d *decision) live(arrow func()) {
	switch {
	case d.s.State.Live():
		arrow()
	case d.s.State.Ended():
		d.refuse(RefusedEnded)
	default:
		d.refuse(RefusedState)
	}
}

// ticket admits an answer to the submission that the job waits for.
func (d *decision) ticket(t ID, arrow func(), in ...State) {
	switch {
	case d.s.State.Ended():
		d.refuse(RefusedEnded)
	case !slices.Contains(in, d.s.State):
		d.refuse(RefusedState)
	case d.s.Wait == nil || d.s.Wait.Ticket != t || t.IsZero():
		d.refuse(RefusedTicket)
	default:
		arrow()
	}
}

func (d *decision) refuse(why Refusal) {
	d.t = Transition{Job: d.t.Job, Fence: d.t.Fence, Refusal: why}
}

// ---- arrows

func (d *decision) claim() {
	if d.s.Charged() >= d.s.Tries || d.s.Remaining <= 0 {
		d.refuse(RefusedSpent)
		return
	}
	d.t.To = Running
	d.t.Attempt++
}

func (d *decision) settle(e Settled) {
	if e.Refused {
		d.s.Wait = nil // as if it had never been submitted
	}
	switch e.Verdict {
	case VerdictOK:
		d.t.Output = e.Output
		d.end(Succeeded, EndOK)
	case VerdictTerminal:
		d.recordStep(e.Outcome)
		d.end(Dead, terminalEnd(e.Reason))
	default:
		d.failStep(e.Outcome)
	}
}

// terminalEnd names the end of a job whose last attempt was terminal.
func terminalEnd(r AttemptReason) EndReason {
	switch r {
	case AttemptUndecodable:
		return EndUndecodable
	case AttemptRefused:
		return EndRefused
	default:
		return EndTerminal
	}
}

// again is what follows a failed attempt: due after the backoff, or after what
// was asked.
func (d *decision) again(after time.Duration) {
	if after <= 0 {
		after = d.p.Backoff(d.t.Charged(), d.jitter)
		if left := d.s.Remaining; after >= left {
			after = left / 2 // our own backoff never costs a job its last chance
		}
	}
	d.pend(after)
}

func (d *decision) postpone(e Deferred) {
	delay := max(e.After, minDeferral)
	if e.Reason == AttemptShutdown {
		delay = 0
	}
	if !deferral(e.Reason) {
		e.Reason = AttemptSnoozed // the holder's wish is plain, its word for it is not on the list
	}
	d.t.Excused++
	if !e.Uncounted {
		d.t.Deferred++
		d.record(Outcome{Reason: e.Reason, Error: e.Error, Node: e.Node})
	}
	d.pend(delay)
}

func (d *decision) park(w Wait) { d.await(w, d.p.Wait) }

// progress resets the silence alone: the ceiling never moves, and once it has
// passed no note keeps the sweep away.
func (d *decision) progress() {
	if d.s.WaitLeft <= 0 || d.s.Remaining <= 0 {
		d.refuse(RefusedSpent)
		return
	}
	d.await(*d.s.Wait, d.s.WaitLeft)
}

func (d *decision) await(w Wait, ceiling time.Duration) {
	d.t.To = Awaiting
	d.t.Wait = &w
	d.t.WaitLeft = max(min(ceiling, d.s.Remaining), 0)
	d.t.After = d.t.WaitLeft
	if w.Silence > 0 {
		d.t.After = min(d.t.After, w.Silence)
	}
}

func (d *decision) deliver(e Delivered) {
	w := d.s.Wait
	switch e.Verdict {
	case VerdictOK:
		d.t.Excused++
		d.t.Step = &StepResult{Step: w.Step, Ticket: w.Ticket, Node: pick(e.Node, w.Node), Output: e.Output}
		d.s.Remaining = max(d.s.Remaining, 1) // no success expires a job: an overdue one is left to the sweep
		d.pend(0)
	case VerdictTerminal:
		d.recordStep(e.Outcome)
		d.end(Dead, terminalEnd(e.Reason))
	default:
		said := *w // the snapshot belongs to the caller
		said.Retryable = e.Retryable
		d.s.Wait = &said
		d.failStep(e.Outcome)
	}
}

// failStep is an attempt that brought no result and may have submitted a step:
// besides the job's budgets the step's is asked.
func (d *decision) failStep(o Outcome) {
	d.recordStep(o)
	w := d.s.Wait
	d.stepOut = w != nil && d.s.StepSpent+1 >= d.p.stepBudget(w.Retryable)
	d.again(o.After)
}

func (d *decision) crash() {
	d.t.Crashed++
	d.failStep(Outcome{Reason: AttemptWorkerLost, Error: "the lease ran out: the worker died or lost the store"})
}

func (d *decision) expire(why string) {
	d.recordOpen(AttemptExpired, why)
	d.t.Note = why
	d.end(Dead, EndExpired)
}

func (d *decision) cancel(why string) {
	why = pick(why, "cancelled")
	d.recordOpen(AttemptCancelled, why)
	d.t.Note = why
	d.end(Cancelled, EndCancelled)
}

func (d *decision) redrive() {
	switch {
	case d.s.State.Live():
		d.refuse(RefusedNotEnded)
		return
	case d.s.State == Succeeded:
		d.refuse(RefusedDone)
		return
	case !d.s.State.Ended():
		d.refuse(RefusedState)
		return
	case d.s.Redrives >= d.p.Redrives:
		d.refuse(RefusedRedrives)
		return
	}
	d.t.Tries = d.s.Charged() + d.p.Attempts
	d.t.Crashed, d.t.Deferred = 0, 0
	d.t.Base = d.s.Attempt
	d.t.Redrives++
	d.t.Deadline = d.p.Deadline
	d.s.Remaining = d.p.Deadline
	d.pend(0)
}

// ---- parts of a transition

// pend is the one way to pending. A job that could not be claimed again ends
// instead; when several budgets are spent at once, crashes name the end.
func (d *decision) pend(after time.Duration) {
	switch {
	case d.t.Crashed >= d.p.Crashes:
		d.end(Dead, EndWorkerLost)
	case d.t.Deferred > d.p.Deferrals:
		d.end(Dead, EndDeferredOut)
	case d.stepOut || d.t.Charged() >= d.t.Tries:
		d.end(Dead, EndExhausted)
	case after >= d.s.Remaining:
		d.end(Dead, EndExpired)
	default:
		d.t.To = Pending
		d.t.After = after
		d.t.Suspect = suspect(d.t.Crashed, d.p.Crashes)
	}
}

// suspect: the next crash would end the job, and it has crashed before.
func suspect(crashed, crashes int) bool { return crashed >= 1 && crashed == crashes-1 }

func (d *decision) end(to State, why EndReason) {
	d.t.To, d.t.End, d.t.After = to, why, 0
	if d.p.OnEnd == "" {
		return
	}
	in := Ended{Job: d.s.ID, Kind: d.s.Kind, Queue: d.s.Queue, Tenant: d.s.Tenant,
		State: to, Reason: why, Attempt: d.t.Attempt}
	in.Error = d.t.Note
	if d.t.Record != nil {
		in.Error = d.t.Record.Error
	}
	doc, _ := json.Marshal(in) // strings and numbers only: cannot fail
	d.t.OnEnd = &New{Kind: d.p.OnEnd, Input: doc, EnqueueOpts: EnqueueOpts{
		ID:    DeriveID([]byte("end"), d.s.ID[:], []byte(strconv.Itoa(d.t.Attempt)), []byte(strconv.Itoa(d.t.Redrives))),
		Queue: d.s.Queue, Tenant: d.s.Tenant}}
}

func (d *decision) record(o Outcome) {
	if o.Reason == AttemptOK || !slices.Contains(AttemptReasons, o.Reason) {
		o.Reason = AttemptError // the list is closed: other words are error text
	}
	d.t.Record = &AttemptRecord{Reason: o.Reason, Error: o.Error, Node: o.Node}
}

// recordStep is record for an attempt that may have submitted a step.
func (d *decision) recordStep(o Outcome) {
	d.record(o)
	if w := d.s.Wait; w != nil {
		d.t.Record.Step, d.t.Record.Ticket = w.Step, w.Ticket
		d.t.Record.Node = pick(o.Node, w.Node)
		d.t.Record.Retryable = w.Retryable
	}
}

// recordOpen closes the attempt that runs or waits, if there is one.
func (d *decision) recordOpen(r AttemptReason, text string) {
	if d.s.State != Pending {
		d.recordStep(Outcome{Reason: r, Error: text})
	}
}
