package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func (f *fake) Apply(ctx context.Context, ts []settle.Transition) (said []settle.Applied, err error) {
	var ended []settle.ID
	err = f.call(ctx, "apply", func() error {
		if f.reject != nil {
			for _, t := range ts {
				if err := f.reject(t); err != nil {
					return err
				}
			}
		}
		for _, t := range ts {
			got := f.apply(t)
			if got == settle.Done && t.To.Ended() {
				ended = append(ended, t.Job)
			}
			said = append(said, got)
		}
		return nil
	})
	f.mu.Lock()
	for ch, ids := range f.watches {
		for _, id := range ended {
			if slices.Contains(ids, id) {
				select {
				case ch <- id:
				default:
				}
			}
		}
	}
	f.mu.Unlock()
	if err == nil {
		f.nudge(0)
	}
	return said, err
}

func (f *fake) apply(t settle.Transition) settle.Applied {
	r := f.byID[t.Job]
	if t.Refusal != "" || r == nil {
		return settle.Stale
	}
	if r.State == t.To && r.Attempt == t.Fence.Attempt && r.Reason == t.End && t.Fence.State == settle.Running && t.To.Ended() {
		return settle.Already
	}
	if r.Attempt != t.Fence.Attempt || r.State != t.Fence.State || t.Fence.Seen != 0 && t.Fence.Seen != r.Alarm.UnixNano() {
		return settle.Stale
	}
	if t.To == settle.Running {
		return f.note(r, t)
	}
	now := f.now()
	r.State, r.Counters, r.Worker = t.To, t.Counters, 0
	r.Suspect, r.Reason, r.Output, r.Wait = t.Suspect, t.End, t.Output, t.Wait
	if t.SetBatch {
		r.Batch = t.Batch
	}
	if t.Record != nil {
		r.Attempts = append(r.Attempts, settle.Attempt{N: t.Fence.Attempt, Reason: t.Record.Reason, Error: t.Record.Error, At: now,
			Step: t.Record.Step, Ticket: t.Record.Ticket, Node: t.Record.Node, Retryable: t.Record.Retryable})
	}
	if t.Step != nil {
		r.Steps = append(r.Steps, *t.Step)
	}
	switch {
	case t.To == settle.Pending:
		r.Due, r.Alarm = now.Add(t.After), r.Deadline
		if r.Charged() >= r.Tries {
			f.faults = append(f.faults, "a spent job was stored as claimable")
		}
	case t.To == settle.Awaiting:
		r.Alarm, r.WaitEnds = now.Add(t.After), now.Add(t.WaitLeft)
	case t.To.Ended():
		r.EndedAt = now
	}
	for _, n := range []*settle.New{t.OnEnd, t.Recall} {
		if n == nil {
			continue
		}
		if _, err := f.insert(*n); err != nil {
			f.faults = append(f.faults, n.Kind+": "+err.Error())
		}
	}
	f.meet(r, t)
	return settle.Done
}

func (f *fake) Overdue(ctx context.Context, after settle.Cursor, limit int) (out settle.Overdue, err error) {
	err = f.call(ctx, "overdue", func() error {
		out.Now = f.now()
		var due []settle.Job
		for i, r := range f.rows {
			c := settle.Cursor{At: r.Alarm.UnixNano(), Row: int64(i + 1)}
			if r.State.Live() && !r.Alarm.After(out.Now) && (c.At > after.At || c.At == after.At && c.Row > after.Row) {
				j := r.shown(out.Now)
				j.Fence.Seen, j.Fence.Handle = c.At, c.Row
				due = append(due, j)
			}
		}
		slices.SortFunc(due, func(a, b settle.Job) int {
			return cmp.Or(cmp.Compare(a.Fence.Seen, b.Fence.Seen), cmp.Compare(a.Fence.Handle, b.Fence.Handle))
		})
		if len(due) > limit {
			due = due[:limit]
			last := due[limit-1].Fence
			out.Next = settle.Cursor{At: last.Seen, Row: last.Handle}
		}
		out.Jobs = due
		return nil
	})
	return out, err
}

func (f *fake) Lanes(ctx context.Context, queue string, after settle.Lane, limit int) (out []settle.Lane, err error) {
	err = f.call(ctx, "lanes", func() error {
		for _, r := range f.rows {
			if r.State == settle.Pending && r.Queue == queue && r.lane > after && !slices.Contains(out, r.lane) {
				out = append(out, r.lane)
			}
		}
		slices.Sort(out)
		out = out[:min(limit, len(out))]
		return nil
	})
	return out, err
}

func (f *fake) Prune(ctx context.Context, _ settle.Keep, _ int) (p settle.Pruned, err error) {
	err = f.call(ctx, "prune", func() error { return nil })
	return p, err
}

func (f *fake) Pull(ctx context.Context, within, lease time.Duration, limit int) (n int, err error) {
	err = f.call(ctx, "pull", func() error {
		now := f.now()
		for _, r := range f.rows {
			if n == limit {
				break
			}
			if r.State == settle.Pending && r.Due.After(now) && !r.Due.After(now.Add(within)) {
				r.Due = now
				n++
			}
			if r.State == settle.Running && r.Alarm.After(now.Add(lease)) {
				r.Alarm = now.Add(lease)
				n++
			}
		}
		return nil
	})
	return n, err
}

func (f *fake) Job(ctx context.Context, id settle.ID) (j settle.Job, err error) {
	err = f.call(ctx, "job", func() error {
		r := f.byID[id]
		if r == nil {
			return settle.ErrNotFound
		}
		j = r.shown(f.now())
		j.Fence = settle.Fence{Attempt: r.Attempt, State: r.State, Seen: r.Alarm.UnixNano()}
		return nil
	})
	return j, err
}

func (f *fake) Watch(ids []settle.ID) (<-chan settle.ID, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan settle.ID, len(ids))
	f.watches[ch] = ids
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, ch)
	}
}

// ---- what tests ask

var errDown = errors.New("the store is down")

// get reads a job without being counted, delayed or failed.
func (f *fake) get(t *testing.T, id settle.ID) settle.Job {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.byID[id]; r != nil {
		j := r.Job
		j.Now = f.now()
		return j
	}
	t.Fatalf("no job %s", id)
	return settle.Job{}
}

// count says how many jobs satisfy a condition.
func (f *fake) count(ok func(settle.Job) bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rows {
		if ok(r.Job) {
			n++
		}
	}
	return n
}

func (f *fake) called(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// hook sets before and after.
func (f *fake) hook(before, after func(op string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// put enqueues one job.
func (f *fake) put(t *testing.T, kind string, o ...settle.EnqueueOpts) settle.ID {
	t.Helper()
	n := settle.New{Kind: kind, Input: []byte("{}")}
	if len(o) > 0 {
		n.EnqueueOpts = o[0]
	}
	got, err := f.Insert(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return got[0].ID
}
