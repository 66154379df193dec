package settle

import "time"

// Event is something that happened to a job. The list is closed: Claimed,
// Settled, Deferred, Submitting, Parked, Delivered, Kept, Progressed, LeaseOver,
// WaitOver, DeadlineOver, Cancelled by a person (CancelAsked), RedriveAsked.
type Event interface{ event() }

type (
	// Claimed: a worker takes the job. The one arrow that stores carry out by
	// themselves; Decide knows it so that tests can hold the two together.
	Claimed struct{}
	// Settled: the holder of the lease reports what the attempt came to.
	Settled struct {
		Outcome
		// Refused: the step of this attempt was provably not begun by its node,
		// so only the job's budget is charged, not the step's.
		Refused bool
	}
	// Deferred: the holder gives the job back without fault of the job.
	Deferred struct {
		Reason AttemptReason
		// After is when it is due again: at least 1 s, except at shutdown.
		After time.Duration
		Error string // safe text; may be empty
		Node  string // the machine that could not take it, if any
		// Uncounted deferrals are charged to the lane (outbox): neither the
		// attempt, nor a deferral, nor a history row is counted.
		Uncounted bool
	}
	// Submitting: the holder is about to hand a step to a node. Recorded first,
	// so that no answer is ever one that nobody can place; stores refuse it for a
	// job that is overdue.
	Submitting struct{ Wait Wait }
	// Parked: the holder has submitted a step and waits for its answer. One that
	// came before (Kept) is delivered in the same transaction.
	Parked struct{ Wait Wait }
	// Delivered: an answer for the ticket has been judged. To a running job only
	// the sweep that finds its lease over delivers; before that it is Kept.
	Delivered struct {
		Ticket ID
		Outcome
		Retryable bool // the node says that a retry helps
	}
	// Kept: a judged answer came while the attempt that holds the ticket still
	// runs. It is stored beside the job; the first one counts.
	Kept struct{ Delivered }
	// Progressed: the node says that it is still at work.
	Progressed struct{ Ticket ID }
	// LeaseOver: the lease of the running attempt has run out.
	LeaseOver struct{}
	// WaitOver: the ceiling of the wait, or the silence, has passed.
	WaitOver struct{}
	// DeadlineOver: the job's deadline has passed.
	DeadlineOver struct{}
	// CancelAsked: a person or program calls the job off.
	CancelAsked struct{ Why string }
	// RedriveAsked: a person gives an ended job a new, bounded chance.
	RedriveAsked struct{}
)

func (Claimed) event()      {}
func (Settled) event()      {}
func (Deferred) event()     {}
func (Submitting) event()   {}
func (Parked) event()       {}
func (Delivered) event()    {}
func (Kept) event()         {}
func (Progressed) event()   {}
func (LeaseOver) event()    {}
func (WaitOver) event()     {}
func (DeadlineOver) event() {}
func (CancelAsked) event()  {}
func (RedriveAsked) event() {}
