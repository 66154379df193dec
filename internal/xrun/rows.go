package xrun

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/settle-go/settle"
)

// page is how many rows are read, decided and written at once.
const page = 500

// eachPage walks the jobs of the run's queue that stand in these states.
func eachPage(ctx context.Context, st settle.Store, queue string, states []settle.State, f func([]settle.Job) error) error {
	filter := settle.Filter{Queue: queue, States: states, Limit: page}
	for {
		jobs, next, err := st.Jobs(ctx, filter)
		if err != nil {
			return fmt.Errorf("read the items of the run: %w", err)
		}
		if err := f(jobs); err != nil {
			return err
		}
		if next == (settle.Cursor{}) {
			return nil
		}
		filter.After = next
	}
}

// move decides on each of the jobs that stand in a state, and carries it out.
// It returns how many have moved.
func (s *start) move(ctx context.Context, from settle.State, decide func(settle.Job) settle.Transition) (n int, err error) {
	err = eachPage(ctx, s.store, s.queue(), []settle.State{from}, func(jobs []settle.Job) error {
		ts := make([]settle.Transition, len(jobs))
		for i, j := range jobs {
			ts[i] = decide(j)
		}
		if len(ts) == 0 {
			return nil
		}
		said, err := s.store.Apply(ctx, ts)
		for _, a := range said {
			if a == settle.Done {
				n++
			}
		}
		return err
	})
	return n, err
}

// takeOver gives the items that a dead program held back to the queue: we have
// its lock, so no lease has to run out. An item whose command was running has
// lost an attempt, as in any crash; one that had been claimed but not begun,
// or whose command was not running any more, gets its attempt back. It is due
// at once either way.
func (s *start) takeOver(ctx context.Context) (n int, err error) {
	before := s.lock.Before()
	n, err = s.move(ctx, settle.Running, func(j settle.Job) settle.Transition {
		if !before.Ran(j.ID, j.Attempt) {
			return j.Decide(settle.Deferred{Reason: settle.AttemptShutdown, Error: "settle run was killed"}, 0, false)
		}
		t := j.Decide(settle.LeaseOver{}, 0, false) // no jitter: the shortest backoff
		if t.Record != nil {
			t.Record.Error = "settle run was killed while the command ran"
		}
		return t
	})
	if err != nil {
		return n, fmt.Errorf("take over what a killed settle run left: %w", err)
	}
	return n, nil
}

// redriveDead gives all dead items of the run a new chance.
func (s *start) redriveDead(ctx context.Context) (n int, err error) {
	n, err = s.move(ctx, settle.Dead, func(j settle.Job) settle.Transition {
		return j.Decide(settle.RedriveAsked{}, rand.Float64(), false)
	})
	if err != nil {
		return n, fmt.Errorf("retry the dead items: %w", err)
	}
	return n, nil
}

// forget removes the rows of the run, all of which must have ended.
func (s *start) forget(ctx context.Context) (n int, err error) {
	err = eachPage(ctx, s.store, s.queue(), endStates, func(jobs []settle.Job) error {
		ids := make([]settle.ID, len(jobs))
		for i, j := range jobs {
			ids[i] = j.ID
		}
		removed, err := s.store.Remove(ctx, ids)
		n += removed
		return err
	})
	if err != nil {
		return n, fmt.Errorf("forget the run: %w", err)
	}
	return n, nil
}

var (
	liveStates = []settle.State{settle.Pending, settle.Running, settle.Awaiting}
	endStates  = []settle.State{settle.Succeeded, settle.Dead, settle.Cancelled}
	badStates  = []settle.State{settle.Dead, settle.Cancelled}
)

// anyLive reports whether an item of the run has not ended.
func anyLive(ctx context.Context, st settle.Store, queue string) (bool, error) {
	f := settle.Filter{Queue: queue, States: liveStates, Limit: 1}
	for {
		jobs, next, err := st.Jobs(ctx, f)
		if err != nil || len(jobs) > 0 {
			return true, err
		}
		if next == (settle.Cursor{}) {
			return false, nil
		}
		f.After = next
	}
}

// countLimit bounds what is counted for people to read.
const countLimit = 10_000_000

// countRows counts the items of the run.
func countRows(ctx context.Context, st settle.Store, queue string) (map[settle.State]int64, error) {
	all, err := st.Counts(ctx, countLimit)
	if err != nil {
		return nil, fmt.Errorf("count the items of the run: %w", err)
	}
	n := map[settle.State]int64{}
	for _, c := range all {
		if c.Queue == queue {
			n[c.State] += int64(c.N)
		}
	}
	return n, nil
}
