package settle

// State is where a job stands. Three states are live, three are ends.
// Scheduled, retrying and held are labels derived from it: see [Job.Label].
type State string

// The states. There is no other.
const (
	Pending   State = "pending"   // waits for its due time, or for a worker
	Running   State = "running"   // claimed: one attempt holds the lease
	Awaiting  State = "awaiting"  // parked for a remote result
	Succeeded State = "succeeded" // ended: the work was done
	Dead      State = "dead"      // ended: will not be tried again without a person
	Cancelled State = "cancelled" // ended: somebody called it off
)

// States lists every state, live ones first.
var States = []State{Pending, Running, Awaiting, Succeeded, Dead, Cancelled}

// Live reports whether something will still happen to the job by itself.
func (s State) Live() bool { return s == Pending || s == Running || s == Awaiting }

// Ended reports whether the job has reached its end.
func (s State) Ended() bool { return s == Succeeded || s == Dead || s == Cancelled }

// AttemptReason says how one attempt ended. The list is closed: words of
// handlers, nodes and servers are error text, never a reason.
type AttemptReason string

// The attempt reasons.
const (
	AttemptOK           AttemptReason = "ok"
	AttemptError        AttemptReason = "error"         // the handler returned an error
	AttemptPanic        AttemptReason = "panic"         // the handler panicked
	AttemptGoexit       AttemptReason = "goexit"        // the handler ended its goroutine
	AttemptTimedOut     AttemptReason = "timed_out"     // the policy's Timeout passed
	AttemptWorkerLost   AttemptReason = "worker_lost"   // the lease ran out: the process died or lost the store
	AttemptUndecodable  AttemptReason = "undecodable"   // the payload is not the kind's input
	AttemptOutput       AttemptReason = "output"        // the output could not be encoded, or is too large
	AttemptSubmitFailed AttemptReason = "submit_failed" // a remote step could not be handed over
	AttemptStepError    AttemptReason = "step_error"    // a node said that the step failed
	AttemptProtocol     AttemptReason = "protocol"      // an answer that is not on the allow-list
	AttemptNoResult     AttemptReason = "no_result"     // no answer until the wait's ceiling
	AttemptRefused      AttemptReason = "refused"       // the far end refuses this item for good
	AttemptShutdown     AttemptReason = "shutdown"      // deferral: the worker stopped
	AttemptSnoozed      AttemptReason = "snoozed"       // deferral: the handler asked for it
	AttemptNoNode       AttemptReason = "no_node"       // deferral: no node is eligible
	AttemptBusy         AttemptReason = "busy"          // deferral: the node is busy
	AttemptRateLimited  AttemptReason = "rate_limited"  // deferral: a rate limit
	AttemptLaneHeld     AttemptReason = "lane_held"     // deferral: the lane is held
	AttemptCancelled    AttemptReason = "cancelled"     // the job was cancelled while this attempt ran
	AttemptExpired      AttemptReason = "expired"       // the job's deadline passed while this attempt ran
)

// AttemptReasons lists every attempt reason.
var AttemptReasons = []AttemptReason{
	AttemptOK, AttemptError, AttemptPanic, AttemptGoexit, AttemptTimedOut, AttemptWorkerLost,
	AttemptUndecodable, AttemptOutput, AttemptSubmitFailed, AttemptStepError, AttemptProtocol,
	AttemptNoResult, AttemptRefused, AttemptShutdown, AttemptSnoozed, AttemptNoNode, AttemptBusy,
	AttemptRateLimited, AttemptLaneHeld, AttemptCancelled, AttemptExpired,
}

// EndReason says why a job ended. The list is closed.
type EndReason string

// The end reasons.
const (
	EndOK          EndReason = "ok"           // succeeded
	EndTerminal    EndReason = "terminal"     // an attempt said that trying again is useless
	EndExhausted   EndReason = "exhausted"    // the attempts, or a step's, are spent
	EndWorkerLost  EndReason = "worker_lost"  // the crash budget is spent
	EndDeferredOut EndReason = "deferred_out" // the deferrals are spent
	EndExpired     EndReason = "expired"      // the deadline passed
	EndUndecodable EndReason = "undecodable"  // the payload is not the kind's input
	EndRefused     EndReason = "refused"      // the far end refused the item
	EndCancelled   EndReason = "cancelled"    // cancelled
)

// EndReasons lists every end reason.
var EndReasons = []EndReason{
	EndOK, EndTerminal, EndExhausted, EndWorkerLost, EndDeferredOut,
	EndExpired, EndUndecodable, EndRefused, EndCancelled,
}
