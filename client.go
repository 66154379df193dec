package settle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/settle-go/settle/internal/redact"
)

// Client is how programs talk to a store: enqueue, look, wait, steer. It holds
// no state and no goroutine; copies share the store.
type Client struct{ store Store }

// NewClient returns a client of the store.
func NewClient(s Store) *Client { return &Client{s} }

// Enqueue stores jobs of any kinds, all or none. A job whose id exists or
// whose key is taken is not an error: Inserted.Existing says so.
func (c *Client) Enqueue(ctx context.Context, jobs ...New) ([]Inserted, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	got, err := c.store.Insert(ctx, jobs...)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	return got, nil
}

// Get reads one job with its attempts. [ErrNotFound] if there is none.
func (c *Client) Get(ctx context.Context, id ID) (Job, error) {
	j, err := c.store.Job(ctx, id)
	if err != nil {
		return j, fmt.Errorf("job %s: %w", id, err)
	}
	return j, nil
}

// List walks the jobs that the filter chooses, in order of acceptance, page by
// page: nothing is held open between pages. An error ends the walk.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for {
			page, next, err := c.store.Jobs(ctx, f)
			if err != nil {
				yield(Job{}, fmt.Errorf("list jobs: %w", err))
				return
			}
			for _, j := range page {
				if !yield(j, nil) {
					return
				}
			}
			if next == (Cursor{}) {
				return
			}
			f.After = next
		}
	}
}

// How Await looks: at once on a hint of this process, else on a poll that
// begins quick and grows.
const (
	awaitPollMin = 5 * time.Millisecond
	awaitPollMax = time.Second
)

// Await waits until the job has ended and returns it. Only the context, or an
// error of the store, ends the wait early.
func (c *Client) Await(ctx context.Context, id ID) (Job, error) {
	jobs, err := c.AwaitMany(ctx, id)
	if err != nil {
		return Job{}, err
	}
	return jobs[0], nil
}

// AwaitMany waits until all jobs have ended and returns them in the given
// order.
func (c *Client) AwaitMany(ctx context.Context, ids ...ID) ([]Job, error) {
	hint, stop := c.store.Watch(ids) // subscribe first, read second, poll always
	defer stop()
	out := make([]Job, len(ids))
	open := make(map[ID][]int, len(ids)) // places in out that are still waited for
	for i, id := range ids {
		open[id] = append(open[id], i)
	}
	look := func(id ID) error {
		j, err := c.Get(ctx, id)
		if err == nil && j.State.Ended() {
			for _, i := range open[id] {
				out[i] = j
			}
			delete(open, id)
		}
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for poll := awaitPollMin; ; {
		var err error
		select {
		case id := <-hint:
			if _, waited := open[id]; waited {
				err = look(id)
			}
		case <-timer.C:
			for id := range open {
				err = errors.Join(err, look(id))
			}
			timer.Reset(poll)
			poll = min(poll*2, awaitPollMax)
		case <-ctx.Done():
			return nil, fmt.Errorf("await %d jobs: %w", len(open), context.Cause(ctx))
		}
		if err != nil || len(open) == 0 {
			return out, err
		}
	}
}

// Cancel ends a live job at once, also while it runs: its holder learns at its
// next renewal, or sooner. why is shown to people. It returns the job as it
// then stands; a job that had ended before is a [StaleError].
func (c *Client) Cancel(ctx context.Context, id ID, why string) (Job, error) {
	return c.steer(ctx, id, CancelAsked{redact.Text(pick(why, "cancelled"))})
}

// Redrive gives a dead or cancelled job a new, bounded chance: attempts go on
// counting, history and finished steps stay. Errors: [ErrNotFound],
// [StaleError] when the job is live, succeeded, out of redrives, or superseded
// by a live job with its key.
func (c *Client) Redrive(ctx context.Context, id ID) (Job, error) {
	return c.steer(ctx, id, RedriveAsked{})
}

// steerTries bounds how often a person's wish is decided anew because the row
// moved between look and act.
const steerTries = 20

func (c *Client) steer(ctx context.Context, id ID, ev Event) (Job, error) {
	for range steerTries {
		j, err := c.Get(ctx, id)
		if err != nil {
			return j, err
		}
		t := j.Decide(ev, rand.Float64(), false)
		if t.Refusal != "" {
			return j, &StaleError{Job: id, State: j.State, Detail: string(t.Refusal)}
		}
		said, err := c.store.Apply(ctx, []Transition{t})
		if err != nil {
			return j, fmt.Errorf("job %s: %w", id, err)
		}
		switch said[0] {
		case Done, Already:
			return c.Get(ctx, id)
		case Superseded:
			return j, &StaleError{Job: id, State: j.State,
				Detail: fmt.Sprintf("a live job has its key %q", j.Key)}
		}
	}
	return Job{}, fmt.Errorf("job %s: changes too fast, try again", id)
}

// Hold bounds.
const (
	defaultHold = 24 * time.Hour
	maxHold     = 30 * 24 * time.Hour
)

// Pause keeps a whole queue from being claimed for d (0 = 24 h, at most 30
// days). Running jobs go on; deadlines do not move.
func (c *Client) Pause(ctx context.Context, queue string, d time.Duration, why string) error {
	return c.hold(ctx, Hold{Queue: queue, Whole: true, For: d, Reason: "operator", Text: why})
}

// Resume ends a pause; false if there was none.
func (c *Client) Resume(ctx context.Context, queue string) (bool, error) {
	return c.store.Release(ctx, pick(queue, DefaultQueue), "", true)
}

// Hold keeps one tenant's lane from being claimed for d (0 = 24 h, at most 30
// days).
func (c *Client) Hold(ctx context.Context, queue, tenant string, d time.Duration, why string) error {
	return c.hold(ctx, Hold{Queue: queue, Tenant: tenant, For: d, Reason: "operator", Text: why})
}

// Release ends a hold; false if there was none.
func (c *Client) Release(ctx context.Context, queue, tenant string) (bool, error) {
	return c.store.Release(ctx, pick(queue, DefaultQueue), tenant, false)
}

func (c *Client) hold(ctx context.Context, h Hold) error {
	h.Queue = pick(h.Queue, DefaultQueue)
	h.For = pick(h.For, defaultHold)
	err := errors.Join(checkName("queue", h.Queue, MaxName), checkText("tenant", h.Tenant, MaxName))
	if h.For < 0 || h.For > maxHold {
		err = errors.Join(err, &InvalidError{"hold", fmt.Sprintf("for %s: want up to %s", h.For, maxHold)})
	}
	if err != nil {
		return err
	}
	h.Text = redact.Text(pick(h.Text, h.Reason))
	return c.store.Hold(ctx, h)
}
