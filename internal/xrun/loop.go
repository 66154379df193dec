package xrun

import (
	"context"
	"errors"
	"time"

	"github.com/settle-go/settle"
)

// Pauses of the loop.
const (
	tickEvery    = 200 * time.Millisecond // progress on a terminal, and the rate
	lookEvery    = time.Second            // the store is asked what this process does not hear of
	sayEvery     = 30 * time.Second       // progress where it is a line of its own
	killPatience = 2 * time.Second        // for the rest, after the commands were killed
)

// ending is how the loop ended.
type ending struct {
	complete  bool   // every item has ended
	why       string // else: why not
	abandoned bool   // the worker was not waited for
	input     error  // what was wrong with the input, if anything
	err       error  // what was wrong with all items alike
}

// looper is the one place that decides when a start ends.
type looper struct {
	s       *start
	end     ending
	reading bool
	input   chan error // the feeder's end
	work    chan error // the worker's end
	stopIn  context.CancelFunc
	stopOut context.CancelFunc
	wishes  int
	grace   *time.Timer // until running commands are cut

	meter    meter
	lastLook time.Time
	lastSaid time.Time
	age      time.Duration
}

// loop starts the feeder and the worker, watches both and returns when the
// worker has ended.
func (s *start) loop(ctx context.Context) ending {
	in, stopIn := context.WithCancel(ctx)
	out, stopOut := context.WithCancel(context.WithoutCancel(ctx))
	defer stopIn()
	defer stopOut()
	l := &looper{s: s, reading: true, input: make(chan error, 1), work: make(chan error, 1),
		stopIn: stopIn, stopOut: stopOut, grace: time.NewTimer(time.Hour), lastSaid: s.began}
	l.grace.Stop()
	go func() { l.input <- s.feed(in) }()
	go func() { l.work <- s.worker.Run(out) }()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	defer l.grace.Stop()
	done := ctx.Done()
	for {
		select {
		case err := <-l.work:
			l.ended(err)
			l.endInput()
			return l.end
		case err := <-l.input:
			l.inputEnded(err)
		case err := <-s.broken:
			l.broken(err)
		case <-s.Stop:
			if l.wish() {
				return l.kill()
			}
		case <-done:
			done = nil
			l.wish()
		case <-l.grace.C:
			s.cutBy(errors.New("the grace time is over"))
		case <-s.news:
		case now := <-tick.C:
			l.show(ctx, now)
		}
		l.look(ctx)
	}
}

// ended notes the end of the worker.
func (l *looper) ended(err error) {
	if err != nil && l.end.err == nil && !errors.Is(err, context.Canceled) {
		l.end.err = err
	}
	if l.end.err != nil {
		l.end.complete = false
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.end.why = l.s.why
}

func (l *looper) inputEnded(err error) {
	l.reading = false
	stopping := l.stopping()
	if !stopping && l.s.order != nil {
		l.s.order.inputEnded()
	}
	switch {
	case err == nil || stopping:
	case usage(err):
		l.broken(err)
	default:
		l.end.input = err
		l.s.con.say("%v; what was read before is still run", err)
	}
}

// endInput ends the feeder, so that nothing is stored any more. Only the read
// that it waits for may go on; it touches nothing.
func (l *looper) endInput() {
	l.stopIn()
	if !l.reading {
		return
	}
	select {
	case <-l.input:
	case <-time.After(killPatience):
		l.end.abandoned = true
	}
}

func (l *looper) stopping() bool {
	select {
	case <-l.s.stop:
		return true
	default:
		return false
	}
}

// halt stops reading, claiming and starting; what runs goes on.
func (l *looper) halt(why string) {
	l.stopIn()
	l.s.halt(why) // the first reason counts
}

// broken stops at once: nothing can succeed any more.
func (l *looper) broken(err error) {
	if l.end.err == nil {
		l.end.err = err
	}
	l.halt(err.Error())
	l.s.cutBy(err)
}

// wish is a wish to stop. The first lets what runs go on for the grace time;
// the second one, for which it returns true, does not.
func (l *looper) wish() bool {
	l.wishes++
	if l.wishes > 1 {
		return true
	}
	l.halt("interrupted")
	l.s.mu.Lock()
	n := l.s.running
	l.s.mu.Unlock()
	if n > 0 {
		l.s.con.say("stopping: %s still %s, for up to %s; again (Ctrl-C) kills %s", items(int64(n)), runs(n), shortSpan(l.s.Grace), them(n))
	}
	l.grace.Reset(l.s.Grace)
	return false
}

// kill kills the commands, and waits for the rest only shortly.
func (l *looper) kill() ending {
	l.s.killed.Store(true)
	l.s.runner.Kill()
	l.s.cutBy(errors.New("killed"))
	l.stopOut()
	select {
	case err := <-l.work:
		l.ended(err)
	case <-time.After(killPatience):
		l.ended(nil)
		l.end.abandoned = true
	}
	l.endInput()
	return l.end
}

// look checks whether the start has come to its end.
func (l *looper) look(ctx context.Context) {
	s := l.s
	if l.stopping() {
		l.stopIn()
		if s.idle() {
			s.cutBy(errors.New("nothing runs any more")) // for those that wait for their turn
			l.stopOut()
		}
		return
	}
	c := s.tally.now()
	if dead := c.Now[settle.Dead]; s.MaxDead.Reached(dead, sum(c.Now)) {
		l.halt(s.tooMany())
		return
	}
	due := time.Since(l.lastLook) >= lookEvery
	if due {
		l.lastLook = time.Now()
		if err := s.own.replaced(); err != nil {
			l.broken(err)
			return
		}
		l.unstick(ctx)
	}
	if l.reading || c.Open > 0 && !due {
		return
	}
	live, err := anyLive(ctx, s.store, s.queue())
	if err != nil || live {
		return // a store that is down is the worker's to tell
	}
	l.end.complete = l.end.input == nil
	l.stopIn()
	s.halt("every item has ended")
	l.stopOut()
}

// unstick lets the order go on when its head was ended by somebody else, or
// when items must run alone: then those that wait for their turn have to run
// again later.
func (l *looper) unstick(ctx context.Context) {
	if l.s.order == nil {
		return
	}
	id, stuck := l.s.order.stuck()
	if !stuck {
		return
	}
	j, err := l.s.store.Job(ctx, id)
	switch {
	case errors.Is(err, settle.ErrNotFound) || err == nil && j.State.Ended():
		l.s.order.end(id)
	case l.s.gate.suspects():
		l.s.order.evict()
	}
}

// show writes the progress.
func (l *looper) show(ctx context.Context, now time.Time) {
	s := l.s
	c := s.tally.now()
	l.meter.add(now.Sub(s.began), sum(c.Now))
	if !s.Live && now.Sub(l.lastSaid) < sayEvery {
		return
	}
	if now.Sub(l.lastSaid) >= time.Second {
		l.lastSaid = now
		l.age = oldest(ctx, s.store, s.queue())
	}
	p := progress{counts: c, reading: l.reading, rate: l.meter.rate(), age: l.age}
	if l.stopping() {
		p.state = "stopping"
	}
	s.con.progress(p.String())
}

// oldest is the age of the oldest unfinished item.
func oldest(ctx context.Context, st settle.Store, queue string) (age time.Duration) {
	ages, err := st.Ages(ctx)
	if err != nil {
		return 0
	}
	for _, a := range ages {
		if a.Queue == queue {
			age = max(age, a.Unfinished)
		}
	}
	return age
}
