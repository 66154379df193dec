package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tally counts what fired.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

func (t *tally) add(what string) { t.n[what]++ }

// merge adds another one's counts.
func (t *tally) merge(o *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, n := range o.n {
		t.n[k] += n
	}
}

// String is a table, most frequent first within its letters.
func (t *tally) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(t.n)) {
		fmt.Fprintf(&b, "%9d  %s\n", t.n[k], k)
	}
	return b.String()
}

// allFired fails for each thing that must happen and did not.
func (t *tally) allFired(tb testing.TB) {
	for _, what := range mustFire() {
		if t.n[what] == 0 {
			tb.Errorf("%q never fired: the simulation proves nothing about it", what)
		}
	}
	known := mustFire()
	for what := range t.n {
		if !slices.Contains(known, what) {
			tb.Errorf("%q fired and is not on the list: add it to faults", what)
		}
	}
}

// mustFire are the operations, faults and ends of which a run must have some.
func mustFire() []string {
	var all []string
	for _, o := range ops {
		all = append(all, "op "+o.name)
	}
	return append(all, strings.Split(strings.TrimSpace(faults), "\n")...)
}

const faults = `
answer delivered twice
answer refused: the answer is for another submission
answer refused: the job has ended
answer refused: the job is in another state
answer refused: the job is spent or overdue
apply: already
apply: applied
apply: rejected
apply: stale
apply: superseded
audit of the history
awaiting by settle.CancelAsked
awaiting by settle.DeadlineOver
awaiting by settle.Delivered
awaiting by settle.Progressed
awaiting by settle.WaitOver
call of another process
cancelled by settle.RedriveAsked
charged to the step before its park
claim by several lanes
claim of a suspect, alone
claim waits to run a suspect alone
claim waits while a suspect runs
claim with finished steps
clock jumped to and fro between two looks
clock jumps back
clock jumps forward
clock put right
clock slips
crash of a worker
crash of a worker that held jobs
dead by settle.RedriveAsked
dead letter acknowledged, or not any more
discovery of lanes
end: cancelled
end: deferred_out
end: exhausted
end: expired
end: ok
end: refused
end: terminal
end: undecodable
end: worker_lost
ended after time without a sweep
ended before its deadline
ended by ends_by, always swept
enqueue met a taken key
enqueue met its own id
enqueue of a batch with an invalid job
enqueue of one id twice in a batch
enqueue refused: full of bytes
enqueue refused: full of jobs
enqueue repeated
hold released
lane held
lane learned from the fill by age
late renewal
late settle
lost answer: Apply
lost answer: Claim
lost answer: Insert
lost answer: Renew
lost answer: a ticket
lost request: Apply
node told to stop
nothing is left live
overdue job keeps its result until the next sweep
park met its answer
park of a recorded ticket: already
park of a recorded ticket: stale
pending by settle.CancelAsked
pending by settle.DeadlineOver
person or bridge acts on an old look
prune does not trust the time
prune leaves a queue that is kept
prune removed jobs
pull after a jump back
pull moved rows
queue kept for a time
queue paused
readers compared
remove leaves a live job
removed before their time to make room
removed by a person
renewal by a stranger
renewal came late
renewed
reopen beside another process
reopen of a file that nobody had open
running by settle.CancelAsked
running by settle.DeadlineOver
running by settle.Deferred
running by settle.Delivered
running by settle.Kept
running by settle.LeaseOver
running by settle.Parked
running by settle.Settled
running by settle.Submitting
second answer before the park
second ticket of an attempt
settle repeated
sign of life before the park
spent row offered
sweep acts on an old look
sweep does not trust the time
sweep leaves a job after a jump
sweep of several pages
sweep was too slow
ticket of a late handler
time passes while sweeps run
time that was jumped to has stood long enough
wish of a person repeated
`
