// Package storetest defines a store: every clause of the contract in
// settle.Store, and every field case that a store alone can answer, as one
// test that drives the store's clock. A store is a store when Run passes.
//
// The name of each test is the sentence that must be true, with the promise
// (P1 … P15, DESIGN.md) or the field case (B-0xx, field-cases.md) that it proves.
package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// Harness opens fresh stores for the suite.
type Harness struct {
	// Open opens a new, empty store whose clock is c, and has it closed by
	// t.Cleanup.
	Open func(t *testing.T, c *Clock) settle.Store
	// Again opens another handle, as another process would, on the data of a
	// store that Open gave, and has it closed by t.Cleanup. nil = the store
	// can not be shared; what needs two handles is then left out.
	Again func(t *testing.T, s settle.Store, c *Clock) settle.Store
	// Full opens a store like Open that refuses the next enqueue once it holds
	// this many live jobs. nil = the store has no such limit.
	Full func(t *testing.T, c *Clock, jobs int) settle.Store
}

// Start is where each clock of the suite begins.
var Start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// Clock is a clock that only the test moves. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at Start.
func NewClock() *Clock { return &Clock{now: Start} }

// Now reads the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set puts the clock to t, also backwards.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// clause is one sentence that must be true of every store.
type clause struct {
	name string
	test func(*rig)
}

// topics are the clauses in the order in which a reader meets them.
var topics = []struct {
	name    string
	clauses []clause
}{
	{"insert", insertClauses},
	{"invalid", invalidClauses},
	{"keys", keyClauses},
	{"time", timeClauses},
	{"claim", claimClauses},
	{"fair", fairClauses},
	{"suspects", suspectClauses},
	{"batch", batchClauses},
	{"renew", renewClauses},
	{"apply", applyClauses},
	{"fence", fenceClauses},
	{"steps", stepClauses},
	{"tickets", ticketClauses},
	{"early answers", earlyClauses},
	{"recalls", recallClauses},
	{"waits", waitClauses},
	{"nodes", nodeClauses},
	{"walk", walkClauses},
	{"hook", hookClauses},
	{"cancel", cancelClauses},
	{"redrive", redriveClauses},
	{"sweep", sweepClauses},
	{"crash", crashClauses},
	{"jump", jumpClauses},
	{"holds", holdClauses},
	{"read", readClauses},
	{"list", listClauses},
	{"ages", ageClauses},
	{"retention", retentionClauses},
	{"text", textClauses},
	{"nudges", nudgeClauses},
	{"handles", handleClauses},
	{"full", fullClauses},
	{"race", raceClauses},
}

// Run holds a store to the contract. Each clause gets a store of its own;
// clauses run in parallel.
func Run(t *testing.T, h Harness) {
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.clauses {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.test(newRig(t, h))
				})
			}
		})
	}
}
