package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
)

// solitude decides when suspects have their turn. A suspect is a job whose next
// crash would end it: it runs alone in its process, so that the crash is nobody
// else's fault.
type solitude struct {
	next     time.Duration // not before, unless the process is empty
	patience time.Duration // how long to wait for running work to end
	barren   time.Duration // not before: the last look found none to run
	none     atomic.Int64  // life.epoch + 1 at that look
}

const minPatience = 5 * time.Second

var errPatience = errors.New("running work takes longer")

// suspect lets one suspect run, if it is time: when the process is empty, or
// when normal work had as much time as the last round took. A round that waits
// in vain for the process to become empty doubles the patience of the next, so
// that neither side starves.
func (l *life) suspect(ctx context.Context) {
	if !l.ledger.setAlone(true) {
		return // another claimer is at it
	}
	defer l.ledger.setAlone(false)
	s, began := &l.solitude, l.now()
	if began < s.barren || began < s.next && !l.ledger.empty() {
		return
	}
	defer l.pokeAll()
	defer func() { s.next = l.now() + (l.now() - began) }()
	s.patience = max(s.patience, minPatience)
	wait, cancel := context.WithTimeoutCause(ctx, s.patience, errPatience)
	err := l.ledger.waitQuiet(wait)
	cancel()
	if err != nil {
		s.patience *= 2
		return
	}
	s.patience = 0
	epoch := l.epoch.Load()
	if l.claimSuspect() {
		l.ledger.waitQuiet(ctx) // until it is settled, or Run drains
	} else {
		s.none.Store(epoch + 1)
		s.barren = l.now() + l.Poll
	}
}

// claimSuspect claims one suspect and gives it to the crew of its kind.
func (l *life) claimSuspect() (found bool) {
	if l.quota.take(1) == 0 {
		return false
	}
	defer func() {
		if found {
			l.quota.giveBack(1, 0)
		} else {
			l.quota.giveBack(1, 1)
		}
	}()
	l.ledger.enter(true)
	defer l.ledger.leave()
	for _, c := range l.claimers {
		got, err := c.call(settle.ClaimReq{Queue: l.Queue, Kinds: c.kinds, Limit: 1, Suspects: true, Lease: l.Lease, Worker: l.id})
		if err != nil {
			return false // the next normal claim says so
		}
		if len(got.Jobs) > 0 {
			l.epoch.Add(1)
			return true
		}
	}
	return false
}
