package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// What the clauses use where nothing else is said.
const (
	queue  = settle.DefaultQueue
	work   = "work" // a kind that is served
	other  = "other"
	lease  = 30 * time.Second
	worker = int64(1)
	page   = 100
	jitter = 0.5
	tick   = time.Millisecond
)

// rig is one store on its test bench.
type rig struct {
	*testing.T
	ctx   context.Context
	clock *Clock
	store settle.Store
	h     Harness
}

func newRig(t *testing.T, h Harness) *rig {
	r := &rig{T: t, ctx: t.Context(), clock: NewClock(), h: h}
	r.store = h.Open(t, r.clock)
	return r
}

// beside is the same rig on another handle of the same data.
func (r *rig) beside() *rig {
	r.Helper()
	if r.h.Again == nil {
		r.Log("this store can not be shared: nothing to prove")
		r.SkipNow()
	}
	twin := *r
	twin.store = r.h.Again(r.T, r.store, r.clock)
	return &twin
}

func (r *rig) now() time.Time          { return r.clock.Now() }
func (r *rig) advance(d time.Duration) { r.clock.Advance(d) }

// ---- judging

// is reports a value that is not what it must be.
func is[T comparable](r testing.TB, what string, got, want T) {
	r.Helper()
	if got != want {
		r.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// check reports a condition that must hold and does not.
func check(r testing.TB, ok bool, format string, args ...any) {
	r.Helper()
	if !ok {
		r.Errorf("must be true: "+format, args...)
	}
}

// same reports lists that differ.
func same[T comparable](r testing.TB, what string, got, want []T) {
	r.Helper()
	if !slices.Equal(got, want) {
		r.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// sameSet is same in any order.
func sameSet(r testing.TB, what string, got, want []settle.ID) {
	r.Helper()
	a, b := sorted(got), sorted(want)
	if !slices.Equal(a, b) {
		r.Errorf("%s: got %d jobs %v, want %d jobs %v", what, len(a), short(a), len(b), short(b))
	}
}

func sorted(ids []settle.ID) []settle.ID {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b settle.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// short keeps a failing message readable.
func short(ids []settle.ID) string {
	if len(ids) > 8 {
		return fmt.Sprintf("%v …", ids[:8])
	}
	return fmt.Sprint(ids)
}

// near reports an instant that is not want, rounded to the microsecond.
func near(r testing.TB, what string, got, want time.Time) {
	r.Helper()
	if d := got.Sub(want); d <= -time.Microsecond || d >= time.Microsecond {
		r.Errorf("%s: got %s, want %s", what, got.Format(time.RFC3339Nano), want.Format(time.RFC3339Nano))
	}
}

// ok ends the test if a call that must succeed did not.
func ok(r testing.TB, call string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: got error %v, want none", call, err)
	}
}

// ---- writing down jobs

// id is the id that a name always has.
func id(name string) settle.ID { return settle.DeriveID([]byte(name)) }

// task is a job of the kind that is served; of names the kind.
func task(o settle.EnqueueOpts) settle.New { return of(work, o) }

func of(kind string, o settle.EnqueueOpts) settle.New {
	return settle.New{Kind: kind, Input: []byte(`{"n":1}`), EnqueueOpts: o}
}

func withPolicy(p settle.Policy) settle.New { return task(settle.EnqueueOpts{Policy: &p}) }

// many returns n jobs that become due one tick after the other.
func many(n int, kind string, o settle.EnqueueOpts) []settle.New {
	out := make([]settle.New, n)
	for i := range out {
		each := o
		each.Delay = o.Delay + time.Duration(i)*tick
		out[i] = of(kind, each)
	}
	return out
}

// ---- calling the store

func (r *rig) insert(jobs ...settle.New) []settle.Inserted {
	r.Helper()
	got, err := r.store.Insert(r.ctx, jobs...)
	ok(r, "Insert", err)
	if len(got) != len(jobs) {
		r.Fatalf("Insert: got %d answers, want one for each of the %d jobs", len(got), len(jobs))
	}
	return got
}

// add inserts one job and returns its id.
func (r *rig) add(n settle.New) settle.ID {
	r.Helper()
	return r.insert(n)[0].ID
}

func (r *rig) addAll(jobs []settle.New) []settle.ID {
	r.Helper()
	var ids []settle.ID
	for _, in := range r.insert(jobs...) {
		ids = append(ids, in.ID)
	}
	return ids
}

// ask is a claim with what the request left open filled in.
func (r *rig) ask(q settle.ClaimReq) settle.ClaimedJobs {
	r.Helper()
	got, err := r.store.Claim(r.ctx, request(q))
	ok(r, "Claim", err)
	return got
}

func request(q settle.ClaimReq) settle.ClaimReq {
	if q.Queue == "" {
		q.Queue = queue
	}
	if q.Kinds == nil {
		q.Kinds = []string{work}
	}
	if q.Limit == 0 {
		q.Limit = page
	}
	if q.Lease == 0 {
		q.Lease = lease
	}
	if q.Worker == 0 {
		q.Worker = worker
	}
	return q
}

// claim takes everything that is due.
func (r *rig) claim() []settle.ClaimedJob {
	r.Helper()
	return r.ask(settle.ClaimReq{}).Jobs
}

// claimOne takes the one job that must be due.
func (r *rig) claimOne() settle.ClaimedJob {
	r.Helper()
	jobs := r.claim()
	if len(jobs) != 1 {
		r.Fatalf("Claim: got %d jobs, want the one that is due", len(jobs))
	}
	return jobs[0]
}

// first is the first of jobs that must be there.
func (r *rig) first(jobs []settle.ClaimedJob) settle.ClaimedJob {
	r.Helper()
	if len(jobs) == 0 {
		r.Fatal("Claim: got no job, want one")
	}
	return jobs[0]
}

// want ends the test unless a claim brought n jobs.
func (r *rig) want(jobs []settle.ClaimedJob, n int) {
	r.Helper()
	if len(jobs) != n {
		r.Fatalf("Claim: got %d jobs, want %d", len(jobs), n)
	}
}

// started inserts a job and claims it.
func (r *rig) started(n settle.New) settle.ClaimedJob {
	r.Helper()
	want := r.add(n)
	c := r.claimOne()
	if c.ID != want {
		r.Fatalf("Claim: got job %s, want the only one, %s", c.ID, want)
	}
	return c
}

func (r *rig) job(id settle.ID) settle.Job {
	r.Helper()
	j, err := r.store.Job(r.ctx, id)
	ok(r, "Job", err)
	return j
}

// attempt is a record that must be there.
func (r *rig) attempt(j settle.Job, i int) settle.Attempt {
	r.Helper()
	if i >= len(j.Attempts) {
		r.Fatalf("attempts recorded of job %s: got %d, want more than %d", j.ID, len(j.Attempts), i)
	}
	return j.Attempts[i]
}

func (r *rig) apply(ts ...settle.Transition) []settle.Applied {
	r.Helper()
	said, err := r.store.Apply(r.ctx, ts)
	ok(r, "Apply", err)
	if len(said) != len(ts) {
		r.Fatalf("Apply: got %d answers, want one for each of the %d transitions", len(said), len(ts))
	}
	return said
}

// moves applies one transition that must be carried out.
func (r *rig) moves(t settle.Transition) {
	r.Helper()
	if said := r.apply(t)[0]; said != settle.Done {
		r.Fatalf("Apply of %s → %s: got %q, want %q", t.Fence.State, t.To, said, settle.Done)
	}
}

func (r *rig) renew(jobs ...settle.ClaimedJob) (lost []settle.ID) {
	r.Helper()
	return r.renewAs(worker, jobs...)
}

func (r *rig) renewAs(w int64, jobs ...settle.ClaimedJob) (lost []settle.ID) {
	r.Helper()
	lost, err := r.store.Renew(r.ctx, w, heldBy(jobs), lease)
	ok(r, "Renew", err)
	return lost
}

func heldBy(jobs []settle.ClaimedJob) []settle.Held {
	var held []settle.Held
	for _, c := range jobs {
		held = append(held, settle.Held{Job: c.ID, Attempt: c.Attempt, Handle: c.Handle})
	}
	return held
}

func (r *rig) overdue(after settle.Cursor, limit int) settle.Overdue {
	r.Helper()
	got, err := r.store.Overdue(r.ctx, after, limit)
	ok(r, "Overdue", err)
	return got
}

// list walks all pages of a filter.
func (r *rig) list(f settle.Filter) []settle.Job {
	r.Helper()
	return r.pageThrough(f, func() {})
}

func (r *rig) count(f settle.Filter) int {
	r.Helper()
	return len(r.list(f))
}

func (r *rig) lanes(limit int) []settle.Lane {
	r.Helper()
	var all []settle.Lane
	for after := settle.Lane(0); ; after = all[len(all)-1] {
		got, err := r.store.Lanes(r.ctx, queue, after, limit)
		ok(r, "Lanes", err)
		if len(got) == 0 {
			return all
		}
		all = append(all, got...)
	}
}

func ids[J interface{ settle.Job | settle.ClaimedJob }](jobs []J) []settle.ID {
	var out []settle.ID
	for _, j := range jobs {
		switch j := any(j).(type) {
		case settle.Job:
			out = append(out, j.ID)
		case settle.ClaimedJob:
			out = append(out, j.ID)
		}
	}
	return out
}
