package settle

import (
	"slices"
	"time"
)

// Job is one job as a store shows it. Instants are UTC, by the store's clock.
type Job struct {
	ID     ID     `json:"id"`
	Kind   string `json:"kind"`
	Queue  string `json:"queue"`
	Tenant string `json:"tenant,omitempty"`
	Key    string `json:"key,omitempty"`
	State  State  `json:"state"`
	Counters
	Input  []byte `json:"input,omitempty"`
	Output []byte `json:"output,omitempty"`
	Policy Policy `json:"-"`

	Enqueued time.Time `json:"enqueued"`
	FirstDue time.Time `json:"first_due"` // since when the job counts as unfinished
	Due      time.Time `json:"due,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Alarm is when a sweep looks at the live job next: the end of its lease
	// or wait, or the deadline.
	Alarm time.Time `json:"alarm,omitzero"`
	// EndsBy is when the job has ended at the latest, as long as a process
	// sweeps; zero once it has ended.
	EndsBy  time.Time `json:"ends_by,omitzero"`
	EndedAt time.Time `json:"ended_at,omitzero"`

	Reason  EndReason `json:"reason,omitempty"`
	Note    string    `json:"note,omitempty"`          // why it ended, where no attempt says so
	Worker  int64     `json:"worker,omitempty,string"` // who holds the lease, or held it at the end; 0 = nobody
	Batch   ID        `json:"batch,omitzero"`
	Wait    *Wait     `json:"wait,omitempty"`
	Suspect bool      `json:"suspect,omitempty"`
	Acked   bool      `json:"acked,omitempty"` // a person has seen this dead letter
	// Held names the end of the hold that keeps the job from being claimed.
	Held time.Time `json:"held_until,omitzero"`

	// Attempts are the recorded attempts, oldest first; Steps the finished
	// steps. Only Reader.Job fills them in.
	Attempts []Attempt    `json:"attempts,omitempty"`
	Steps    []StepResult `json:"steps,omitempty"`

	// Now is the store's clock at the moment of the reading.
	Now time.Time `json:"-"`
	// Fence is what a transition decided on this reading is fenced with.
	Fence Fence `json:"-"`
	// Answer is the answer that was kept while the attempt that holds the ticket
	// runs; only of a running job.
	Answer *Delivered `json:"-"`
	// StepSpent and WaitEnds are what Decide needs of an awaiting job.
	StepSpent int       `json:"-"`
	WaitEnds  time.Time `json:"-"`
}

// Attempt is one recorded attempt of a job. The one that succeeded leaves no
// record of its own: the job's end is its record.
type Attempt struct {
	N      int           `json:"n"`
	Reason AttemptReason `json:"reason"`
	Error  string        `json:"error,omitempty"` // safe text
	Step   string        `json:"step,omitempty"`
	Ticket ID            `json:"ticket,omitzero"`
	Node   string        `json:"node,omitempty"`
	Worker int64         `json:"worker,omitempty,string"`
	At     time.Time     `json:"at"`
	// Retryable is what the node said of the step's failure.
	Retryable bool `json:"retryable,omitempty"`
}

// How long after its deadline a job may still be live: the sweep that ends it
// and one renewal interval of grace.
const (
	SweepInterval = 5 * time.Second
	RenewInterval = 10 * time.Second
	endsByGrace   = SweepInterval + RenewInterval
)

// EndsBy returns when a live job with this deadline has ended at the latest,
// while any process sweeps; time without one adds to it.
func EndsBy(deadline time.Time) time.Time { return deadline.Add(endsByGrace) }

// Label is the state in an operator's words: scheduled, retrying, held,
// deferred, or the state itself.
func (j Job) Label() string {
	if j.State != Pending {
		return string(j.State)
	}
	switch {
	case !j.Held.IsZero():
		return "held"
	case j.Due.After(j.Now) && j.Deferred > 0 && j.Charged() == 0:
		return "deferred" // from the counters alone, so that lists say the same
	case j.Due.After(j.Now) && j.Attempt > j.Base:
		return "retrying"
	case j.Due.After(j.Now):
		return "scheduled"
	default:
		return "pending"
	}
}

func (j Job) lastAttempt() *Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return &j.Attempts[len(j.Attempts)-1]
}

func deferral(r AttemptReason) bool {
	return slices.Contains([]AttemptReason{AttemptShutdown, AttemptSnoozed, AttemptNoNode,
		AttemptBusy, AttemptRateLimited, AttemptLaneHeld}, r)
}

// generic reports whether a reason's text says nothing about the cause.
func generic(r AttemptReason) bool {
	return deferral(r) || slices.Contains([]AttemptReason{AttemptWorkerLost, AttemptNoResult,
		AttemptCancelled, AttemptExpired}, r)
}

// LastError returns the last attempt that tells a real error, or else the last
// recorded one. A later end never replaces it by a generic text.
func (j Job) LastError() (Attempt, bool) {
	for _, a := range slices.Backward(j.Attempts) {
		if !generic(a.Reason) {
			return a, true
		}
	}
	if a := j.lastAttempt(); a != nil {
		return *a, true
	}
	return Attempt{}, false
}

// EndError returns the job's end as an error, or nil while it is live or when
// it succeeded.
func (j Job) EndError() error {
	if j.State != Dead && j.State != Cancelled {
		return nil
	}
	a, _ := j.LastError()
	return &EndError{Job: j.ID, State: j.State, Reason: j.Reason, Attempt: j.Attempt, Last: a.Reason, Message: pick(a.Error, j.Note)}
}

// Snapshot returns what Decide needs to know of the job.
func (j Job) Snapshot() Snapshot {
	return Snapshot{ID: j.ID, Kind: j.Kind, Queue: j.Queue, Tenant: j.Tenant, State: j.State,
		Counters: j.Counters, Remaining: j.Deadline.Sub(j.Now), Wait: j.Wait,
		WaitLeft: j.WaitEnds.Sub(j.Now), StepSpent: j.StepSpent}
}

// Answered says which event an answer is for the job: Kept while the attempt that
// holds the ticket runs, Delivered else.
func (j Job) Answered(d Delivered) Event {
	if j.State == Running {
		return Kept{d}
	}
	return d
}

// Passed says which event the passing of time has brought the job: LeaseOver (or
// Delivered, where an answer was kept), WaitOver, DeadlineOver, or nil for none that may be acted upon yet. leases
// tells that the living had their chance to renew theirs, ends that the clock
// may be trusted with waits and deadlines. It is pure and total.
func (j Job) Passed(leases, ends bool) Event {
	var (
		lost    = j.State == Running && j.Alarm.Before(j.Deadline)
		overdue = !j.Deadline.After(j.Now)
	)
	switch {
	case !j.State.Live(), j.Alarm.After(j.Now), lost && !leases, overdue && !ends:
		return nil
	case lost && j.Answer != nil: // it was answered before it could park
		return *j.Answer
	case lost: // also when overdue by now: the crash is what happened first, and is counted
		return LeaseOver{}
	case overdue:
		return DeadlineOver{}
	case j.State == Awaiting && ends:
		return WaitOver{}
	default:
		return nil
	}
}

// Decide decides on this reading of the job: the transition is fenced with it.
// Sweeps pass compareAlarm, so that a renewal between look and act wins.
func (j Job) Decide(ev Event, jitter float64, compareAlarm bool) Transition {
	t := Decide(j.Snapshot(), ev, j.Policy, jitter)
	t.Fence.Handle, t.Fence.Worker = j.Fence.Handle, j.Worker
	if compareAlarm {
		t.Fence.Seen = j.Fence.Seen
	}
	return t
}
