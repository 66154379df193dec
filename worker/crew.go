package worker

import (
	"context"
	"sync"
	"sync/atomic"
)

// crew runs handlers in a bounded number of slots. Each slot is a goroutine
// that goes on to the next attempt by itself; they are started when they are
// first needed.
type crew struct {
	life  *life
	slots int
	todo  chan *attempt // closed when nothing more will come
	wake  chan struct{} // tells the claimer that it may look again

	busy      atomic.Int64 // attempts that are buffered or run
	running   atomic.Int64
	abandoned atomic.Int64 // handlers that run although they lost their slot
	finished  atomic.Int64 // attempts so far: the claimer's rate
	wakeAt    atomic.Int64 // busy at which a freed slot wakes the claimer; -1 = never

	mu    sync.Mutex
	hands int // goroutines that serve todo
}

func newCrew(l *life, slots int) *crew {
	c := &crew{life: l, slots: slots, todo: make(chan *attempt, slots+maxAhead), wake: make(chan struct{}, 1)}
	c.wakeAt.Store(-1)
	return c
}

// take puts claimed attempts into the buffer. Only the claimers call it, and
// never more attempts than there is room for.
func (c *crew) take(as []*attempt) {
	c.busy.Add(int64(len(as)))
	for _, a := range as {
		c.todo <- a
	}
	c.hire()
}

// hire starts the slots that are missing.
func (c *crew) hire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for want := min(int(c.busy.Load()), c.slots); c.hands < want; c.hands++ {
		c.life.hands.Add(1)
		go c.slot()
	}
}

// gone notes that the goroutine of a slot has ended, or is lost to a handler.
func (c *crew) gone() {
	c.mu.Lock()
	c.hands--
	c.mu.Unlock()
	c.life.hands.Done()
}

func (c *crew) slot() {
	var at *attempt
	defer func() {
		if at != nil { // runtime.Goexit in the handler: the one way past work
			c.goexit(at)
		}
	}()
	for at = range c.todo {
		if !c.work(at) {
			at = nil
			return // another goroutine has taken this slot over
		}
	}
	at = nil
	c.gone()
}

// work takes one attempt from the buffer to its outcome. It reports false if
// the attempt was abandoned meanwhile.
func (c *crew) work(a *attempt) bool {
	if c.life.draining.Load() {
		c.handBack(a)
		return true
	}
	ctx, end, ok := a.begin(c.life.work)
	if !ok {
		c.drop(a)
		return true
	}
	c.running.Add(1)
	c.life.started(a)
	call(ctx, a)
	cause := context.Cause(ctx)
	end()
	if !a.conclude(running) {
		c.late()
		return false
	}
	c.leave(true)
	if cause == ErrLeaseLost {
		c.life.counts.late.Add(1)
	}
	c.life.settler.offer(a, func(i int) verdict { return verdict{judge(a.answers[i], cause), a.answers[i].seal} })
	return true
}

// call runs the handler; a panic is its answer.
func call(ctx context.Context, a *attempt) {
	defer func() {
		if p := recover(); p != nil {
			a.fail(panicked(p))
		}
	}()
	a.run(ctx, a)
}

// fail gives all jobs of the attempt the same answer.
func (a *attempt) fail(err error) {
	for i := range a.answers {
		a.answers[i] = answer{err: err}
	}
}

// goexit settles an attempt whose handler ended the slot's goroutine.
func (c *crew) goexit(a *attempt) {
	if !a.conclude(running) {
		c.late()
		return
	}
	c.leave(true)
	a.cancel(nil)
	c.life.settler.offer(a, func(int) verdict { return verdict{event: judge(answer{err: errGoexit}, nil)} })
	c.gone()
	c.hire()
}

// abandon takes the slot from a handler that ignores the end of its context.
func (c *crew) abandon(a *attempt, cause error) {
	if !a.conclude(running) {
		return // it returned in time
	}
	total := c.abandoned.Add(1)
	c.leave(true)
	c.life.abandoned(a, int(total))
	c.life.settler.offer(a, func(int) verdict { return verdict{event: ended(cause, nil, 0)} })
	c.gone()
	c.hire()
}

// late is the return of an abandoned handler: its result is dropped.
func (c *crew) late() {
	c.life.counts.late.Add(1)
	c.abandoned.Add(-1)
	c.poke()
}

// handBackAll empties the buffer.
func (c *crew) handBackAll() {
	for {
		select {
		case a := <-c.todo:
			c.handBack(a)
		default:
			return
		}
	}
}

// handBack gives an attempt that has not started back to the queue.
func (c *crew) handBack(a *attempt) {
	if !a.conclude(buffered) {
		return
	}
	c.leave(false)
	c.life.settler.offer(a, func(int) verdict { return verdict{event: ended(ErrShutdown, nil, 0)} })
}

// drop lets go of an attempt that was lost before it started.
func (c *crew) drop(a *attempt) {
	if !a.conclude(buffered) {
		return
	}
	c.leave(false)
	c.life.release(a.all()...)
}

// leave frees the place of an attempt and wakes the claimer if it waits for
// that.
func (c *crew) leave(ran bool) {
	if ran {
		c.running.Add(-1)
	}
	c.finished.Add(1)
	if c.busy.Add(-1) <= c.wakeAt.Load() {
		c.poke()
	}
}

// poke wakes the claimer; it never blocks.
func (c *crew) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
