package worker

import (
	"context"
	"time"
)

// marginPart is the part of a lease before whose end a worker that could not
// renew stops its own handlers: before anybody else may take their jobs.
const marginPart = 10

// renewLoop renews every third of a lease, sooner after a failure.
func (l *life) renewLoop(ctx context.Context) {
	var wait backoff
	for pause := jitter(l.Lease / 3); ; {
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return
		}
		pause = jitter(l.Lease / 3)
		if err := l.renew(ctx); err != nil {
			pause = min(wait.next(), l.Lease/marginPart)
			l.storeDown("renew", err, pause)
		} else {
			wait.reset()
		}
	}
}

// renew extends, in one call, the leases of all that is held: buffered, running
// or not yet settled. What the store no longer grants is lost.
func (l *life) renew(ctx context.Context) error {
	fences, who := l.ledger.list()
	if len(fences) == 0 {
		return nil
	}
	sent := l.now()
	call, cancel := context.WithTimeout(ctx, l.Lease/3)
	lost, err := l.store.Renew(call, l.id, fences, l.Lease)
	cancel()
	if err != nil {
		return err
	}
	l.settler.writes.Add(1)
	l.outage.up("claim") // it takes writes, and what runs is worth waiting for
	l.ledger.renewed(who, sent)
	for _, h := range l.ledger.lose(lost, fences) {
		l.lost(h)
	}
	return nil
}

// guardLoop ends handlers whose lease could not be renewed in time, whatever
// the store does meanwhile.
func (l *life) guardLoop(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, l.guard(l.now()))
	}
}

// guard is one look; it returns when the next is due. Time is measured by the
// monotonic clock from before the call that last succeeded.
func (l *life) guard(now time.Duration) (next time.Duration) {
	good := l.Lease - l.Lease/marginPart
	lost, oldest, any := l.ledger.expired(now - good)
	for _, h := range lost {
		l.lost(h)
	}
	if !any {
		return good // nothing that is claimed from now on can expire sooner
	}
	return oldest + good - now
}

// lost ends the handler of a job that is no longer this worker's.
func (l *life) lost(h holding) {
	if h.a.lose() {
		l.counts.leaseLost.Add(1)
		l.events.LeaseLost(h.a.jobs[h.i])
	}
}
