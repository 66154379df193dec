package remote_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
)

// A wait is a row: ten thousand of them hold no goroutine, no connection and no
// memory of the process.
func TestB066TenThousandWaits(t *testing.T) {
	const few, many = 10, 10_000
	bubble(t, setup{}, func(r *rig) {
		r.net.forgets = true
		r.flood(1000) // which brings all slots of the worker to life
		r.cancelAll()
		r.flood(few)
		began := usage()
		r.flood(many - few)
		now := usage()
		is(r, "waits", r.waiting(), many)
		is(r, "requests under way", r.net.underWay(), 0)
		holds(r, fmt.Sprintf("goroutines of %d waits: %d, of %d: %d", few, began.goroutines, many, now.goroutines), now.goroutines <= began.goroutines)
		each := (now.heap - began.heap) / (many - few)
		holds(r, fmt.Sprintf("memory of a wait: %d bytes", each), each < 100)
	})
}

// Waits of which a third succeed, a third time out and are answered too late, and a
// third are cancelled.
func TestB066WaitsOfEveryEnd(t *testing.T) {
	bubble(t, setup{pool: remote.PoolConfig{Breaker: never.Breaker, Retries: 10}}, func(r *rig) {
		r.flood(300)
		began := usage()
		for n, s := range r.net.all(settle.ID{}) {
			switch n % 3 {
			case 0:
				is(r, "HTTP status", r.answer(s, done), 200)
			case 1:
				r.cancel(s.Job)
			}
		}
		r.nap(policy.Wait + sweep)
		for n, s := range r.net.all(settle.ID{})[:300] {
			if n%3 == 2 {
				is(r, "HTTP status of a late answer", r.answer(s, done), 409)
			}
		}
		r.nap(2*policy.Wait + sweep)
		is(r, "waits that are left", r.waiting(), 0)
		is(r, "B-066 goroutines afterwards", usage().goroutines-began.goroutines, 0)
		is(r, "B-066 connections afterwards", r.net.underWay(), 0)
	})
}

// flood enqueues jobs and waits until all are parked.
func (r *rig) flood(n int) {
	r.Helper()
	for n > 0 {
		batch := make([]settle.New, min(n, 1000))
		for i := range batch {
			batch[i] = render.New(in{"x"})
		}
		if _, err := r.Enqueue(r.Context(), batch...); err != nil {
			r.Fatal(err)
		}
		n -= len(batch)
	}
	synctest.Wait()
}

// cancelAll calls all parked jobs off.
func (r *rig) cancelAll() {
	r.Helper()
	for j, err := range r.List(r.Context(), settle.Filter{States: []settle.State{settle.Awaiting}, Limit: 1000}) {
		if err != nil {
			r.Fatal(err)
		}
		r.cancel(j.ID)
	}
}

// waiting is how many jobs are parked.
func (r *rig) waiting() (n int) {
	r.Helper()
	counts, err := r.st.Counts(r.Context(), 0)
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range counts {
		if c.State == settle.Awaiting {
			n += c.N
		}
	}
	return n
}

type used struct {
	goroutines int
	heap       int64
}

// usage is what the process uses when it is at rest.
func usage() used {
	time.Sleep(time.Minute)
	synctest.Wait()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{runtime.NumGoroutine(), int64(m.HeapAlloc)}
}
