package worker

import (
	"time"

	"github.com/settle-go/settle"
)

// Events are optional functions that are told what a worker does: logs, metrics
// and traces are listeners. They are called synchronously, from several
// goroutines, so they must be quick and safe for concurrent use.
type Events struct {
	// Started: a handler is about to run, once per job.
	Started func(settle.ClaimedJob)
	// Settled: a transition of this process was offered to the store and
	// answered; look at Applied, and at By for who made it.
	Settled func(Settled)
	// LeaseLost: the job was cancelled, ended or taken over while its handler
	// ran or before it started, or its lease could not be renewed.
	LeaseLost func(settle.ClaimedJob)
	// Abandoned: a handler ignores the end of its context and lost its slot;
	// total is how many such handlers run now.
	Abandoned func(job settle.ClaimedJob, total int)
	// StoreDown: a call of the store failed and is made again after next.
	StoreDown func(op string, err error, next time.Duration)
	// Claiming: the worker stopped to claim, or claims again; why is for people.
	Claiming func(stopped bool, why string)
	// Pruned: ended jobs were removed, or the store was looked after.
	Pruned func(settle.Pruned)
}

// Settled is one transition and what became of it.
type Settled struct {
	Job        settle.ID
	Kind       string
	Queue      string
	Tenant     string
	Attempt    int
	Transition settle.Transition
	Applied    settle.Applied
	Took       time.Duration // how long the handler ran; 0 = it did not
	By         string        // "holder", "sweep" or "answer"
	Wait       *settle.Wait  // what the job waited for, where a sweep ended that
}

// Who makes a transition.
const (
	byHolder = "holder"
	bySweep  = "sweep"
	// ByAnswer: an answer to a remote step.
	ByAnswer = "answer"
)

// join calls both functions of each pair, the first one's before the second's;
// every function of the result is set.
func join(a, b Events) Events {
	return Events{
		Started:   both(a.Started, b.Started),
		Settled:   both(a.Settled, b.Settled),
		LeaseLost: both(a.LeaseLost, b.LeaseLost),
		Pruned:    both(a.Pruned, b.Pruned),
		Abandoned: func(j settle.ClaimedJob, total int) {
			if a.Abandoned != nil {
				a.Abandoned(j, total)
			}
			if b.Abandoned != nil {
				b.Abandoned(j, total)
			}
		},
		StoreDown: func(op string, err error, next time.Duration) {
			if a.StoreDown != nil {
				a.StoreDown(op, err, next)
			}
			if b.StoreDown != nil {
				b.StoreDown(op, err, next)
			}
		},
		Claiming: func(stopped bool, why string) {
			if a.Claiming != nil {
				a.Claiming(stopped, why)
			}
			if b.Claiming != nil {
				b.Claiming(stopped, why)
			}
		},
	}
}

func both[T any](f, g func(T)) func(T) {
	switch {
	case f == nil && g == nil:
		return func(T) {}
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(v T) { f(v); g(v) }
}
