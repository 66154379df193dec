// Package worker runs the jobs of one queue: it claims, runs, renews, settles
// and sweeps.
//
//	w := worker.New(st, worker.Config{Slots: 50})
//	worker.Handle(w, Analyze, func(ctx context.Context, j *worker.Job[AnalyzeIn]) (AnalyzeOut, error) { … })
//	err := w.Run(ctx) // blocks; drains when ctx ends
//
// # A job's way
//
//	claimer  ──claim──▶  ledger, buffer  ──▶  slot: handler  ──▶  judge, Decide  ──▶  settler  ──Apply──▶  store
//	   ▲ nudge, due time,                      │                                        │
//	   │ poll, freed slot                      └── context: timeout, lease lost, shutdown
//	   └──────────────── room: free slots, outcomes that are not yet stored ◀──────────┘
//
// claim.go and take.go say how much is claimed, when, and of which lanes;
// crew.go and attempt.go run a handler in a slot; judge.go makes an event of
// what it answered; settle.go brings what was decided into the store. Whatever
// stands in the ledger is renewed (renew.go) from the claim until its outcome
// is stored. sweep.go ends what others left behind; suspect.go lets a job whose
// next crash would end it run alone; life.go starts all this and drains it.
//
// # What a handler can rely on
//
// The attempt was recorded before the handler is called. Work is at least once:
// after a crash, or a lease that was lost, the job runs again, so effects must
// be idempotent. The context ends at the policy's Timeout, at the job's
// deadline, when the lease is lost and, after the grace time, at shutdown;
// context.Cause tells which. A handler that ignores that for a second loses its
// slot, and its result is dropped. Panics and runtime.Goexit are caught.
package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
)

// Causes of the end of a handler's context, as context.Cause returns them.
var (
	// ErrLeaseLost: the worker no longer holds the job. It was cancelled, it
	// expired, its lease was ended, or the store could not be reached in time
	// to renew it. Whatever the handler returns changes nothing any more.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrShutdown: the worker stops and its grace time is over. A handler that
	// returns its context's error is put off without being charged.
	ErrShutdown = errors.New("the worker stops")
	// ErrTimedOut: the policy's Timeout has passed.
	ErrTimedOut = errors.New("the attempt timed out")
	// ErrExpired: the job's deadline has passed.
	ErrExpired = errors.New("the job's deadline passed")
)

// Worker claims, runs, renews, settles and sweeps the jobs of one queue. Its
// methods may be called from any goroutine.
type Worker struct {
	store   settle.Store
	config  Config
	log     Events
	id      int64
	faults  []error
	singles map[string]handler
	batches map[string]batchKind
	besides []func(context.Context)
	looks   []func(context.Context, []settle.Job)

	counts  counts
	now     atomic.Pointer[life] // the latest Run
	running atomic.Bool
	stopped context.Context // ends at Stop
	stop    context.CancelCauseFunc
}

// New returns a worker on the store. It starts nothing: register handlers, then
// call Run, which also reports the faults of c.
func New(s settle.Store, c Config) *Worker {
	w := &Worker{store: s, id: rand.Int64N(1<<62) + 1,
		singles: map[string]handler{}, batches: map[string]batchKind{}}
	var err error
	w.config, err = c.withDefaults()
	w.fault(err)
	w.log = logEvents(w.config.Logger)
	w.stopped, w.stop = context.WithCancelCause(context.Background())
	return w
}

// ID is the number by which the store knows the worker; never 0.
func (w *Worker) ID() int64 { return w.id }

// fault notes a mistake of the caller, for Run to report.
func (w *Worker) fault(err error) {
	if err != nil {
		w.faults = append(w.faults, err)
	}
}

// register notes a kind and the fault of a second handler for it.
func (w *Worker) register(kind string) {
	_, single := w.singles[kind]
	_, batch := w.batches[kind]
	if single || batch {
		w.fault(fmt.Errorf("worker: kind %q has two handlers", kind))
	}
	if kind == "" {
		w.fault(errors.New("worker: a kind has no name"))
	}
}

// Run is the worker's whole life: it claims and runs jobs, renews their leases,
// stores their outcomes and sweeps, until ctx ends (or Stop, Limit, UntilIdle).
// Then it drains: it claims no more, hands back what has not started, lets
// running handlers go on for Config.Drain while their leases are renewed, then
// ends their contexts and hands the rest back. If the store answers, the worker
// owns nothing in it when Run returns.
//
// It returns nil after an orderly end, all faults of the configuration before
// anything is started, or an error when the store did not take everything back
// in time, or UntilIdle gave up on it: those jobs go on when their leases are
// over. Handlers that ignore the end of their context may still be running. A
// second Run while one is under way is an error; later ones are not.
func (w *Worker) Run(ctx context.Context) error {
	if err := errors.Join(w.faults...); err != nil {
		return err
	}
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("worker: Run is under way already")
	}
	defer w.running.Store(false)
	l := newLife(ctx, w)
	w.now.Store(l)
	stop := func() { l.endHalt(context.Cause(w.stopped)) }
	if w.stopped.Err() != nil {
		stop()
	}
	defer context.AfterFunc(w.stopped, stop)()
	return l.run(ctx)
}

// Stop ends claiming for good: what has not started is handed back, running
// handlers may end in their own time, then Run returns nil. why is told to
// Events.Claiming. The first Stop counts; it may come before Run.
func (w *Worker) Stop(why string) { w.stop(errors.New(why)) }

// Stats returns the worker's numbers as they are now.
func (w *Worker) Stats() Stats {
	n := &w.counts
	s := Stats{Started: n.started.Load(), AbandonedEver: n.abandoned.Load(), Late: n.late.Load(),
		LeaseLost: n.leaseLost.Load(), Stale: n.stale.Load(), Skew: time.Duration(n.skew.Load())}
	if l := w.now.Load(); l != nil {
		for _, c := range l.claimers {
			running := int(c.crew.running.Load())
			s.Running += running
			s.Buffered += max(int(c.crew.busy.Load())-running, 0)
			s.Abandoned += int(c.crew.abandoned.Load())
		}
		s.Unsettled = int(l.settler.open.Load())
	}
	return s
}

// Stats are plain numbers about a worker. Those named "now" go up and down, the
// others count since New.
type Stats struct {
	Running   int // handler calls that run, now (a batch is one)
	Buffered  int // handler calls that wait for a slot, now
	Unsettled int // outcomes that the store has not taken yet, now
	Abandoned int // handlers that ignore the end of their context, now

	Started       int64         // attempts whose handler was started
	AbandonedEver int64         // handlers that ever lost their slot
	Late          int64         // results of handlers that had lost their slot or lease, dropped
	LeaseLost     int64         // attempts that were lost before they were settled
	Stale         int64         // outcomes that the store refused: another was faster
	Skew          time.Duration // the store's clock minus this process's, as last seen
}
