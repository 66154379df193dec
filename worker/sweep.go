package worker

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/jump"
)

const (
	sweepPage    = 500
	sweepTimeout = 4 * time.Second // well below jump.Slack twice over: a slow look is no jump
	pullPage     = 1000
	prunePage    = 1000
	prunePause   = time.Minute
	// strandedLease is what is left of a lease that reaches into a time from
	// which the clock has jumped back: enough for any living worker to renew.
	strandedLease = 5 * time.Minute
	lonelyFaults  = 3 // rows that fail one by one before the store counts as down
)

// sweeper turns times that have passed into transitions. Every process has one;
// there is no leader. It goes by a cursor, so that a row that cannot be moved
// never holds up those behind it.
type sweeper struct {
	life    *life
	mu      sync.Mutex // guards jumps: prune asks it too
	jumps   jump.Detector
	after   settle.Cursor
	back    time.Duration // rows due within this time are still to be pulled
	looks   time.Duration // in this pass: what last looks may still take
	waits   bool          // in this pass: leases are over that may not be ended yet
	pending atomic.Bool   // the same of the last whole pass; true before the first
	trusted atomic.Bool   // the clock may be used to expire and to remove
	looked  chan struct{} // closed after the first look, by once
	once    sync.Once
	pruned  atomic.Bool // prune has had its first turn
}

func newSweeper(l *life) *sweeper {
	s := &sweeper{life: l, looked: make(chan struct{}), jumps: jump.Detector{Renew: max(l.Lease/3, settle.RenewInterval)}}
	s.pending.Store(true)
	return s
}

// step sweeps one page of jobs whose alarm has passed.
func (s *sweeper) step(ctx context.Context) (more bool, err error) {
	l := s.life
	if s.after == (settle.Cursor{}) { // a pass begins
		s.looks = lastLook
	}
	sent := l.now()
	call, cancel := context.WithTimeout(ctx, sweepTimeout)
	page, err := l.store.Overdue(call, s.after, sweepPage)
	cancel()
	if err != nil {
		s.mu.Lock()
		s.jumps.Out()
		s.mu.Unlock()
		s.after, s.waits = settle.Cursor{}, true
		return false, err
	}
	l.counts.skew.Store(int64(time.Until(page.Now) + (l.now()-sent)/2))
	s.mu.Lock()
	may := s.jumps.Look(page.Now, sent+(l.now()-sent)/2)
	s.mu.Unlock()
	s.trusted.Store(may.Expire)
	s.once.Do(func() { close(s.looked) })
	s.back = max(s.back, may.Back)
	if s.back > 0 {
		return true, s.pull(ctx)
	}
	s.after = page.Next
	err = s.sweep(ctx, page, may)
	if s.after != (settle.Cursor{}) {
		return true, err
	}
	s.pending.Store(s.waits)
	s.waits = false
	l.voteIdle()
	return false, err
}

// sweep decides each job of a page and applies what was decided, unless the
// row has been renewed or moved since it was read.
func (s *sweeper) sweep(ctx context.Context, page settle.Overdue, may jump.May) error {
	ts := make([]settle.Transition, 0, len(page.Jobs))
	jobs := make([]*settle.Job, 0, len(page.Jobs))
	var over []settle.Job // waits that end
	for i := range page.Jobs {
		j := &page.Jobs[i]
		j.Now = page.Now
		ev := j.Passed(may.EndLeases, may.Expire)
		if ev == nil {
			s.waits = s.waits || j.State == settle.Running
			continue
		}
		if t := j.Decide(ev, rand.Float64(), true); t.Refusal == "" {
			ts, jobs = append(ts, t), append(jobs, j)
			if j.State == settle.Awaiting {
				over = append(over, *j)
			}
		}
	}
	s.looks -= s.life.look(ctx, over, s.looks)
	said, last, err := s.life.applyEach(ctx, ts)
	if err != nil { // if it was the rows after all, they hold up nobody behind them
		s.after = settle.Cursor{At: jobs[last].Fence.Seen, Row: jobs[last].Fence.Handle}
	}
	for i, j := range jobs {
		if said[i] != "" {
			s.life.events.Settled(Settled{Job: j.ID, Kind: j.Kind, Queue: j.Queue, Tenant: j.Tenant,
				Attempt: j.Attempt, Transition: ts[i], Applied: said[i], By: bySweep, Wait: j.Wait})
		}
	}
	return err
}

// applyEach applies transitions. A batch that fails is halved, down to rows: one
// that the store cannot take is told and left, its answer is empty. An error
// names the last row that was tried.
func (l *life) applyEach(ctx context.Context, ts []settle.Transition) (said []settle.Applied, last int, err error) {
	said = make([]settle.Applied, len(ts))
	faults := 0
	var apply func(lo, hi int) error
	apply = func(lo, hi int) error {
		if lo == hi {
			return nil
		}
		call, cancel := context.WithTimeout(ctx, storeTimeout)
		got, err := l.store.Apply(call, ts[lo:hi])
		cancel()
		switch {
		case err == nil:
			copy(said[lo:hi], got)
			faults = 0
			return nil
		case hi-lo == 1:
			l.refused(ts[lo], err)
			if faults++; faults >= lonelyFaults || ctx.Err() != nil {
				last = lo
				return err // it is not the rows
			}
			return nil
		}
		mid := (lo + hi) / 2
		if err := apply(lo, mid); err != nil {
			return err
		}
		return apply(mid, hi)
	}
	err = apply(0, len(ts))
	return said, last, err
}

// pull brings back, page by page, what a clock that jumped back has stranded.
func (s *sweeper) pull(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	n, err := s.life.store.Pull(call, s.back, max(s.life.Lease, strandedLease), pullPage)
	if err == nil && n < pullPage {
		s.back = 0
	}
	return err
}

// prune removes ended jobs that are past their time.
func (s *sweeper) prune(ctx context.Context) (more bool, err error) {
	l := s.life
	select {
	case <-s.looked:
	case <-ctx.Done():
		return false, nil
	}
	defer l.voteIdle()
	defer s.pruned.Store(true)
	began := l.now()
	call, cancel := context.WithTimeout(ctx, storeTimeout)
	if !s.trusts(call) {
		cancel()
		return false, nil
	}
	p, err := l.store.Prune(call, l.Keep, prunePage)
	cancel()
	if err != nil {
		return false, err
	}
	l.events.Pruned(p)
	if p.More {
		sleep(ctx, max(l.now()-began, 10*time.Millisecond)) // half of the time is for the work
	}
	return p.More, nil
}

// trusts says whether things may be removed by the clock: it is trusted, and has
// not jumped since a sweep looked at it.
func (s *sweeper) trusts(ctx context.Context) bool {
	if !s.trusted.Load() {
		return false
	}
	now, err := s.life.store.Clock(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && s.jumps.Steady(now, s.life.now())
}
