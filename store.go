package settle

import (
	"context"
	"time"
)

// Store is what every store offers, in four groups; consumers name the group
// they need. internal/storetest defines each clause. All methods may be called
// from any number of goroutines; concurrent calls are committed together.
type Store interface {
	Queue
	Reader
	Keeper
	Remote
}

// Queue is what a worker needs.
type Queue interface {
	// Insert stores jobs, all or none. A job whose id exists already, or whose
	// key is taken, is not an error: Inserted.Existing says so. Errors:
	// InvalidError, ErrFull, RefusedError, context errors.
	Insert(ctx context.Context, jobs ...New) ([]Inserted, error)
	// Claim takes due jobs for a worker. It counts the attempt in the same
	// transaction, and never returns a spent, overdue, held or future job.
	Claim(ctx context.Context, r ClaimReq) (ClaimedJobs, error)
	// Renew extends the leases of running attempts by lease from now, in one
	// transaction, never past a deadline. It returns those that are no longer
	// held. It cannot bring back an attempt that has been ended.
	Renew(ctx context.Context, worker int64, held []Held, lease time.Duration) (lost []ID, err error)
	// Apply carries out transitions in one transaction, each for itself: a
	// stale row never rolls back its neighbours. One answer per transition.
	Apply(ctx context.Context, ts []Transition) ([]Applied, error)
	// Overdue lists live jobs whose alarm has passed, by (alarm, row), after
	// the cursor. The zero cursor begins at the front; a zero Next says that
	// the end was reached.
	Overdue(ctx context.Context, after Cursor, limit int) (Overdue, error)
	// Lanes lists lanes of a queue that have pending rows, in order of their
	// number, after the given one.
	Lanes(ctx context.Context, queue string, after Lane, limit int) ([]Lane, error)
	// Listen calls nudge for every hint that work may be due, until ctx ends:
	// with the lane for commits of this process, with 0 ("anywhere") for
	// others. Hints may be lost or doubled. nudge must not block.
	Listen(ctx context.Context, queue string, nudge func(Lane)) error
}

// Reader is what screens and waiting callers need.
type Reader interface {
	// Job reads one job with attempts and steps. ErrNotFound if there is none.
	Job(ctx context.Context, id ID) (Job, error)
	// Jobs lists one page in order of acceptance. A zero Next ends the list; a
	// page may be short or empty and still have a Next. No read stays open
	// between pages.
	Jobs(ctx context.Context, f Filter) (jobs []Job, next Cursor, err error)
	// Ages reads both ages of every (queue, kind) that has live jobs.
	Ages(ctx context.Context) ([]Age, error)
	// Counts counts per queue, each number up to limit (0 = 100 000).
	Counts(ctx context.Context, limit int) ([]Count, error)
	// Watch returns a channel that gets the id of each of these jobs when a
	// commit of this process ends it: a hint. stop releases it.
	Watch(ids []ID) (ended <-chan ID, stop func())
	// Audit proves that the books balance: every job ever accepted is live, has
	// ended, or was counted when it was removed. It names at most limit jobs (0
	// = 1000) of each fault, and reads page by page.
	Audit(ctx context.Context, limit int) (Books, error)
	// Clock reads the store's clock.
	Clock(ctx context.Context) (time.Time, error)
}

// Keeper is what operators and upkeep need.
type Keeper interface {
	// Hold keeps jobs from being claimed until a time that passes by itself.
	// A hold of the same lane is replaced. It moves no deadline.
	Hold(ctx context.Context, h Hold) error
	// Release removes a hold; false if there was none.
	Release(ctx context.Context, queue, tenant string, whole bool) (bool, error)
	// Holds lists the holds that have not passed.
	Holds(ctx context.Context) ([]Hold, error)
	// Prune removes ended jobs that are past their time, at most limit, and
	// keeps the files in shape. Each removal is counted.
	Prune(ctx context.Context, k Keep, limit int) (Pruned, error)
	// Remove removes ended jobs by id, for a person; counted. Live jobs and
	// unknown ids are left alone and not counted in the answer.
	Remove(ctx context.Context, ids []ID) (int, error)
	// Ack marks dead jobs as seen (or unseen); how many changed.
	Ack(ctx context.Context, ids []ID, acked bool) (int, error)
	// Pull makes due at once pending jobs that are due within the next
	// `within`, and cuts leases that reach further than `lease` from now: what
	// a clock that jumped back has stranded. At most limit rows.
	Pull(ctx context.Context, within, lease time.Duration, limit int) (int, error)
	// Note reads what a program keeps about a queue; zero if nothing.
	Note(ctx context.Context, queue string) (Note, error)
	// SetNote stores it, in place of what was there.
	SetNote(ctx context.Context, n Note) error
	// Removed lists how many jobs were ever removed, per queue and end.
	Removed(ctx context.Context) ([]Removal, error)
}

// Remote is what remote steps need besides.
type Remote interface {
	// Waits reads what answers are decided on: live jobs by id, in the given
	// order, without payload and history. Where no live job has the id, the
	// entry is the zero Job.
	Waits(ctx context.Context, ids []ID) ([]Job, error)
	// ReportNodes replaces what a process says of its nodes. It is forgotten
	// after keep, unless it is said again.
	ReportNodes(ctx context.Context, worker int64, nodes []NodeReport, keep time.Duration) error
	// Nodes lists what processes say of their nodes, by pool, node and process.
	Nodes(ctx context.Context) ([]NodeReport, error)
}

// NodeReport is what one process says of one node of a pool. Each process has
// breakers of its own.
type NodeReport struct {
	Pool string `json:"pool"`
	Node string `json:"node"` // "" = the report is of the inbox of the pool
	// State is the breaker's: "closed", "open", "half-open".
	State string `json:"state"`
	// Probe is how long until the breaker admits a call; 0 = now.
	Probe    time.Duration `json:"probe,omitempty"`
	Failures int           `json:"failures,omitempty"` // in a row
	Text     string        `json:"text,omitempty"`     // safe text for people
	Worker   int64         `json:"worker,string"`      // out: who says so
	At       time.Time     `json:"at"`                 // out: when it was said
	ProbeAt  time.Time     `json:"probe_at,omitzero"`  // out: when the breaker admits a call
}

// Lane is one tenant's part of one queue, as a number that the store computes.
// 0 = none. Two tenants may share a number: they then share a turn.
type Lane int64

// Inserted says what became of one New.
type Inserted struct {
	ID ID
	// Existing: nothing was stored, because this id exists or the key is
	// taken. ID is then that job's, State where it stands.
	Existing bool
	State    State
	Lane     Lane
}

// ClaimReq asks for jobs.
type ClaimReq struct {
	Queue string
	Kinds []string // kinds that the worker can run; others are never claimed
	// Lanes are served first, in this order and each named once, PerLane rows
	// each at most; what they do not fill is filled by age, past PerLane too.
	// Empty = by age alone. With Batch,
	// lanes that are named are all that is looked at.
	Lanes   []Lane
	PerLane int // 0 = no bound but Limit
	Limit   int
	Lease   time.Duration
	Worker  int64 // not 0
	// Suspects asks for one job whose next crash would end it, and nothing
	// else: the caller runs nothing beside it.
	Suspects bool
	// Batch asks for rows of one lane and one kind: up to Limit rows or Bytes
	// of payload, in order. A sealed batch is taken exactly as it was sealed.
	// The rows are sealed under the id Batch.
	Batch ID
	Bytes int // with Batch: bound of the sum of inputs; 0 = none. One row always fits
	// Linger, with Batch: a due head takes rows of its lane along that are due
	// within this time. 0 = due rows only.
	Linger time.Duration
}

// ClaimedJobs is what a claim brought.
type ClaimedJobs struct {
	Jobs []ClaimedJob
	// Next is when the next job of these kinds is due; 0 = none is known.
	Next time.Duration
	// Suspects: jobs wait that must run alone.
	Suspects bool
}

// ClaimedJob is one job in the hands of a worker.
type ClaimedJob struct {
	Snapshot
	Key    string
	Input  []byte
	Policy Policy
	Lane   Lane
	Batch  ID
	Handle int64         // for Fence.Handle
	Age    time.Duration // since it was first due
	Steps  []StepResult  // results of finished steps
}

// Held names one running attempt for Renew.
type Held struct {
	Job     ID
	Attempt int
	Handle  int64
}

// Cursor is a place in a list. The zero Cursor is its beginning, and as a
// "next" its end.
type Cursor struct {
	At  int64 `json:"at,omitempty"`
	Row int64 `json:"row,omitempty"`
}

// Overdue is one page of jobs whose alarm has passed.
type Overdue struct {
	Now  time.Time // the store's clock
	Jobs []Job
	Next Cursor
}

// Filter chooses jobs. Empty fields choose all.
type Filter struct {
	Queue, Kind, Tenant, Key string
	States                   []State
	// Unacked leaves out dead jobs that a person has acknowledged.
	Unacked bool
	After   Cursor
	Limit   int // page size; 0 = 100, at most 1000
}

// Age is the two ages of one (queue, kind). Zero = nothing to measure.
type Age struct {
	Queue, Kind string
	// Unfinished: the oldest live job since it was first due. Retries, holds
	// and pauses never reset it.
	Unfinished time.Duration
	Oldest     ID
	// Waiting: the oldest claimable job, now − due.
	Waiting time.Duration
}

// Count is how many jobs of one queue stand in one state. At the limit of the
// call N is that limit and More is true.
type Count struct {
	Queue string
	State State
	N     int
	More  bool
	Acked int // of Dead: acknowledged by a person
}

// Hold keeps a lane, or a whole queue, from being claimed until a time that
// passes by itself.
type Hold struct {
	Queue  string
	Tenant string
	Whole  bool          // the whole queue; Tenant is empty
	For    time.Duration // in: how long; out: how long still. At most 30 days
	Reason string        // closed word: "operator", "channel", …
	Text   string        // safe text for people
	Tries  int           // probes so far (outbox)
	Began  time.Time     // out only
	Until  time.Time     // out only
}

// Keep is how long ended jobs are kept after their end. Zero = default: 7 days
// for succeeded and cancelled, dead until a person removes them.
type Keep struct {
	Succeeded, Cancelled, Dead time.Duration
}

// WithDefaults returns k with its zero fields filled in, Dead excepted.
func (k Keep) WithDefaults() Keep {
	k.Succeeded = pick(k.Succeeded, 7*24*time.Hour)
	k.Cancelled = pick(k.Cancelled, 7*24*time.Hour)
	return k
}

// Pruned is what one Prune did.
type Pruned struct {
	Removed int
	More    bool  // the limit was reached: call again
	Log     int64 // bytes of the store's write-ahead log, where it has one
}

// Books is what Audit found. They balance when Balanced says so.
type Books struct {
	// Accepted is how many jobs were ever stored: live, ended and removed ones.
	Accepted, Live, Succeeded, Dead, Cancelled, Removed int64
	// Written off: jobs that a repair could not save, and reported.
	WrittenOff int64
	// Lost are jobs that are neither live nor ended, although their payload is
	// there; Doubled are both.
	Lost, Doubled []ID
	// Vanished counts jobs that were accepted and of which nothing is left.
	// Strays counts rows that belong to no job.
	Vanished, Strays int64
	// Overdue are live jobs past their EndsBy: no process sweeps, or it cannot.
	Overdue []Job
	More    bool // a list was cut at the limit
}

// Balanced reports whether every job is accounted for. Overdue jobs are: they
// are late.
func (b Books) Balanced() bool {
	return len(b.Lost) == 0 && len(b.Doubled) == 0 && b.Vanished == 0 && b.Strays == 0
}

// Note is what a program keeps about a queue, and how long the queue's ended
// jobs stay at least, whatever Keep says.
type Note struct {
	Queue string
	Text  []byte
	Keep  time.Duration // in: from now; out: still. 0 = no rule of its own
}

// Removal is how many jobs of a queue were removed with this end.
type Removal struct {
	Queue string
	State State
	N     int64
}
