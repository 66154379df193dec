package worker

import (
	"context"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// What the fake knows of steps.

// note is what is written beside an attempt that goes on.
func (f *fake) note(r *row, t settle.Transition) settle.Applied {
	if t.Keep == nil {
		r.Wait = t.Wait
		return settle.Done
	}
	if r.Wait == nil || r.Wait.Ticket != t.Keep.Ticket {
		return settle.Stale
	}
	if _, twice := r.kept[t.Keep.Ticket]; twice {
		return settle.Already
	}
	if r.kept == nil {
		r.kept = map[settle.ID]settle.Delivered{}
	}
	r.kept[t.Keep.Ticket] = *t.Keep
	return settle.Done
}

// meet delivers what was kept for the ticket of a park.
func (f *fake) meet(r *row, t settle.Transition) {
	if t.To != settle.Awaiting || t.Fence.State != settle.Running {
		return
	}
	if d, ok := r.kept[t.Wait.Ticket]; ok {
		j := r.shown(f.now())
		j.Fence = settle.Fence{Attempt: r.Attempt, State: r.State}
		f.apply(j.Decide(d, 0.5, false))
	}
}

// shown is the row as a reader shows it.
func (r *row) shown(now time.Time) settle.Job {
	j := r.Job
	j.Now, j.Attempts, j.Steps = now, slices.Clone(r.Attempts), slices.Clone(r.Steps)
	if j.Wait == nil {
		return j
	}
	for _, a := range j.Attempts {
		if a.N > j.Base && a.Step == j.Wait.Step && !a.Ticket.IsZero() {
			j.StepSpent++
		}
	}
	if d, ok := r.kept[j.Wait.Ticket]; ok && j.State == settle.Running {
		j.Answer = &d
	}
	return j
}

// Waits reads what answers are decided on.
func (f *fake) Waits(ctx context.Context, ids []settle.ID) (out []settle.Job, err error) {
	err = f.call(ctx, "waits", func() error {
		out = make([]settle.Job, len(ids))
		for i, id := range ids {
			if r := f.byID[id]; r != nil && r.State.Live() {
				out[i] = r.shown(f.now())
				out[i].Fence = settle.Fence{Attempt: r.Attempt, State: r.State, Seen: r.Alarm.UnixNano()}
			}
		}
		return nil
	})
	return out, err
}

// move applies what is decided on the row as it stands.
func (f *fake) move(ctx context.Context, id settle.ID, ev func(settle.Job) settle.Event) settle.Applied {
	jobs, err := f.Waits(ctx, []settle.ID{id})
	if err != nil {
		return ""
	}
	said, err := f.Apply(ctx, []settle.Transition{jobs[0].Decide(ev(jobs[0]), 0.5, false)})
	if err != nil {
		return ""
	}
	return said[0]
}

// deliver is what a bridge does with an answer.
func (f *fake) deliver(ctx context.Context, id settle.ID, d settle.Delivered) settle.Applied {
	return f.move(ctx, id, func(j settle.Job) settle.Event { return j.Answered(d) })
}

// befalls is for all other events.
func (f *fake) befalls(ctx context.Context, id settle.ID, ev settle.Event) settle.Applied {
	return f.move(ctx, id, func(settle.Job) settle.Event { return ev })
}
