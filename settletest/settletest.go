// Package settletest helps users to test their own kinds and handlers: against
// the real embedded store, in a temporary file, with a clock that the test
// moves.
//
//	k := settletest.New(t)
//	id := settletest.Enqueue(t, k, Analyze, in)
//	k.Drain(t, func(w *worker.Worker) { worker.Handle(w, Analyze, analyze) })
//	out := settletest.Output(t, k, Analyze, id)
//
// Nothing waits in real time: [Kit.Drain] runs what is due, [Kit.Advance] moves
// the clock, [Kit.Finish] does both until nothing is left live. [Kit.CrashAfterClaim]
// and [Kit.LoseSettle] show what a handler does when it runs again.
package settletest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// Start is where the clock of every kit begins.
var Start = time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)

// Kit is a store with a clock that the test moves, and a client of it. Its
// methods may be called from any goroutine; failures end the test.
type Kit struct {
	*settle.Client
	// Store is the embedded store; use it for InTx and EnqueueTx.
	Store *sqlite.Store

	mu   sync.Mutex
	now  time.Time
	lose int // settles that are still to be lost
}

// New opens a kit in a temporary folder; the test's end closes it.
func New(t testing.TB) *Kit {
	t.Helper()
	k := &Kit{now: Start}
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "settle.db"), sqlite.Config{
		Synchronous: sqlite.Normal, KeepFree: -1, Clock: clock.From(k.Now)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	k.Store, k.Client = s, settle.NewClient(s)
	return k
}

// Now reads the kit's clock.
func (k *Kit) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// Advance moves the clock forward, and then does what sweeps do: it ends
// leases, waits and deadlines that have passed.
func (k *Kit) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	if d < 0 {
		t.Fatalf("settletest: Advance(%s): the clock only moves forward", d)
	}
	k.mu.Lock()
	k.now = k.now.Add(d)
	k.mu.Unlock()
	k.sweep(t)
}

func (k *Kit) sweep(t testing.TB) {
	t.Helper()
	for after := (settle.Cursor{}); ; {
		page, err := k.Store.Overdue(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		ts := make([]settle.Transition, 0, len(page.Jobs))
		for _, j := range page.Jobs {
			ts = append(ts, j.Decide(j.Passed(true, true), 0.5, true))
		}
		if _, err := k.Store.Apply(t.Context(), ts); err != nil {
			t.Fatal(err)
		}
		if after = page.Next; after == (settle.Cursor{}) {
			return
		}
	}
}

// Enqueue stores one job and returns its id.
func Enqueue[In, Out any](t testing.TB, k *Kit, kind settle.Kind[In, Out], in In, opts ...settle.EnqueueOpts) settle.ID {
	t.Helper()
	id, err := kind.Enqueue(t.Context(), k.Client, in, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Drain runs a real worker on what is due now, until nothing is. register adds
// the handlers; queue is "default" unless a worker.Config says otherwise.
func (k *Kit) Drain(t testing.TB, register func(*worker.Worker), config ...worker.Config) {
	t.Helper()
	var c worker.Config
	if len(config) > 0 {
		c = config[0]
	}
	c.UntilIdle = true
	if c.Keep == (settle.Keep{}) { // the clock may move by months: nothing that a test asks for is removed
		c.Keep = settle.Keep{Succeeded: settle.MaxAhead, Cancelled: settle.MaxAhead}
	}
	w := worker.New(lossy{k.Store, k}, c)
	register(w)
	ctx, stop := context.WithTimeout(t.Context(), drainLimit)
	defer stop()
	if err := w.Run(ctx); err != nil {
		t.Fatalf("settletest: drain: %v", err)
	}
	if ctx.Err() != nil {
		t.Fatalf("settletest: the queue was not drained within %s of real time", drainLimit)
	}
}

// Bounds of Drain and Finish.
const (
	drainLimit   = time.Minute
	finishRounds = 10_000
)

// Finish drains, and moves the clock to whatever happens next, until no job is
// live: every job reaches its end. It fails the test if that takes forever.
func (k *Kit) Finish(t testing.TB, register func(*worker.Worker), config ...worker.Config) {
	t.Helper()
	for range finishRounds {
		k.Drain(t, register, config...)
		next, live := k.nextEvent(t)
		if !live {
			return
		}
		k.Advance(t, max(next.Sub(k.Now()), time.Microsecond))
	}
	t.Fatalf("settletest: jobs are still live after %d rounds", finishRounds)
}

// nextEvent finds the earliest instant at which something happens by itself.
func (k *Kit) nextEvent(t testing.TB) (next time.Time, live bool) {
	t.Helper()
	now := k.Now()
	for j, err := range k.List(t.Context(), settle.Filter{States: []settle.State{settle.Pending, settle.Running, settle.Awaiting}}) {
		if err != nil {
			t.Fatal(err)
		}
		at := j.Alarm
		if j.State == settle.Pending && j.Due.After(now) && j.Due.Before(at) {
			at = j.Due
		}
		if j.Held.After(now) && j.Held.Before(at) {
			at = j.Held
		}
		if !live || at.Before(next) {
			next, live = at, true
		}
	}
	return next, live
}
