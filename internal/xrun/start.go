package xrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/xrun/runlock"
	"github.com/settle-go/settle/worker"
)

// Exit codes of a run.
const (
	ExitOK     = 0 // every item succeeded
	ExitFailed = 1 // interrupted, or something is wrong
	ExitDead   = 3 // every item has ended, some of them dead or cancelled
)

// start is one start of a run: from the lock to the closing table.
type start struct {
	*Plan
	store  settle.Store
	lock   *runlock.Lock
	runner *child.Runner
	gate   *gate
	worker *worker.Worker
	tally  *tally
	con    *console
	out    *output
	order  *order // nil without -k
	own    *own
	down   outage
	began  time.Time
	note   runNote

	slots   chan int // free places for commands
	mu      sync.Mutex
	running int           // commands that run
	stopped bool          // nothing more is started
	why     string        // for people
	stop    chan struct{} // closed then
	killed  atomic.Bool   // commands were killed by the second wish to stop
	dying   atomic.Int64  // items that this start judged dead

	cut   context.Context // ends when running commands must end
	cutBy context.CancelCauseFunc

	news   chan struct{} // something happened that the loop looks at
	broken chan error    // something is wrong with all items alike
}

// Start carries out one start of the run on the store and returns the exit
// code. An error, if any, is still to be shown; what else there is to say has
// been written.
func (p *Plan) Start(ctx context.Context, st settle.Store) (code int, err error) {
	lock, err := runlock.Take(p.lockPath())
	var busy *runlock.BusyError
	if errors.As(err, &busy) {
		return ExitFailed, fmt.Errorf("run %s is under way: %w; wait for it, or choose another name with --name", p.Name, busy)
	} else if err != nil {
		return ExitFailed, err
	}
	finished := false
	defer func() { err = errors.Join(err, lock.Release(finished)) }()
	s := p.newStart(st, lock)
	defer s.cutBy(nil)
	if s.own, err = p.ownFiles(true); err != nil {
		return ExitFailed, err
	}
	if err := s.open(ctx); err != nil {
		return ExitFailed, err
	}
	end, err := s.carryOut(ctx)
	if err == nil {
		err = s.own.replaced()
	}
	if err != nil {
		return ExitFailed, err
	}
	code, err = s.close(context.WithoutCancel(ctx), end)
	finished = end.complete
	return code, err
}

func (p *Plan) newStart(st settle.Store, lock *runlock.Lock) *start {
	s := &start{Plan: p, store: st, lock: lock, began: time.Now(),
		con: &console{err: p.Err, live: p.Live}, slots: make(chan int, p.Jobs), stop: make(chan struct{}),
		news: make(chan struct{}, 1), broken: make(chan error, 1)}
	s.out = &output{w: p.Out, con: s.con, tag: p.Tag}
	s.cut, s.cutBy = context.WithCancelCause(context.Background())
	for i := range p.Jobs {
		s.slots <- i
	}
	if p.Ordered {
		s.order = newOrder(max(min(p.window, openFiles()-reserve-filesPerJob*p.Jobs), 1))
	}
	return s
}

// carryOut runs the worker and the feeder until the run ends or is stopped.
func (s *start) carryOut(ctx context.Context) (ending, error) {
	runner, err := child.New(s.lock.File())
	if err != nil {
		return ending{}, err
	}
	s.runner = runner
	if f, err := s.spools(); err != nil { // rather now than for every item
		return ending{}, errors.Join(err, runner.Close())
	} else {
		f.Close()
	}
	s.newWorker()
	end := s.loop(ctx)
	s.con.done()
	if end.abandoned { // the commands are dead; the process ends, and with it the rest
		return end, nil
	}
	return end, runner.Close()
}

// How many finished items may wait for their turn with -k: their output is in
// memory when it is short, else in an open file each.
const (
	window      = 10_000
	filesPerJob = 7   // open files of a command that runs: two pipes, two spools, the process
	reserve     = 128 // open files that are needed otherwise
)

func (s *start) newWorker() {
	slots := s.Jobs + maxAhead
	if s.order != nil {
		slots += s.order.window
	}
	s.gate = newGate(s.store, s.Jobs)
	s.worker = worker.New(s.gate, worker.Config{Queue: s.queue(), Slots: slots, Drain: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
		Events: worker.Events{Settled: s.settled, LeaseLost: s.lost, StoreDown: s.storeDown}})
	worker.HandleRaw(s.worker, kind, s.work)
}

// settled hears of every transition that this process makes, sweeps of other
// queues among them.
func (s *start) settled(e worker.Settled) {
	if e.Queue != s.queue() {
		return
	}
	s.gate.done(e.Job)
	if !e.Transition.To.Ended() || e.Applied != settle.Done && e.Applied != settle.Already {
		return
	}
	s.tally.ended(e.Job, e.Transition.To)
	if s.order != nil {
		s.order.end(e.Job)
	}
	s.wake()
}

func (s *start) lost(j settle.ClaimedJob) { s.gate.done(j.ID) }

func (s *start) storeDown(_ string, err error, next time.Duration) {
	var refused *settle.RefusedError
	if errors.As(err, &refused) { // it is the same when asked again
		s.fail(err)
		return
	}
	if more, say := s.down.say(time.Now()); say {
		s.con.say("the store failed%s: %v; trying again in %s", more, err, shortSpan(next))
	}
}

// outage lets one line in ten seconds pass.
type outage struct {
	mu   sync.Mutex
	said time.Time
	more int // that were not said since
}

const outageEvery = 10 * time.Second

func (o *outage) say(now time.Time) (more string, say bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.said.IsZero() && now.Sub(o.said) < outageEvery {
		o.more++
		return "", false
	}
	if o.more > 0 {
		more = fmt.Sprintf(" (and %s times before that)", humanize.Comma(int64(o.more)))
	}
	o.said, o.more = now, 0
	return more, true
}

// wake makes the loop look.
func (s *start) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// fail says that something is wrong with all items alike.
func (s *start) fail(err error) {
	select {
	case s.broken <- err:
	default:
	}
}

// ---- places for commands

// slot waits for a place to run a command in; false = nothing more is started.
func (s *start) slot(ctx context.Context) (int, bool) {
	select {
	case n := <-s.slots:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stopped || ctx.Err() != nil {
			s.slots <- n
			return 0, false
		}
		s.running++
		return n, true
	case <-s.stop:
	case <-ctx.Done():
	}
	return 0, false
}

func (s *start) freeSlot(n int) {
	s.mu.Lock()
	s.running--
	last := s.stopped && s.running == 0
	s.mu.Unlock()
	s.slots <- n
	if last {
		s.wake()
	}
}

// halt lets nothing more be claimed or started.
func (s *start) halt(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped, s.why = true, why
	close(s.stop)
	s.gate.close()
	s.worker.Stop(why)
}

// judgedDead counts an item that is about to be recorded as dead, so that not
// one command too many is started.
func (s *start) judgedDead() {
	if n := s.dying.Add(1); !s.MaxDead.Percent && s.MaxDead.Reached(n, n) {
		s.halt(s.tooMany())
		s.wake()
	}
}

func (s *start) tooMany() string {
	return fmt.Sprintf("more items died than --max-dead %s allows", s.MaxDead)
}

// idle reports whether no command runs and none will be started.
func (s *start) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped && s.running == 0
}
