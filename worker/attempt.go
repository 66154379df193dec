package worker

import (
	"context"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

// abandonAfter is how long after the end of its context a handler may take to
// return before it loses its slot.
const abandonAfter = time.Second

// attempt is one call of a handler: one claimed job, or one batch.
type attempt struct {
	crew    *crew
	run     handler
	jobs    []settle.ClaimedJob
	answers []answer // written by the handler's goroutine only
	one     [1]answer
	claimed time.Time     // before the claim was sent
	took    time.Duration // how long the handler ran; set before it is settled

	// Guarded by ledger.mu.
	since time.Duration // from before the call that last extended the lease
	open  int           // jobs that have not been released
	then  func()        // called when the last one has been; may be nil

	mu     sync.Mutex
	wait   *settle.Wait // the ticket that was recorded for its one job, if any
	spent  int          // attempts of that step before
	phase  phase
	lost   int // jobs that this process no longer holds
	began  time.Time
	cancel context.CancelCauseFunc
}

// phase is where an attempt stands. It only moves forward, and whoever moves it
// to over decides what became of it.
type phase byte

const (
	buffered phase = iota // claimed, waits for a slot
	running               // its handler runs
	over                  // its outcome is known: it waits for the store
)

func newAttempt(c *crew, run handler, jobs []settle.ClaimedJob, claimed time.Time) *attempt {
	a := &attempt{crew: c, run: run, jobs: jobs, claimed: claimed, open: len(jobs)}
	if a.answers = a.one[:]; len(jobs) > 1 {
		a.answers = make([]answer, len(jobs))
	}
	return a
}

// begin makes the context of the handler, if the attempt is still to be run.
// end must be called when the handler has returned.
func (a *attempt) begin(parent context.Context) (ctx context.Context, end func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase != buffered || a.lost == len(a.jobs) {
		return nil, nil, false
	}
	ctx, a.cancel = context.WithCancelCause(parent)
	limit, cause := a.limit()
	ctx, stop := context.WithTimeoutCause(ctx, limit, cause)
	unwatch := context.AfterFunc(ctx, func() {
		time.AfterFunc(abandonAfter, func() { a.crew.abandon(a, context.Cause(ctx)) })
	})
	a.phase, a.began = running, time.Now()
	return ctx, func() { unwatch(); stop(); a.cancel(nil) }, true
}

// limit is how long the handler may run, and what ends it then: the shortest
// timeout, or the first deadline.
func (a *attempt) limit() (time.Duration, error) {
	limit, cause := a.jobs[0].Policy.Timeout, ErrTimedOut
	waited := time.Since(a.claimed)
	for i := range a.jobs {
		limit = min(limit, a.jobs[i].Policy.Timeout)
		if left := a.jobs[i].Remaining - waited; left < limit {
			limit, cause = left, ErrExpired
		}
	}
	return limit, cause
}

// conclude moves the attempt from one phase to its end; false when somebody
// else was faster.
func (a *attempt) conclude(from phase) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase != from {
		return false
	}
	a.phase = over
	if from == running {
		a.took = time.Since(a.began)
	}
	return true
}

// lose notes that one of its jobs is no longer held. The last one ends the
// handler's context: in a batch the others go on. It reports whether that is
// news: an attempt that is over learns it from the store's answer.
func (a *attempt) lose() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase == over || a.lost == len(a.jobs) {
		return false
	}
	a.lost++
	if a.lost == len(a.jobs) && a.phase == running {
		a.cancel(ErrLeaseLost)
	}
	return true
}

// runs says since when its handler has run, if it does.
func (a *attempt) runs() (began time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.began, a.phase == running
}

// snapshot is what Decide needs to know of one job now.
func (a *attempt) snapshot(i int) settle.Snapshot {
	s := a.jobs[i].Snapshot
	s.Remaining -= time.Since(a.claimed)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wait != nil {
		s.Wait, s.StepSpent = a.wait, a.spent
	}
	return s
}

// all names its jobs.
func (a *attempt) all() []holding {
	hs := make([]holding, len(a.jobs))
	for i := range hs {
		hs[i] = holding{a, i}
	}
	return hs
}
