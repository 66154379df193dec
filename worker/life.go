package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/turn"
)

// life is one Run of a worker.
type life struct {
	Config
	id     int64
	store  settle.Store
	events Events // logs and the user's; every function is set
	counts *counts
	looks  []func(context.Context, []settle.Job) // before waits are ended
	start  time.Time

	besides  []func(context.Context)
	claimers []*claimer
	ledger   ledger
	settler  *settler
	sweeper  *sweeper
	solitude solitude
	quota    quota
	outage   outage

	work      context.Context // parent of the handlers' contexts
	endWork   context.CancelCauseFunc
	keep      context.Context // of all that goes on until the last job is settled
	endKeep   context.CancelFunc
	claims    context.Context // of all that brings new work
	endClaims context.CancelCauseFunc
	halt      context.Context // ends with Run's context, or at Stop: hand back what has not started
	endHalt   context.CancelCauseFunc

	hands    sync.WaitGroup // slots whose handler has not been abandoned
	loops    sync.WaitGroup
	draining atomic.Bool  // nothing new is started
	crowded  atomic.Bool  // a claimer waits for unsettled outcomes to become fewer
	epoch    atomic.Int64 // claims that brought something
}

// Why claiming ends by itself.
var (
	errLimit = errors.New("the limit of attempts is reached")
	errIdle  = errors.New("idle")
)

// counts are a worker's numbers since New.
type counts struct {
	started, abandoned, late, leaseLost, stale, skew atomic.Int64
}

func newLife(ctx context.Context, w *Worker) *life {
	l := &life{Config: w.config, id: w.id, store: w.store, counts: &w.counts, looks: w.looks, besides: w.besides, start: time.Now()}
	l.events = join(w.log, w.config.Events)
	l.ledger = ledger{held: map[settle.ID]holding{}, onQuiet: l.onQuiet}
	l.settler = newSettler(l)
	l.sweeper = newSweeper(l)
	l.quota = quota{bounded: l.Limit > 0, left: l.Limit, onSpent: func() { l.endClaims(errLimit) }}
	l.halt, l.endHalt = context.WithCancelCause(ctx)
	l.claims, l.endClaims = context.WithCancelCause(l.halt)
	l.work, l.endWork = context.WithCancelCause(context.WithoutCancel(ctx))
	l.keep, l.endKeep = context.WithCancel(context.WithoutCancel(ctx))
	if len(w.singles) > 0 {
		l.addClaimer(slices.Sorted(maps.Keys(w.singles)), l.Slots, func(kind string) handler { return w.singles[kind] }, nil)
	}
	for kind, b := range w.batches {
		o := b.opts.withDefaults(l.Slots)
		l.addClaimer([]string{kind}, o.Slots, func(string) handler { return b.run }, &o)
	}
	return l
}

func (l *life) addClaimer(kinds []string, slots int, runs func(string) handler, batch *BatchOpts) {
	l.claimers = append(l.claimers, &claimer{life: l, crew: newCrew(l, slots), kinds: kinds, runs: runs, batch: batch,
		ring: turn.New[settle.Lane](maxLanes), at: map[settle.Lane]int{}})
}

// now is the monotonic time of this life.
func (l *life) now() time.Duration { return time.Since(l.start) }

// run starts all loops, waits for the end of claiming, and drains.
func (l *life) run(ctx context.Context) error {
	claims := l.claims
	for _, c := range l.claimers {
		l.loops.Go(func() { c.loop(claims) })
	}
	l.loops.Go(func() { l.every(claims, "listen", l.Poll, l.listen) })
	l.loops.Go(func() { l.settler.loop(l.keep) })
	l.loops.Go(func() { l.renewLoop(l.keep) })
	l.loops.Go(func() { l.guardLoop(l.keep) })
	l.loops.Go(func() { l.watchLoop(l.keep) })
	l.loops.Go(func() { l.every(l.keep, "sweep", l.Sweep, l.sweeper.step) })
	l.loops.Go(func() { l.every(l.keep, "prune", prunePause, l.sweeper.prune) })
	for _, f := range l.besides {
		l.loops.Go(func() { f(l.keep) })
	}
	<-claims.Done()
	l.events.Claiming(true, context.Cause(claims).Error())
	l.ledger.waitQuiet(l.halt) // at the limit, what is buffered is still run
	return l.drain(ctx)
}

// listen hears the store's nudges until ctx ends.
func (l *life) listen(ctx context.Context) (more bool, err error) {
	return false, l.store.Listen(ctx, l.Queue, func(lane settle.Lane) {
		for _, c := range l.claimers {
			c.nudge(lane)
		}
	})
}

// Why a worker that goes on does not claim.
const (
	whyUnsettled = "outcomes cannot be stored"
	whyAbandoned = "more handlers ignore the end of their context than there are slots"
)

// obstacle says why a crew's claimer must not claim now; "" = it may.
func (l *life) obstacle(c *crew) string {
	switch {
	case l.settler.down.Load():
		return whyUnsettled
	case c.abandoned.Load() > int64(c.slots):
		return whyAbandoned
	}
	return ""
}

// room is how many jobs the settler has room for.
func (l *life) room() int {
	n := l.settler.room()
	if n == 0 {
		l.crowded.Store(true)
		n = l.settler.room() // it may have been emptied just before
	}
	return n
}

func (l *life) pokeAll() {
	for _, c := range l.claimers {
		c.crew.poke()
	}
}

// onQuiet is called when the last job has been released.
func (l *life) onQuiet() {
	if l.UntilIdle {
		l.pokeAll() // an end may have brought a new job: look once more
	}
}

// voteIdle ends a life that is to end when idle, once every claimer has found
// nothing while nothing was held, no lease is about to be ended, and old rows
// were removed: a worker that only ever lives for seconds does its upkeep too.
func (l *life) voteIdle() {
	if !l.UntilIdle || l.sweeper.pending.Load() || !l.sweeper.pruned.Load() || l.ledger.count() > 0 {
		return
	}
	epoch := l.epoch.Load() + 1
	for _, c := range l.claimers {
		if c.seen.Load() != epoch {
			return
		}
	}
	l.endClaims(errIdle)
}

// release lets settled jobs go.
func (l *life) release(hs ...holding) {
	for _, a := range l.ledger.release(hs...) {
		if a.then != nil {
			a.then()
		}
	}
}

// drain brings a life to its end: what has not started is handed back at once,
// what runs may go on for the grace time and is then handed back too.
func (l *life) drain(ctx context.Context) error {
	l.draining.Store(true)
	for _, c := range l.claimers {
		c.crew.handBackAll()
	}
	grace, cancel := afterEnd(ctx, l.Drain)
	defer cancel()
	last := abandonAfter + settleGrace
	if l.outage.why() != nil { // nothing of what runs can be stored
		cancel()
		last = abandonAfter
	}
	if l.ledger.waitQuiet(grace) != nil {
		l.endWork(ErrShutdown)
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
		defer cancel()
		l.ledger.waitQuiet(bound)
	}
	l.endWork(ErrShutdown)
	l.endKeep()
	l.loops.Wait()
	for _, c := range l.claimers {
		close(c.crew.todo)
	}
	l.hands.Wait()
	l.endHalt(nil)
	n := l.ledger.count()
	switch why := l.outage.why(); {
	case why != nil && n > 0:
		return fmt.Errorf("gave up with %d jobs held, which go on when their leases are over: %w", n, why)
	case why != nil:
		return fmt.Errorf("gave up: %w", why)
	case n > 0:
		return fmt.Errorf("worker: the store did not take back %d jobs in time: they go on when their leases are over", n)
	}
	return nil
}

// settleGrace is how long the store may take for the last outcomes.
const settleGrace = 5 * time.Second

// afterEnd returns a context that ends d after ctx has ended.
func afterEnd(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	grace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return grace, func() { stop(); cancel() }
}
