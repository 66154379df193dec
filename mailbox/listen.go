package mailbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The pause before the subscription is tried again, jittered, doubled up to the
// longest with each failure in a row. 2 s is what "back within a few seconds"
// allows.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// listen keeps the one subscription of the box.
func (b *Box) listen(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		up := false
		err := b.source.Listen(ctx, func() { up = true; b.up() }, b.nudged)
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			err = errors.New("the subscription has ended")
		}
		b.heard(err)
		if up {
			pause = firstPause
		}
		rest := pause/2 + rand.N(pause/2)
		if errors.Is(err, ErrNoNudges) {
			rest = b.config.LogEvery
		}
		pause = min(2*pause, longestPause)
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Subscribed = false
}

// up: nudges are heard from now on. Those before may be lost, so everything is
// looked at once.
func (b *Box) up() {
	b.heard(nil)
	b.mu.Lock()
	b.rota.due(time.Now())
	b.mu.Unlock()
	b.ring()
}

// nudged hears that a key is worth a look. It must be quick: it holds up the
// subscription.
func (b *Box) nudged(key string) {
	b.mu.Lock()
	b.stats.Nudges++
	ours := b.rota.nudge(key) || b.late.nudge(key, time.Now().Add(2*b.config.Poll))
	b.mu.Unlock()
	if ours {
		b.ring()
	}
}
