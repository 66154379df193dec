package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

var event = settle.Define[int, string]("event", settle.Policy{BackoffMin: time.Minute, BackoffMax: time.Minute})

// putEvents enqueues numbered events for a tenant.
func putEvents(t *testing.T, f *fake, tenant string, from, n int, opts ...settle.EnqueueOpts) (ids []settle.ID) {
	t.Helper()
	for i := range n {
		o := settle.EnqueueOpts{}
		if len(opts) > 0 {
			o = opts[0]
		}
		o.Tenant = tenant
		got, err := f.Insert(t.Context(), event.New(from+i, o))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got[0].ID)
	}
	return ids
}

func TestABatchHasOneLaneAndOneResultPerJob(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		var sizes tape[int]
		HandleBatch(w, event, BatchOpts{Max: 4}, func(_ context.Context, jobs []*Job[int]) (out []Result[string]) {
			sizes.add(len(jobs))
			for _, j := range jobs {
				if j.Tenant != jobs[0].Tenant || j.Batch != jobs[0].Batch || j.Batch.IsZero() {
					t.Errorf("a batch of tenants %q and %q, seals %s and %s", jobs[0].Tenant, j.Tenant, jobs[0].Batch, j.Batch)
				}
				switch j.In {
				case 1:
					out = append(out, Result[string]{Err: errors.New("not yet")})
				case 2:
					out = append(out, Result[string]{Err: settle.Terminal(errors.New("refused"))})
				default:
					out = append(out, Result[string]{Out: "ok"})
				}
			}
			if jobs[0].Tenant == "short" {
				return out[:1] // the others have no result
			}
			return append(out, Result[string]{}, Result[string]{}) // surplus
		})
		a := putEvents(t, f, "a", 0, 4)
		b := putEvents(t, f, "b", 10, 5)
		short := putEvents(t, f, "short", 20, 2)
		broken, _ := f.Insert(t.Context(), settle.New{Kind: "event", Input: []byte("x"), EnqueueOpts: settle.EnqueueOpts{Tenant: "b"}})
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantState(t, f, a[0], settle.Succeeded, 1)
		wantState(t, f, a[1], settle.Pending, 1)
		wantState(t, f, a[2], settle.Dead, 1)
		wantState(t, f, a[3], settle.Succeeded, 1)
		for _, id := range b {
			if j := wantState(t, f, id, settle.Succeeded, 1); string(j.Output) != `"ok"` {
				t.Errorf("output %s", j.Output)
			}
		}
		wantState(t, f, short[0], settle.Succeeded, 1)
		if j := wantState(t, f, short[1], settle.Pending, 1); j.Attempts[0].Error != errNoResult.Error() {
			t.Errorf("%+v", j.Attempts)
		}
		if j := wantState(t, f, broken[0].ID, settle.Dead, 1); j.Reason != settle.EndUndecodable {
			t.Errorf("ended %s", j.Reason)
		}
		for _, n := range sizes.all() {
			if n > 4 {
				t.Errorf("a batch of %d, want at most 4", n)
			}
		}
	})
}

func TestASealedBatchComesBackAsItWasUnlessItsSealIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		type call struct {
			batch settle.ID
			n     int
		}
		var calls tape[call]
		half := settle.NewID()
		HandleBatch(w, event, BatchOpts{Max: 10}, func(_ context.Context, jobs []*Job[int]) []Result[string] {
			out := make([]Result[string], len(jobs))
			if jobs[0].In == 4 {
				return out
			}
			calls.add(call{jobs[0].Batch, len(jobs)})
			switch len(calls.all()) {
			case 1: // a network error: as it is, again
				for i := range out {
					out[i].Err = Report(settle.Deferred{Reason: settle.AttemptBusy, After: time.Second, Uncounted: true})
				}
			case 2: // too large: two halves
				for i := range out {
					out[i].Err = Report(settle.Deferred{Reason: settle.AttemptBusy, After: time.Second, Uncounted: true})
					out[i].SetBatch = true
					if i < 2 {
						out[i].Batch = half
					}
				}
			}
			return out
		})
		ids := putEvents(t, f, "a", 0, 4)
		stop := start(t, w)
		putEvents(t, f, "a", 4, 1) // comes later: never in the sealed batch
		nap(10 * time.Second)
		stop()
		got := calls.all()
		sealed := 0
		for _, c := range got {
			if c.batch == got[0].batch {
				sealed++
			}
			if c.batch == half && c.n != 2 {
				t.Errorf("the half has %d jobs", c.n)
			}
		}
		if sealed != 2 {
			t.Errorf("the first seal was used %d times, want twice: %v", sealed, got)
		}
		for _, id := range ids {
			if j := f.get(t, id); j.State != settle.Succeeded || j.Charged() != 1 || j.Deferred != 0 {
				t.Errorf("%s, charged %d, deferred %d", j.State, j.Charged(), j.Deferred)
			}
		}
	})
}

func TestABatchWhoseHandlerPanicsIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		HandleBatch(w, event, BatchOpts{}, func(context.Context, []*Job[int]) []Result[string] { panic("boom") })
		for _, id := range putEvents(t, f, "a", 0, 3) {
			defer func() {
				if j := wantState(t, f, id, settle.Pending, 1); j.Attempts[0].Reason != settle.AttemptPanic {
					t.Errorf("%+v", j.Attempts)
				}
			}()
		}
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestB017ALaneThatHangsDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{}))
		var mu sync.Mutex
		inFlight := map[string]int{}
		var done tape[string]
		HandleBatch(w, event, BatchOpts{Max: 1, Slots: 4}, func(_ context.Context, jobs []*Job[int]) []Result[string] {
			tenant := jobs[0].Tenant
			mu.Lock()
			if inFlight[tenant]++; inFlight[tenant] > 1 {
				t.Errorf("two batches of lane %s at once", tenant)
			}
			mu.Unlock()
			if tenant == "A" {
				time.Sleep(30 * time.Second)
			}
			mu.Lock()
			inFlight[tenant]--
			mu.Unlock()
			done.add(tenant)
			return []Result[string]{{Out: "ok"}}
		})
		putEvents(t, f, "A", 0, 1000)
		// A hundred tenants whose events wait for a retry: they hold no worker.
		for i := range 100 {
			putEvents(t, f, fmt.Sprint("waits", i), 0, 30, settle.EnqueueOpts{Delay: time.Hour})
		}
		stop := start(t, w)
		nap(time.Minute)
		for _, tenant := range []string{"B", "C", "D"} {
			putEvents(t, f, tenant, 0, 1)
		}
		nap(time.Second)
		others := 0
		for _, tenant := range done.all() {
			if tenant != "A" {
				others++
			}
		}
		if others != 3 {
			t.Errorf("%d of B, C and D were delivered within a second, want all", others)
		}
		if s := w.Stats(); s.Running != 1 {
			t.Errorf("%d batches run, want A's alone", s.Running)
		}
		go stop()
		nap(time.Minute)
		stop()
	})
}

func TestBatchesAndSingleJobsShareAWorker(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 2, UntilIdle: true}))
		var single, batched atomic.Int64
		raw(w, "k", func(context.Context, *Job[[]byte]) error { single.Add(1); time.Sleep(time.Second); return nil })
		HandleBatch(w, event, BatchOpts{}, func(_ context.Context, jobs []*Job[int]) []Result[string] {
			batched.Add(int64(len(jobs)))
			return make([]Result[string], len(jobs))
		})
		for range 20 {
			f.put(t, "k")
		}
		putEvents(t, f, "a", 0, 250)
		stop := start(t, w)
		if batched.Load() != 250 {
			t.Errorf("%d of 250 events went while the slots of single jobs are full", batched.Load())
		}
		nap(time.Minute)
		if single.Load() != 20 {
			t.Errorf("%d single jobs", single.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
