package worker

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
)

// fake is a store in memory. Its clock is the process's plus skew. Every arrow
// is Decide's. before and after let a test fail, delay or watch calls: before
// runs ahead of the effect, after between the effect and the reply.
type fake struct {
	settle.Store // what is not written here panics

	before, after func(op string) error

	mu      sync.Mutex
	skew    time.Duration
	rows    []*row // in order of acceptance
	byID    map[settle.ID]*row
	nudges  []func(settle.Lane)
	mute    atomic.Bool // every hint is lost
	watches map[chan settle.ID][]settle.ID
	faults  []string       // broken invariants
	calls   map[string]int // by operation
	claims  []settle.ClaimReq
	reject  func(settle.Transition) error // one bad row fails its whole Apply
}

type row struct {
	settle.Job
	lane  settle.Lane
	lease time.Duration
	kept  map[settle.ID]settle.Delivered // answers that came before their park
}

func newFake() *fake {
	return &fake{byID: map[settle.ID]*row{}, calls: map[string]int{}, watches: map[chan settle.ID][]settle.ID{}}
}

func (f *fake) now() time.Time { return time.Now().Add(f.skew) }

// jumpClock moves the store's clock.
func (f *fake) jumpClock(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skew += d
}

// Clock reads the store's clock.
func (f *fake) Clock(context.Context) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now(), nil
}

// call wraps every operation.
func (f *fake) call(ctx context.Context, op string, do func() error) error {
	f.mu.Lock()
	f.calls[op]++
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(op); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	err := do()
	f.mu.Unlock()
	if err == nil && after != nil {
		err = after(op)
	}
	return err
}

func laneOf(tenant string) settle.Lane {
	h := fnv.New32a()
	h.Write([]byte(tenant))
	return settle.Lane(h.Sum32()) + 1
}

func (f *fake) Insert(ctx context.Context, news ...settle.New) (out []settle.Inserted, err error) {
	err = f.call(ctx, "insert", func() error {
		for _, n := range news {
			ins, err := f.insert(n)
			if err != nil {
				return err
			}
			out = append(out, ins)
		}
		return nil
	})
	if err == nil {
		for _, i := range out {
			f.nudge(i.Lane)
		}
	}
	return out, err
}

func (f *fake) insert(n settle.New) (settle.Inserted, error) {
	now := f.now()
	n, pol, err := n.Prepare(now)
	if err != nil {
		return settle.Inserted{}, err
	}
	if r := f.byID[n.ID]; r != nil {
		return settle.Inserted{ID: n.ID, Existing: true, State: r.State, Lane: r.lane}, nil
	}
	due := now.Add(n.Delay)
	r := &row{lane: laneOf(n.Tenant), Job: settle.Job{ID: n.ID, Kind: n.Kind, Queue: n.Queue, Tenant: n.Tenant,
		State: settle.Pending, Input: n.Input, Policy: pol, Enqueued: now, FirstDue: due, Due: due,
		Deadline: due.Add(n.Deadline), Alarm: due.Add(n.Deadline)}}
	r.Tries = pol.Attempts
	f.rows = append(f.rows, r)
	f.byID[n.ID] = r
	return settle.Inserted{ID: n.ID, State: settle.Pending, Lane: r.lane}, nil
}

func (f *fake) nudge(lane settle.Lane) {
	f.mu.Lock()
	nudges := slices.Clone(f.nudges)
	f.mu.Unlock()
	for _, n := range nudges {
		if n != nil && !f.mute.Load() {
			n(lane)
		}
	}
}

func (f *fake) Listen(ctx context.Context, _ string, nudge func(settle.Lane)) error {
	f.mu.Lock()
	i := len(f.nudges)
	f.nudges = append(f.nudges, nudge)
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.nudges[i] = nil
	f.mu.Unlock()
	return nil
}

func (f *fake) Claim(ctx context.Context, r settle.ClaimReq) (out settle.ClaimedJobs, err error) {
	err = f.call(ctx, "claim", func() error {
		f.claims = append(f.claims, r)
		now := f.now()
		var due []*row
		for _, x := range f.rows {
			if x.State != settle.Pending || x.Queue != r.Queue || !slices.Contains(r.Kinds, x.Kind) || !x.Alarm.After(now) {
				continue
			}
			switch {
			case x.Due.After(now):
				if next := x.Due.Sub(now); out.Next == 0 || next < out.Next {
					out.Next = next
				}
			case x.Suspect != r.Suspects:
				out.Suspects = out.Suspects || x.Suspect
			default:
				due = append(due, x)
			}
		}
		slices.SortStableFunc(due, func(a, b *row) int { return cmp.Compare(a.Due.UnixNano(), b.Due.UnixNano()) })
		for _, x := range f.choose(due, r) {
			out.Jobs = append(out.Jobs, f.take(x, r, now))
		}
		return nil
	})
	return out, err
}

// choose takes each lane's share and fills by age.
func (f *fake) choose(due []*row, r settle.ClaimReq) (chosen []*row) {
	if !r.Batch.IsZero() {
		return f.chooseBatch(due, r)
	}
	taken := map[*row]bool{}
	take := func(most int, ok func(*row) bool) {
		for _, x := range due {
			if most > 0 && len(chosen) < r.Limit && !taken[x] && ok(x) {
				chosen, taken[x], most = append(chosen, x), true, most-1
			}
		}
	}
	for _, lane := range r.Lanes {
		share := r.PerLane
		if share == 0 {
			share = r.Limit
		}
		take(share, func(x *row) bool { return x.lane == lane })
	}
	take(r.Limit, func(*row) bool { return true })
	return chosen
}

func (f *fake) chooseBatch(due []*row, r settle.ClaimReq) (chosen []*row) {
	lanes := r.Lanes
	if len(lanes) == 0 && len(due) > 0 {
		lanes = []settle.Lane{due[0].lane}
	}
	for _, lane := range lanes {
		size := 0
		var seal settle.ID
		for _, x := range due {
			size += len(x.Input)
			switch {
			case x.lane != lane || len(chosen) > 0 && x.Batch != seal:
				size -= len(x.Input)
				continue
			case seal.IsZero() && len(chosen) > 0 && (len(chosen) == r.Limit || r.Bytes > 0 && size > r.Bytes):
				return chosen
			}
			chosen, seal = append(chosen, x), x.Batch
		}
		if len(chosen) > 0 {
			return chosen
		}
	}
	return nil
}

func (f *fake) take(x *row, r settle.ClaimReq, now time.Time) settle.ClaimedJob {
	x.Now = now
	if t := settle.Decide(x.Snapshot(), settle.Claimed{}, x.Policy, 0); t.Refusal != "" || t.To != settle.Running {
		f.faults = append(f.faults, "P2: a claim took a job that Decide would not: "+string(t.Refusal))
	}
	x.State, x.Worker, x.lease = settle.Running, r.Worker, r.Lease
	x.Attempt++
	x.Alarm = earlier(now.Add(r.Lease), x.Deadline)
	if !r.Batch.IsZero() && x.Batch.IsZero() {
		x.Batch = r.Batch
	}
	return settle.ClaimedJob{Snapshot: x.Snapshot(), Input: x.Input, Policy: x.Policy, Lane: x.lane, Batch: x.Batch, Handle: 1,
		Steps: slices.Clone(x.Steps)}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (f *fake) Renew(ctx context.Context, worker int64, held []settle.Held, lease time.Duration) (lost []settle.ID, err error) {
	err = f.call(ctx, "renew", func() error {
		for _, h := range held {
			r := f.byID[h.Job]
			if r == nil || r.State != settle.Running || r.Attempt != h.Attempt || r.Worker != worker {
				lost = append(lost, h.Job)
				continue
			}
			r.Alarm = earlier(f.now().Add(lease), r.Deadline)
		}
		return nil
	})
	return lost, err
}
