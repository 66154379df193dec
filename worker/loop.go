package worker

import (
	"context"
	"math/rand/v2"
	"time"
)

// every runs a step until ctx ends: again at once while it says that there is
// more, after the pause when there is not, and with growing pauses, told to
// StoreDown, while it fails.
func (l *life) every(ctx context.Context, op string, pause time.Duration, step func(context.Context) (more bool, err error)) {
	var wait backoff
	for ctx.Err() == nil {
		more, err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			next := wait.next()
			l.callFailed(op, err, next)
			sleep(ctx, next)
		case more:
			wait.reset()
			l.outage.up(op)
		default:
			wait.reset()
			l.outage.up(op)
			sleep(ctx, jitter(pause))
		}
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// jitter takes up to a quarter off d, so that processes do not act in step.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Float64()*float64(d)/4)
}

// How long calls of a store that fails are put off.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 10 * time.Second
)

// backoff grows from failure to failure.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(b.last*2, backoffMin), backoffMax)
	return jitter(b.last)
}

func (b *backoff) reset() { b.last = 0 }
