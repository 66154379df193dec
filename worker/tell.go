package worker

import (
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// What a life tells: numbers for Stats, events for listeners.

func (l *life) started(a *attempt) {
	l.counts.started.Add(int64(len(a.jobs)))
	for i := range a.jobs {
		l.events.Started(a.jobs[i])
	}
}

func (l *life) abandoned(a *attempt, total int) {
	l.counts.abandoned.Add(1)
	l.events.Abandoned(a.jobs[0], total)
}

func (l *life) storeDown(op string, err error, next time.Duration) { l.events.StoreDown(op, err, next) }

func (l *life) settledByHolder(h holding, t settle.Transition, said settle.Applied) {
	if said == settle.Stale {
		l.counts.stale.Add(1)
	}
	j := &h.a.jobs[h.i]
	l.events.Settled(Settled{Job: j.ID, Kind: j.Kind, Queue: j.Queue, Tenant: j.Tenant, Attempt: j.Attempt,
		Transition: t, Applied: said, Took: h.a.took, By: byHolder})
}

// givenUp tells of an outcome that the store cannot take although it takes
// others. Its lease runs out, and a sweep ends the attempt.
func (l *life) givenUp(h holding, err error) {
	l.counts.stale.Add(1)
	l.storeDown("settle", fmt.Errorf("job %s, attempt %d, given up: %w", h.a.jobs[h.i].ID, h.a.jobs[h.i].Attempt, err), 0)
}

// refused tells of a row that a sweep could not move.
func (l *life) refused(t settle.Transition, err error) {
	l.storeDown("sweep", fmt.Errorf("job %s: %w", t.Job, err), l.Sweep)
}
