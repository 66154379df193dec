package xrun

import (
	"context"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

// gate is the store as the worker sees it. It bounds what is claimed by the
// commands that run or are about to: the worker has more slots than that, for
// with -k a finished item keeps its slot until its output has had its turn.
type gate struct {
	settle.Store
	jobs int // commands at once

	mu     sync.Mutex
	open   int                // reserved by claims under way
	taken  map[settle.ID]bool // claimed, command not ended
	mean   time.Duration      // how long commands run; 0 = not known yet
	shut   bool
	wanted bool // a claim got less than it asked for
	alone  bool // items wait that must run alone, as of the last claim
	nudge  func(settle.Lane)
}

// What is claimed ahead covers this time, so that no place for a command waits
// for a claim; slow commands get nothing ahead.
const (
	aheadSpan = 50 * time.Millisecond
	maxAhead  = 64
)

func newGate(st settle.Store, jobs int) *gate {
	return &gate{Store: st, jobs: jobs, taken: map[settle.ID]bool{}}
}

// Claim claims as much as may be claimed.
func (g *gate) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	n := g.reserve(r.Limit)
	if n == 0 {
		return settle.ClaimedJobs{}, nil
	}
	r.Limit = n
	got, err := g.Store.Claim(ctx, r)
	g.took(n, got.Jobs)
	if err == nil && !r.Suspects {
		g.mu.Lock()
		g.alone = got.Suspects
		g.mu.Unlock()
	}
	return got, err
}

func (g *gate) reserve(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return 0
	}
	free := max(g.free(), 0)
	g.wanted = free < n
	n = min(n, free)
	g.open += n
	return n
}

func (g *gate) free() int { return g.jobs + g.ahead() - len(g.taken) - g.open }

// ahead is how much is claimed beyond the commands that run.
func (g *gate) ahead() int {
	if g.mean == 0 {
		return 0
	}
	return int(min(time.Duration(g.jobs)*aheadSpan/g.mean, maxAhead))
}

func (g *gate) took(reserved int, jobs []settle.ClaimedJob) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open -= reserved
	for _, j := range jobs {
		g.taken[j.ID] = true
	}
}

// ran says that a command has ended, and how long it took.
func (g *gate) ran(id settle.ID, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mean == 0 {
		g.mean = took
	}
	g.mean = max((7*g.mean+took)/8, time.Microsecond)
	g.release(id)
}

// done says that no command will run for an item.
func (g *gate) done(id settle.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(id)
}

// release makes room; a claim comes when there is room for more than a few.
func (g *gate) release(id settle.ID) {
	if !g.taken[id] {
		return
	}
	delete(g.taken, id)
	if g.wanted && g.nudge != nil && g.free() > g.ahead()/2 {
		g.nudge(0)
	}
}

// suspects reports whether items wait that must run alone.
func (g *gate) suspects() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.alone
}

// close lets nothing more be claimed.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// Listen also nudges when the gate opens.
func (g *gate) Listen(ctx context.Context, queue string, nudge func(settle.Lane)) error {
	g.mu.Lock()
	g.nudge = nudge
	g.mu.Unlock()
	return g.Store.Listen(ctx, queue, nudge)
}
