package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// What remote steps need of a worker: tickets that are recorded while a handler
// runs, a last look before a wait is ended, and loops that live as long as it.

// Attempts reads the recorded attempts of the job, oldest first; the one that
// runs is not among them. The first attempt reads nothing.
func (j *Job[In]) Attempts(ctx context.Context) ([]settle.Attempt, error) {
	if j.held == nil || j.Attempt <= 1 {
		return nil, nil
	}
	row, err := j.held.crew.life.store.Job(ctx, j.ID)
	if err != nil {
		return nil, fmt.Errorf("attempts of job %s: %w", j.ID, err)
	}
	return row.Attempts, nil
}

// Submitting records, in the store, that this attempt is about to hand a step to
// a node: from then on an answer with the ticket is kept for the job, and a
// failure of the attempt counts against the step's budget, of which spent are
// used up. It must come before anything is sent. A [settle.StaleError] says that
// the job is no longer this attempt's; nothing may be sent then.
func (j *Job[In]) Submitting(ctx context.Context, w settle.Wait, spent int) error {
	a := j.held
	if a == nil {
		return fmt.Errorf("job %s: only a handler that [Handle] has registered can submit a step", j.ID)
	}
	stale := &settle.StaleError{Job: j.ID, Attempt: j.Attempt, State: settle.Running, Detail: "its slot was taken from it"}
	if _, runs := a.runs(); !runs {
		return stale
	}
	t := settle.Decide(a.snapshot(0), settle.Submitting{Wait: w}, j.Policy, 0)
	t.Fence.Handle = j.Handle
	said, err := a.crew.life.store.Apply(ctx, []settle.Transition{t})
	if err != nil {
		return fmt.Errorf("record the ticket of step %s: %w", w.Step, err)
	}
	if said[0] != settle.Done && said[0] != settle.Already {
		stale.Detail = "another attempt, a sweep or a person was faster"
		return stale
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase != running { // meanwhile, and its outcome was decided without the ticket
		return stale
	}
	a.wait, a.spent = &w, spent
	return nil
}

// Listen adds a listener to Config.Events, called after it. Before Run only.
func (w *Worker) Listen(e Events) { w.config.Events = join(w.config.Events, e) }

// Tell tells the worker's listeners and log of a transition that was made beside
// it, such as by an answer that came.
func (w *Worker) Tell(s Settled) { join(w.log, w.config.Events).Settled(s) }

// Beside runs f for as long as the worker lives, from the start of Run until the
// last job is settled, when the context of f ends. Before Run only.
func (w *Worker) Beside(f func(context.Context)) { w.besides = append(w.besides, f) }

// LastLook lets f look for answers before a sweep ends waits: it is given jobs
// whose wait is over, and whatever it delivers wins over the sweep. It has
// lastLook for it; what it returns does not hold up the end of a wait. Before
// Run only; a later f is called after the earlier ones.
func (w *Worker) LastLook(f func(context.Context, []settle.Job)) {
	w.looks = append(w.looks, f)
}

// lastLook is how long looks may take in one pass of a sweep, in all: the ends of
// what comes behind must not wait for one that hangs.
const lastLook = 4 * time.Second

// look gives waits that are over their last look, and says how long it took.
func (l *life) look(ctx context.Context, over []settle.Job, limit time.Duration) time.Duration {
	if len(over) == 0 || len(l.looks) == 0 || limit <= 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := l.now()
	for _, f := range l.looks {
		f(ctx, over)
	}
	return l.now() - began
}
