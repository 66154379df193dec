package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Breaker guards one node. It is safe for concurrent use, starts no goroutine
// and needs no closing. Make one by [New]; it must not be copied.
type Breaker struct {
	config Config // ready
	id     string // of this breaker among those of all processes: a ticket begins with it

	mu sync.Mutex
	m  machine
}

// New returns a closed breaker.
func New(c Config) *Breaker {
	c = c.ready()
	return newBreaker(c, c.Now())
}

func newBreaker(ready Config, now time.Time) *Breaker {
	return &Breaker{config: ready, id: strconv.FormatUint(rand.Uint64(), 36) + ".", m: newMachine(ready, now)}
}

// Admit asks to make a call now. If it may be made, settle the token once, and
// defer a neutral settling at once, for the ways out that nobody thought of:
//
//	t, err := b.Admit()
//	if err != nil {
//		return err
//	}
//	defer t.Settle(breaker.Neutral)
//
// The error is an [OpenError]: the call must not be made.
func (b *Breaker) Admit() (*Token, error) {
	now := b.config.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.m.admit(now)
	if !ok {
		next := b.m.next(now)
		return nil, &OpenError{Node: b.config.Node, State: b.m.state(now), Next: next, Wait: next.Sub(now)}
	}
	return &Token{b: b, pass: p}, nil
}

// Do calls fn if the breaker admits it, and returns its error. A refusal is an
// [OpenError]; a context that has ended is its error, and takes nothing.
//
// What fn has not settled itself is settled by its error: nil is a success. An
// error is neutral when ctx was cancelled, or when it is context.Canceled or the
// refusal of another breaker; a deadline that passed is a failure, like any
// other error. A panic and a Goexit go on, and are neutral.
func (b *Breaker) Do(ctx context.Context, fn func(context.Context, *Token) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := b.Admit()
	if err != nil {
		return err
	}
	return t.run(ctx, fn)
}

// Observe reports what the delivery said that answers the call of a ticket, once
// for each delivery. It is ignored, and false returned, if the breaker has
// changed state since that call was admitted.
//
// Of a ticket that another process or an earlier life gave out, a failure is
// one failure if the breaker is closed; everything else is ignored. Silence, no
// delivery within the time allowed, is a failure, unless whoever listens was
// deaf: then report nothing.
func (b *Breaker) Observe(t Ticket, o Outcome) (heard bool) {
	return b.take(o, func(now time.Time, luck float64) bool {
		generation, ours := strings.CutPrefix(string(t), b.id)
		if !ours {
			return b.m.foreign(now, o, luck)
		}
		n, err := strconv.ParseUint(generation, 10, 64)
		return err == nil && b.m.settle(now, pass{generation: n}, o, luck)
	})
}

// State is the state now. Asking takes nothing and changes nothing.
func (b *Breaker) State() State { return b.Status().State }

// Status is what the breaker shows. Asking takes nothing and changes nothing.
func (b *Breaker) Status() Status { return b.statusAt(b.config.Now()) }

func (b *Breaker) statusAt(now time.Time) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.m.status(now)
}

// take lets deed change the machine under the lock, and tells of it after.
func (b *Breaker) take(o Outcome, deed func(now time.Time, luck float64) bool) (heard bool) {
	now, luck := b.config.Now(), 0.0
	if o == Failure {
		luck = b.config.Rand()
	}
	was, is, heard := b.locked(now, func() bool { return deed(now, luck) })
	if is.Generation != was.Generation && b.config.OnChange != nil {
		b.config.OnChange(was.State, is)
	}
	return heard
}

func (b *Breaker) locked(now time.Time, deed func() bool) (was, is Status, heard bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was = b.m.status(now)
	heard = deed()
	return was, b.m.status(now), heard
}

// Token is the right to make one call. It is safe for concurrent use.
type Token struct {
	b       *Breaker
	pass    pass
	settled atomic.Bool
}

// Settle says what the call came to. Only the first time counts. It reports
// false when the outcome was ignored: the token had been settled, or the breaker
// has changed state since the call was admitted.
func (t *Token) Settle(o Outcome) (heard bool) {
	if t.settled.Swap(true) {
		return false
	}
	return t.b.take(o, func(now time.Time, luck float64) bool { return t.b.m.settle(now, t.pass, o, luck) })
}

// Ticket is what to keep when an answer to the call will be delivered later:
// see [Breaker.Observe].
func (t *Token) Ticket() Ticket {
	return Ticket(t.b.id + strconv.FormatUint(t.pass.generation, 10))
}

// Node is the name of the node to call: Config.Node, or the name in a Set.
func (t *Token) Node() string { return t.b.config.Node }

// Probe reports whether the call decides over a half-open breaker. Whoever has
// a choice makes it a cheap one.
func (t *Token) Probe() bool { return t.pass.probe != 0 }

// run carries out one admitted call.
func (t *Token) run(ctx context.Context, fn func(context.Context, *Token) error) error {
	defer t.Settle(Neutral)
	err := fn(ctx, t)
	t.Settle(judge(ctx, err))
	return err
}

func judge(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Success
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, context.Canceled), errors.Is(err, ErrOpen):
		return Neutral
	}
	return Failure
}
