package settletest

import (
	"context"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// ghost is the worker that dies in CrashAfterClaim.
const ghost = 0xdead

// CrashAfterClaim takes one due job of the kind as a worker would that dies
// before its handler starts, and moves the clock past its lease. The attempt
// stays counted; the job runs again, as its next attempt, once its backoff has
// passed. It returns the job's id.
func CrashAfterClaim[In, Out any](t testing.TB, k *Kit, kind settle.Kind[In, Out], queue ...string) settle.ID {
	t.Helper()
	q := settle.DefaultQueue
	if len(queue) > 0 {
		q = queue[0]
	}
	const lease = 30 * time.Second
	got, err := k.Store.Claim(t.Context(), settle.ClaimReq{Queue: q, Kinds: []string{kind.Name()}, Limit: 1, Lease: lease, Worker: ghost})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) == 0 {
		t.Fatalf("settletest: no job of kind %s is due in queue %s", kind.Name(), q)
	}
	k.Advance(t, lease+time.Millisecond)
	return got.Jobs[0].ID
}

// LoseSettle makes the next n outcomes of handlers vanish, as if the process
// had died after the handler and before its outcome was recorded: the effect
// has happened, the job runs again once its lease has passed. That is what "at
// least once" means; a handler must bear it. The count is kept until used up.
func (k *Kit) LoseSettle(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose = n
}

// lossy is the kit's store as its workers see it.
type lossy struct {
	*sqlite.Store
	k *Kit
}

// Apply loses what LoseSettle asked for: the worker believes that it is done.
func (l lossy) Apply(ctx context.Context, ts []settle.Transition) ([]settle.Applied, error) {
	said := make([]settle.Applied, len(ts))
	var rest []settle.Transition
	var place []int
	for i, m := range ts {
		if m.Fence.State == settle.Running && l.k.loses() {
			said[i] = settle.Done
			continue
		}
		rest, place = append(rest, m), append(place, i)
	}
	answers, err := l.Store.Apply(ctx, rest)
	for i, a := range answers {
		said[place[i]] = a
	}
	return said, err
}

func (k *Kit) loses() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lose == 0 {
		return false
	}
	k.lose--
	return true
}
