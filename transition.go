package settle

import "time"

// Counters are the numbers by which a job's end is computed. They stand in the
// live row; only Decide makes new ones, only the claim adds an attempt.
type Counters struct {
	Attempt  int // claims so far: the fence, never reset
	Excused  int // claims given back by their holder; Charged = Attempt − Excused
	Deferred int // deferrals since the last redrive
	Crashed  int // attempts that lost their worker since the last redrive
	Tries    int // charged attempts that the job may have in all
	Redrives int // chances that a person gave
	Base     int // Attempt at the last redrive: step budgets count above it
}

// Charged is how many attempts count against the budget.
func (c Counters) Charged() int { return c.Attempt - c.Excused }

// Snapshot is what Decide knows of a job: what a claim, a sweep or a person
// saw in the store, with instants turned into durations by the store's clock.
type Snapshot struct {
	ID     ID
	Kind   string
	Queue  string
	Tenant string
	State  State
	Counters
	// Remaining is the time to the deadline; zero or less = it has passed.
	Remaining time.Duration
	// Wait is set while awaiting (and while running, from ticket to park).
	// It is never written through.
	Wait *Wait
	// WaitLeft is the time to the ceiling of the wait; only while awaiting.
	WaitLeft time.Duration
	// StepSpent counts the unexcused, submitted attempts of Wait.Step above
	// Base that have ended; the one that Wait names is not yet among them.
	StepSpent int
}

// Wait is the right to answer one submission of one step.
type Wait struct {
	Ticket  ID            `json:"ticket"`
	Step    string        `json:"step"`
	Node    string        `json:"node,omitempty"`
	Pool    string        `json:"pool,omitempty"`    // whose node it is
	Silence time.Duration `json:"silence,omitempty"` // longest pause between progress notes; 0 = the ceiling alone
	// Breaker is what the node's breaker gave to the submission, for the
	// delivery to come back with; opaque.
	Breaker string `json:"breaker,omitempty"`
	// Recall: the node is to be told when nobody waits for it any more.
	Recall bool `json:"recall,omitempty"`
	// Retryable is what the node's latest answer for this step said.
	Retryable bool `json:"retryable,omitempty"`
}

// StepResult is the stored result of a finished step. A finished step is never
// submitted again, also not after a redrive.
type StepResult struct {
	Step   string `json:"step"`
	Ticket ID     `json:"ticket"`
	Node   string `json:"node,omitempty"`
	Output []byte `json:"output"`
}

// AttemptRecord is the history row of an attempt that ended without success.
type AttemptRecord struct {
	Reason AttemptReason
	Error  string // safe text
	Step   string
	Ticket ID
	Node   string
	// Retryable is what the node said of the step's failure.
	Retryable bool
}

// Fence is what must still be true of the row when a transition is applied.
type Fence struct {
	Attempt int
	State   State
	// Seen is the row's alarm as the store handed it out; opaque. Sweeps set
	// it, so that a renewal, a ticket or a kept answer between look and act wins.
	// 0 = not compared.
	Seen int64
	// Handle is the store's own way to find the row; 0 = by id.
	Handle int64
	// Worker is who held the attempt, for its history row. Not compared.
	Worker int64
}

// Transition is one arrow of the lifecycle, made by Decide and carried out by
// a store's Apply in one transaction, if the fence still holds.
type Transition struct {
	Job   ID
	Fence Fence
	// Refusal, if not empty, says why there is no arrow here. Nothing else is
	// set, and Apply answers Stale without touching the store.
	Refusal Refusal

	To State
	// After: pending = due in; awaiting = looked at again in; else unused.
	After time.Duration
	Counters
	// Suspect: the next crash would end the job, so it must run alone.
	Suspect bool
	// Deadline, if above zero, replaces the deadline (redrive): counted from
	// now, with the first due time anew.
	Deadline time.Duration
	// Batch replaces the sealed batch of a row that becomes pending; zero
	// clears it. Only read when SetBatch is true.
	Batch    ID
	SetBatch bool

	Wait *Wait // to awaiting: what is waited for
	// WaitLeft is the time to the ceiling of the wait, which no progress note
	// moves; After is at most that. Only to awaiting.
	WaitLeft time.Duration

	Record *AttemptRecord // history row of the attempt that this ends, if any
	Step   *StepResult    // result of a finished step, if any
	End    EndReason      // when To is an end
	Output []byte         // when To is Succeeded
	Note   string         // why it ended, where no attempt says so: safe text
	OnEnd  *New           // job to insert with the end, if any
	Keep   *Delivered     // answer to store until the park, or the end of the lease
	Recall *New           // job to insert that tells a node to stop, if any
}

// Refusal says why an event moves nothing.
type Refusal string

// The refusals.
const (
	RefusedEnded    Refusal = "the job has ended"
	RefusedNotEnded Refusal = "the job has not ended"
	RefusedDone     Refusal = "the job succeeded"
	RefusedState    Refusal = "the job is in another state"
	RefusedSpent    Refusal = "the job is spent or overdue"
	RefusedTicket   Refusal = "the answer is for another submission"
	RefusedRedrives Refusal = "the job has been redriven as often as its policy allows"
)

// Applied says what became of one transition.
type Applied string

// What Apply answers.
const (
	Done    Applied = "applied" // the row moved
	Already Applied = "already" // this very transition had been applied before
	Stale   Applied = "stale"   // the fence did not hold; nothing was touched
	// Rejected: the store's own checks refuse the row, for example a claimable
	// one that is spent: a fault of the caller. Nothing was touched.
	Rejected Applied = "rejected"
	// Superseded: a redrive met a live job with the same key; nothing was touched.
	Superseded Applied = "superseded"
)

// Ended is the input of the job that Policy.OnEnd asks for.
type Ended struct {
	Job     ID        `json:"job"`
	Kind    string    `json:"kind"`
	Queue   string    `json:"queue"`
	Tenant  string    `json:"tenant,omitempty"`
	State   State     `json:"state"`
	Reason  EndReason `json:"reason"`
	Attempt int       `json:"attempt"`
	// Error is the text of the attempt that this end closed, or why a waiting
	// job was ended. Earlier attempts stand in the job: see Client.Get.
	Error string `json:"error,omitempty"`
}
