package worker

import (
	"context"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// watchAfter is how long a handler runs before its job is watched: quick work
// would pay for nothing, and a renewal tells the same a little later.
const watchAfter = time.Second

// watchLoop stops handlers soon after their job was cancelled, or ended
// otherwise, by a commit of this process: a hint that saves waiting for the
// next renewal.
func (l *life) watchLoop(ctx context.Context) {
	tick := time.NewTicker(watchAfter)
	defer tick.Stop()
	var watched []settle.ID
	var ended <-chan settle.ID
	release := func() {}
	defer func() { release() }()
	for {
		select {
		case id := <-ended:
			l.verify(ctx, id)
		case <-tick.C:
			now := l.ledger.since(time.Now().Add(-watchAfter))
			if slices.Equal(now, watched) {
				continue
			}
			before := release
			if watched = now; len(now) == 0 {
				ended, release = nil, func() {}
			} else {
				ended, release = l.store.Watch(now)
			}
			before() // only now, so that no end falls between the two
		case <-ctx.Done():
			return
		}
	}
}

// verify asks the store about one job that is said to have ended, and stops its
// handler if that is so.
func (l *life) verify(ctx context.Context, id settle.ID) {
	f, ok := l.ledger.running(id)
	if !ok {
		return // it ended by what we said ourselves
	}
	call, cancel := context.WithTimeout(ctx, l.Lease/3)
	defer cancel()
	lost, err := l.store.Renew(call, l.id, []settle.Held{f}, l.Lease)
	if err != nil {
		return // the renewal will find out
	}
	for _, h := range l.ledger.lose(lost, []settle.Held{f}) {
		l.lost(h)
	}
}
