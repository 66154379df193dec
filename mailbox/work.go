package mailbox

import (
	"context"
	"math/rand/v2"
	"time"
)

// work looks at whatever is to be looked at, one batch after the other.
func (b *Box) work(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		// A look that ctx could break off might have consumed what it saw.
		wake, busy := b.step(context.WithoutCancel(ctx), time.Now())
		if busy {
			continue
		}
		if wake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(wake))
		}
		select {
		case <-ctx.Done():
		case <-b.bell:
		case <-timer.C:
		}
	}
}

// step looks once, or says when there will be something to look at.
func (b *Box) step(ctx context.Context, now time.Time) (wake time.Time, busy bool) {
	b.mu.Lock()
	waits, wake := b.rota.take(now, b.config.Poll/8)
	var late []*lateWait
	if len(waits) == 0 {
		var lateWake time.Time
		if late, lateWake = b.late.take(now); wake.IsZero() || !lateWake.IsZero() && lateWake.Before(wake) {
			wake = lateWake
		}
	}
	b.mu.Unlock()
	switch {
	case len(waits) > 0 && waits[0].last:
		ctx, cancel := context.WithTimeout(ctx, b.config.LastLook)
		defer cancel()
		b.look(ctx, waits)
	case len(waits) > 0:
		b.look(ctx, waits)
	case len(late) > 0:
		b.removeLate(ctx, late)
	default:
		return wake, false
	}
	return wake, true
}

// windUp gives every wait that is left its last look. No new ones come.
func (b *Box) windUp() {
	ctx, cancel := context.WithTimeout(context.Background(), b.config.LastLook)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Running, b.begun = false, make(chan struct{})
	for _, w := range b.rota.keys {
		why := ErrStopped
		if err := w.ctx.Err(); err != nil {
			why = err
		}
		b.rota.end(w, why)
	}
	for len(b.rota.keys) > 0 {
		waits, _ := b.rota.take(time.Now(), 0)
		b.mu.Unlock()
		b.look(ctx, waits)
		b.mu.Lock()
	}
}

// look is the one way in which a document reaches a wait, whatever led here: a
// new wait, a nudge, a poll, or an end.
func (b *Box) look(ctx context.Context, waits []*wait) {
	keys := make([]string, len(waits))
	for i, w := range waits {
		keys[i] = w.key
	}
	found := b.source.Read(ctx, keys)
	b.saw(waits, found)
	for i, w := range waits {
		d, err, ends := b.judge(w.key, w.ticket, found[i])
		if ends {
			b.finish(w, d, err)
		} else {
			b.goOn(w, found[i].Err, err)
		}
	}
}

// judge says what was found under a key means, and whether that ends the wait.
// Only a look that failed and consumed nothing, nothing lying there, and a
// judge's word for it go on waiting.
func (b *Box) judge(key string, t Ticket, f Found) (d Delivery, err error, ends bool) {
	if f.Err != nil {
		return Delivery{}, f.Err, IsFinal(f.Err)
	}
	answer, err := b.config.Judge.Look(t, f.Doc, f.There)
	switch {
	case err == nil, IsFinal(err):
		d = Delivery{Answer: answer, Key: key, doc: f.Doc}
		if !b.source.Destructive() {
			d.box = b
		}
		return d, err, true
	case f.There && b.source.Destructive():
		return Delivery{}, &ConsumedError{Key: key, Err: err}, true
	default:
		return Delivery{}, err, false
	}
}

// finish ends a wait with an answer.
func (b *Box) finish(w *wait, d Delivery, err error) {
	b.mu.Lock()
	b.rota.remove(w)
	b.stats.ended(err)
	b.mu.Unlock()
	w.stop()
	w.tell(d, err)
}

// goOn puts a wait back that was looked at in vain, or ends it if that was its
// last look. blind is why the look failed, err what else it came to.
func (b *Box) goOn(w *wait, blind, err error) {
	b.mu.Lock()
	if w.blind = blind; blind != nil {
		w.deaf = true
	} else {
		if err == ErrStale && !w.stale {
			b.stats.Stale++
		}
		w.stale = err == ErrStale
	}
	now := time.Now()
	// Poll is the longest time between two looks, so luck only shortens it.
	if !b.rota.back(w, now.Add(b.config.Poll-rand.N(b.config.Poll/8))) {
		b.mu.Unlock()
		return
	}
	why := w.why
	if why == errCeiling {
		why = &NoResultError{Key: w.key, Step: w.ticket.Step, Node: w.ticket.Node, Waited: now.Sub(w.began), Unread: w.deaf, Err: w.blind}
		b.late.add(w.key, w.ticket)
	}
	b.stats.ended(why)
	b.mu.Unlock()
	w.stop()
	w.tell(Delivery{}, why)
}

// removeLate removes answers to submissions that ended without one.
func (b *Box) removeLate(ctx context.Context, late []*lateWait) {
	keys := make([]string, len(late))
	for i, w := range late {
		keys[i] = w.key
	}
	for i, f := range b.source.Read(ctx, keys) {
		if _, _, answer := b.judge(keys[i], late[i].ticket, f); !answer || f.Err != nil {
			continue
		}
		removed := b.source.Destructive()
		if !removed {
			removed, _ = b.source.Remove(ctx, keys[i], f.Doc) // else it expires by itself
		}
		b.mu.Lock()
		b.late.forget(keys[i])
		if removed {
			b.stats.Late++
		}
		b.mu.Unlock()
	}
}
