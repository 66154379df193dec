package settletest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/settletest"
	"github.com/settle-go/settle/worker"
)

type order struct{ ID int }
type receipt struct{ Total int }

var ship = settle.Define[order, receipt]("order.ship", settle.Policy{Attempts: 3, BackoffMin: time.Minute})

func ok(_ context.Context, j *worker.Job[order]) (receipt, error) {
	return receipt{Total: j.In.ID * 10}, nil
}

func with(f func(context.Context, *worker.Job[order]) (receipt, error)) func(*worker.Worker) {
	return func(w *worker.Worker) { worker.Handle(w, ship, f) }
}

func TestDrainRunsWhatIsDueAndNoMore(t *testing.T) {
	k := settletest.New(t)
	now := settletest.Enqueue(t, k, ship, order{7})
	later := settletest.Enqueue(t, k, ship, order{8}, settle.EnqueueOpts{Delay: time.Hour})
	k.Drain(t, with(ok))
	if got := settletest.Output(t, k, ship, now); got.Total != 70 {
		t.Errorf("output %+v, want a total of 70", got)
	}
	if j := settletest.Job(t, k, later); j.State != settle.Pending || j.Attempt != 0 {
		t.Errorf("the job of the next hour is %s after %d attempts, want pending and none", j.State, j.Attempt)
	}
	k.Advance(t, time.Hour)
	k.Drain(t, with(ok))
	if got := settletest.Output(t, k, ship, later); got.Total != 80 {
		t.Errorf("output %+v, want a total of 80", got)
	}
}

func TestFinishMovesTheClockThroughRetries(t *testing.T) {
	k := settletest.New(t)
	id := settletest.Enqueue(t, k, ship, order{1})
	began, calls := k.Now(), 0
	k.Finish(t, with(func(context.Context, *worker.Job[order]) (receipt, error) {
		calls++
		return receipt{}, errors.New("out of stock")
	}))
	j := settletest.Job(t, k, id)
	if j.State != settle.Dead || j.Reason != settle.EndExhausted || calls != 3 {
		t.Errorf("the job is %s (%s) after %d calls, want dead (exhausted) after 3", j.State, j.Reason, calls)
	}
	if !k.Now().After(began) {
		t.Error("the clock has not moved, although there were backoffs")
	}
	if j.EndedAt.After(k.Now()) {
		t.Errorf("ended at %s, after the kit's now %s", j.EndedAt, k.Now())
	}
}

func TestFinishPassesHoldsAndDeadlines(t *testing.T) {
	k := settletest.New(t)
	if err := k.Hold(t.Context(), "", "acme", 2*time.Hour, "asked to wait"); err != nil {
		t.Fatal(err)
	}
	held := settletest.Enqueue(t, k, ship, order{2}, settle.EnqueueOpts{Tenant: "acme"})
	nobody := settletest.Enqueue(t, k, settle.Define[order, receipt]("order.unknown", settle.Policy{}), order{3})
	k.Finish(t, with(ok))
	settletest.Output(t, k, ship, held)
	if j := settletest.Job(t, k, nobody); j.Reason != settle.EndExpired {
		t.Errorf("a kind that nobody runs ended %s, want expired", j.Reason)
	}
}

func TestCrashAfterClaimIsCountedAndRunsAgain(t *testing.T) {
	k := settletest.New(t)
	id := settletest.Enqueue(t, k, ship, order{4})
	if got := settletest.CrashAfterClaim(t, k, ship); got != id {
		t.Fatalf("crashed with job %s, want %s", got, id)
	}
	k.Finish(t, with(ok))
	j := settletest.Job(t, k, id)
	if j.State != settle.Succeeded || j.Attempt != 2 || j.Crashed != 1 {
		t.Errorf("the job is %s, attempt %d, %d crashes; want succeeded, 2, 1", j.State, j.Attempt, j.Crashed)
	}
	if j.Attempts[0].Reason != settle.AttemptWorkerLost {
		t.Errorf("attempt 1 ended %s, want worker_lost", j.Attempts[0].Reason)
	}
}

// As in production: the sweep that comes late still tells what happened first.
func TestACrashIsToldAlsoWhenTheDeadlineHasPassedMeanwhile(t *testing.T) {
	k := settletest.New(t)
	id := settletest.Enqueue(t, k, ship, order{4}, settle.EnqueueOpts{Deadline: time.Hour})
	k.LoseSettle(1)
	k.Drain(t, with(ok))
	k.Advance(t, 2*time.Hour)
	j := settletest.Job(t, k, id)
	if j.Reason != settle.EndExpired || j.Crashed != 1 || j.Attempts[0].Reason != settle.AttemptWorkerLost {
		t.Errorf("the job ended %s with %d crashes, attempt 1 %s; want expired, 1, worker_lost", j.Reason, j.Crashed, j.Attempts[0].Reason)
	}
}

func TestALostSettleRunsTheHandlerAgain(t *testing.T) {
	k := settletest.New(t)
	id := settletest.Enqueue(t, k, ship, order{5})
	k.LoseSettle(1)
	var effects atomic.Int64
	k.Finish(t, with(func(ctx context.Context, j *worker.Job[order]) (receipt, error) {
		effects.Add(1)
		return ok(ctx, j)
	}))
	if j := settletest.Job(t, k, id); j.State != settle.Succeeded || j.Attempt != 2 || effects.Load() != 2 {
		t.Errorf("the job is %s, attempt %d, %d effects; want succeeded, 2, 2: at least once", j.State, j.Attempt, effects.Load())
	}
}

func TestEnqueuedLooksIntoAnOpenTransaction(t *testing.T) {
	k := settletest.New(t)
	fail := errors.New("roll back")
	err := k.Store.InTx(t.Context(), func(tx *sql.Tx) error {
		if _, err := k.Store.EnqueueTx(t.Context(), tx, ship.New(order{6}, settle.EnqueueOpts{Tenant: "acme"})); err != nil {
			return err
		}
		in, j := settletest.EnqueuedTx(t, k, tx, ship, func(in order, j settle.Job) bool { return in.ID == 6 })
		if in.ID != 6 || j.Tenant != "acme" {
			return fmt.Errorf("found %+v of tenant %q", in, j.Tenant)
		}
		return fail
	})
	if !errors.Is(err, fail) {
		t.Fatal(err)
	}
	settletest.NotEnqueued(t, k, ship, nil)
	settletest.Enqueue(t, k, ship, order{6})
	settletest.Enqueue(t, k, ship, order{7})
	if in, _ := settletest.Enqueued(t, k, ship, func(in order, _ settle.Job) bool { return in.ID == 7 }); in.ID != 7 {
		t.Errorf("found %+v, want order 7", in)
	}
}

// failing records what an assertion says, without ending this test.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

func complaint(t *testing.T, check func(testing.TB)) (said string) {
	f := &failing{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(f) {
			panic(p)
		}
		said = f.said
	}()
	check(f)
	return ""
}

func TestAssertionsFailWhenTheyShould(t *testing.T) {
	k := settletest.New(t)
	id := settletest.Enqueue(t, k, ship, order{1})
	settletest.Enqueue(t, k, ship, order{1})
	for name, check := range map[string]func(testing.TB){
		"two match": func(t testing.TB) { settletest.Enqueued(t, k, ship, nil) },
		"none matches": func(t testing.TB) {
			settletest.Enqueued(t, k, ship, func(in order, _ settle.Job) bool { return in.ID == 9 })
		},
		"one is there":        func(t testing.TB) { settletest.NotEnqueued(t, k, ship, nil) },
		"it has not ended":    func(t testing.TB) { settletest.Output(t, k, ship, id) },
		"nothing to crash":    func(t testing.TB) { settletest.CrashAfterClaim(t, k, ship, "another queue") },
		"the clock goes back": func(t testing.TB) { k.Advance(t, -time.Second) },
	} {
		if complaint(t, check) == "" {
			t.Errorf("no failure although %s", name)
		}
	}
}

func ExampleKit() {
	// In a test of your own: func TestShip(t *testing.T) { … }
	shipTest := func(t *testing.T) {
		k := settletest.New(t)
		id := settletest.Enqueue(t, k, ship, order{ID: 7})
		k.LoseSettle(1) // the process dies after the handler, before its outcome is recorded
		k.Finish(t, func(w *worker.Worker) { worker.Handle(w, ship, ok) })
		if got := settletest.Output(t, k, ship, id); got.Total != 70 {
			t.Errorf("total %d, want 70", got.Total)
		}
	}
	_ = shipTest
}
