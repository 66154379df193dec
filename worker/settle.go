package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
)

const (
	maxBatch     = 1000 // outcomes in one Apply
	maxUnsettled = 4000 // outcomes that may wait before claiming stops
	maxRefused   = 5    // times that an outcome may fail alone while the store takes other writes
	storeTimeout = 10 * time.Second
)

// settler hands outcomes to the store: whatever gathered while the last batch
// was on the wire, without a timer. A batch that fails is offered again, as it
// was decided, until the store takes it; meanwhile nothing new is claimed.
type settler struct {
	life *life
	kick chan struct{} // something waits
	open atomic.Int64  // outcomes that the store has not taken
	down atomic.Bool   // the last Apply failed

	writes atomic.Int64 // batches and renewals that the store took

	mu      sync.Mutex
	waiting []offer
	limit   int // outcomes in the next batch: halved by failure
}

// offer is one outcome on its way into the store.
type offer struct {
	holding
	t       settle.Transition
	refused int   // times that it failed alone although the store takes writes
	writes  int64 // settler.writes when it last failed alone
}

func newSettler(l *life) *settler {
	return &settler{life: l, kick: make(chan struct{}, 1), limit: maxBatch}
}

// room is how many more outcomes may gather.
func (s *settler) room() int { return max(maxUnsettled-int(s.open.Load()), 0) }

// offer decides each job of an attempt that is over, once and for all.
func (s *settler) offer(a *attempt, says func(i int) verdict) {
	s.open.Add(int64(len(a.jobs)))
	for i := range a.jobs {
		v := says(i)
		t := settle.Decide(a.snapshot(i), v.event, a.jobs[i].Policy, rand.Float64())
		t.Fence.Handle, t.Fence.Worker = a.jobs[i].Handle, s.life.id
		if v.seal.set && t.To == settle.Pending {
			t.Batch, t.SetBatch = v.seal.batch, true
		}
		s.mu.Lock()
		s.waiting = append(s.waiting, offer{holding: holding{a, i}, t: t})
		s.mu.Unlock()
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// loop settles until ctx ends.
func (s *settler) loop(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		n, err := s.step(ctx)
		switch {
		case err != nil:
			pause := wait.next()
			s.life.callFailed("settle", err, pause)
			sleep(ctx, pause)
		case n > 0:
			wait.reset()
			s.life.outage.up("settle")
		default:
			select {
			case <-s.kick:
			case <-ctx.Done():
			}
		}
	}
}

// step offers one batch to the store.
func (s *settler) step(ctx context.Context) (int, error) {
	batch := s.next()
	if len(batch) == 0 {
		return 0, nil
	}
	ts := make([]settle.Transition, len(batch))
	for i := range batch {
		ts[i] = batch[i].t
	}
	call, cancel := context.WithTimeout(ctx, storeTimeout)
	said, err := s.life.store.Apply(call, ts)
	cancel()
	if err == nil && len(said) != len(ts) {
		err = errors.New("the store did not answer each transition")
	}
	if err != nil {
		s.failed(batch, err)
		return 0, err
	}
	s.took(batch, said)
	return len(batch), nil
}

func (s *settler) next() []offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.limit, len(s.waiting))
	batch := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	if len(s.waiting) == 0 {
		s.waiting = nil
	}
	return batch
}

// took spreads the store's answers.
func (s *settler) took(batch []offer, said []settle.Applied) {
	s.mu.Lock()
	s.limit = min(s.limit*2, maxBatch)
	s.mu.Unlock()
	s.writes.Add(1)
	hs := make([]holding, len(batch))
	for i := range batch {
		hs[i] = batch[i].holding
	}
	s.open.Add(-int64(len(batch)))
	reopened := s.down.Swap(false)
	s.life.release(hs...)
	if reopened || s.open.Load() < maxUnsettled/2 && s.life.crowded.Swap(false) {
		s.life.pokeAll()
	}
	for i := range batch {
		s.life.settledByHolder(batch[i].holding, batch[i].t, said[i])
	}
}

// failed puts a batch back. It is halved each time, so that one row that the
// store cannot take ends up alone and goes to the back; there it is given up
// once it has failed repeatedly while the store took other writes, and its
// lease ends the attempt.
func (s *settler) failed(batch []offer, err error) {
	s.mu.Lock()
	s.limit = max(len(batch)/2, 1)
	var lost []holding
	switch lone := &batch[0]; {
	case len(batch) > 1:
		s.waiting = append(batch, s.waiting...)
	default:
		if n := s.writes.Load(); n > lone.writes && !errors.Is(err, settle.ErrFull) {
			lone.refused, lone.writes = lone.refused+1, n
		}
		if lone.refused < maxRefused {
			s.waiting = append(s.waiting, *lone)
		} else {
			lost = append(lost, lone.holding)
		}
	}
	s.down.Store(len(s.waiting) > 0)
	s.mu.Unlock()
	if len(lost) > 0 {
		s.open.Add(-1)
		s.life.givenUp(lost[0], err)
		s.life.release(lost...)
	}
	s.life.pokeAll() // the claimers stop or go on, and say so
}
