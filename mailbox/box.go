package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Box waits for answers. One for a process is enough: all waits share one
// subscription and look together. Its methods may be called from any goroutine.
type Box struct {
	source Source
	config Config

	life  sync.Mutex    // held by Run
	bell  chan struct{} // rung when there may be something to look at
	calls sync.WaitGroup

	mu    sync.Mutex
	begun chan struct{} // closed while Run is under way
	rota  *rota
	late  late
	stats Stats
	sight outage // looks fail
	ears  outage // the subscription fails
}

// New returns a box on a source. It starts nothing and asks nobody: call Run.
// The error names every fault of c.
func New(s Source, c Config) (*Box, error) {
	c, err := c.ready()
	if err != nil {
		return nil, err
	}
	return &Box{source: s, config: c, bell: make(chan struct{}, 1), begun: make(chan struct{}), rota: newRota()}, nil
}

// Await waits for the answer under a key, which belongs to one submission. It
// returns
//
//   - a Delivery and nil: the step is done. Commit what you make of it, then
//     call [Delivery.Ack];
//   - a Delivery and a final error, a *[StepError] or a *[ProtocolError]: what
//     lies there ends the wait. Commit that too, then Ack;
//   - a *[ConsumedError] from a destructive box: final, and nothing to Ack;
//   - a *[NoResultError] at the ceiling;
//   - ctx's error, [ErrStopped], [ErrNotRunning]: nothing was consumed. Wait
//     again, with [AwaitOpts].Until if the ceiling is not to begin anew;
//   - [ErrWaiting], or an error that names what is wrong with the arguments.
//
// That nobody can look, or listen, ends no wait before its ceiling. At the
// ceiling, and when ctx or Run ends, one look more is made, bounded by
// Config.LastLook: what lay there by then is returned. Nothing is deleted.
func (b *Box) Await(ctx context.Context, key string, o AwaitOpts) (Delivery, error) {
	type end struct {
		d   Delivery
		err error
	}
	ended := make(chan end, 1)
	if err := b.start(ctx, key, o, func(d Delivery, err error) { ended <- end{d, err} }); err != nil {
		return Delivery{}, err
	}
	e := <-ended
	return e.d, e.err
}

// Watch is Await for callers who hold no goroutine meanwhile: end gets, once and
// in a goroutine of its own, what Await would have returned. An error of Watch
// itself says that there is no wait, and end is never called. It returns at
// once, unless Run is still to begin. Run returns after every end has.
func (b *Box) Watch(ctx context.Context, key string, o AwaitOpts, end func(Delivery, error)) error {
	return b.start(ctx, key, o, func(d Delivery, err error) { b.calls.Go(func() { end(d, err) }) })
}

// start begins a wait. tell is called once, by the goroutine that looks.
func (b *Box) start(ctx context.Context, key string, o AwaitOpts, tell func(Delivery, error)) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("mailbox: a key of %d bytes: want 1 to %d", len(key), maxKey)
	}
	now := time.Now()
	until, err := b.config.until(o, now)
	if err != nil {
		return err
	}
	w := &wait{ctx: ctx, key: key, ticket: o.Ticket, began: now, until: until, tell: tell}
	if err := b.enter(w); err != nil {
		return err
	}
	b.ring()
	return nil
}

// enter puts a wait on the rota of the Run that is under way, or about to be.
func (b *Box) enter(w *wait) error {
	patience := time.NewTimer(startGrace)
	defer patience.Stop()
	for {
		begun, err := b.tryEnter(w)
		if begun == nil {
			return err
		}
		select {
		case <-begun:
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-patience.C:
			return ErrNotRunning
		}
	}
}

// tryEnter returns what to wait for if no Run is under way.
func (b *Box) tryEnter(w *wait) (begun <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stats.Running {
		return b.begun, nil
	}
	if b.rota.keys[w.key] != nil {
		return nil, ErrWaiting
	}
	b.late.forget(w.key)
	b.rota.add(w)
	w.stop = context.AfterFunc(w.ctx, func() { b.hurry(w) })
	return nil, nil
}

// hurry makes the next look of a wait its last, because its context has ended.
func (b *Box) hurry(w *wait) {
	b.mu.Lock()
	b.rota.end(w, w.ctx.Err())
	b.mu.Unlock()
	b.ring()
}

func (b *Box) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// Run is the life of a box: it keeps the subscription, looks, and ends waits,
// until ctx ends. Then every wait that is left has a last look and ends, with
// its context's error or ErrStopped, and Run returns nil when that is done.
//
// It returns an error at once if the source must not be used. A second Run
// while one is under way is an error; later ones are not.
func (b *Box) Run(ctx context.Context) error {
	if !b.life.TryLock() {
		return errors.New("mailbox: Run is under way already")
	}
	defer b.life.Unlock()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	var refusal error
	var all sync.WaitGroup
	b.begin()
	all.Go(func() { b.listen(ctx) })
	all.Go(func() {
		if refusal = b.check(ctx); refusal != nil {
			refuse(refusal)
		}
	})
	b.work(ctx)
	b.windUp()
	refuse(nil)
	all.Wait()
	b.calls.Wait()
	return refusal
}

func (b *Box) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Running = true
	close(b.begun)
}

// check asks the source at the start, and then again and again: a refusal at
// the start is returned, a later one only shown.
func (b *Box) check(ctx context.Context) error {
	note, err := b.source.Check(ctx)
	b.note(note)
	if err != nil {
		return err
	}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if note, err = b.source.Check(ctx); err != nil {
			note = err.Error()
		}
		b.note(note)
	}
}
