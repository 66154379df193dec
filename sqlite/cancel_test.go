package sqlite

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
)

// testClock is a clock that only the test moves.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *testClock { return &testClock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *testClock) source() clock.Source {
	return clock.From(func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	})
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestB043CancelledCallsLeaveNoTransactionOpen(t *testing.T) {
	t.Parallel()
	clk := newClock()
	st := newStore(t, Config{Synchronous: Normal, Clock: clk.source()})
	total := size(3000, 30_000)
	for range 10 {
		insert(t, st, tasks(total/20, 10)...)
	}
	rng := rand.New(rand.NewPCG(43, 1))
	held := takeMap(t, st, total/10)
	lostCalls := 0
	for i := range total {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(500))*time.Microsecond)
		var err error
		switch i % 3 {
		case 0:
			_, err = st.Claim(ctx, request(1))
		case 1:
			for id, c := range held {
				_, err = st.Apply(ctx, []settle.Transition{decided(c, success(""))})
				delete(held, id)
				break
			}
		default:
			_, _, err = st.Jobs(ctx, settle.Filter{Limit: 3})
		}
		if cancel(); err != nil {
			lostCalls++
			isErr(t, err, context.DeadlineExceeded)
		}
	}
	check(t, lostCalls > total/100, "enough calls were cancelled to prove something: %d", lostCalls)
	for range 500 {
		insert(t, st, task())
	}
	other := rawConn(t, st.Path())
	_, err := other.exec("begin immediate")
	check(t, err == nil, "the database is not left locked for another process: %v", err)
	_, err = other.exec("rollback")
	must(t, err)
	checkLegal(t, st)
	// What cancelled calls have claimed is back after a lease, with the attempt on record.
	running := all(t, st, settle.Filter{States: []settle.State{settle.Running}})
	check(t, len(running) > 0, "some calls were cancelled after they had claimed")
	clk.advance(lease + time.Second)
	swept := sweep(t, st)
	check(t, swept == len(running), "all leases are over: %d of %d", swept, len(running))
	for _, j := range running {
		now := get(t, st, j.ID)
		check(t, now.State == settle.Pending && now.Attempt == 1 && len(now.Attempts) == 1 && now.Attempts[0].Reason == settle.AttemptWorkerLost,
			"the job is back with its attempt on record: %s %+v", now.State, now.Attempts)
	}
}

func takeMap(t testing.TB, st *Store, n int) map[settle.ID]settle.ClaimedJob {
	out := map[settle.ID]settle.ClaimedJob{}
	for _, c := range take(t, st, n) {
		out[c.ID] = c
	}
	return out
}

// sweep ends the leases that have run out.
func sweep(t testing.TB, st *Store) (n int) {
	t.Helper()
	for after := (settle.Cursor{}); ; {
		got, err := st.Overdue(t.Context(), after, 500)
		must(t, err)
		var ts []settle.Transition
		for _, j := range got.Jobs {
			ts = append(ts, j.Decide(settle.LeaseOver{}, 0.5, true))
		}
		for _, s := range apply(t, st, ts...) {
			if s == settle.Done {
				n++
			}
		}
		if after = got.Next; after == (settle.Cursor{}) {
			return n
		}
	}
}

// checkLegal holds every job to its state's rules.
func checkLegal(t testing.TB, st *Store) {
	t.Helper()
	for _, j := range all(t, st, settle.Filter{}) {
		ok := (j.State == settle.Running) == (j.Worker != 0 && j.State.Live()) && (j.State.Live() || j.Reason != "") &&
			(!j.State.Live() || !j.Alarm.IsZero() && !j.Alarm.After(j.Deadline))
		check(t, ok, "job %s is in a legal state: %+v", j.ID, j)
	}
	sound(t, st.Path())
}

func TestB043AFailedCommitFailsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	d := st.w.c
	for _, q := range []string{"create table parent (a integer primary key)",
		"create table child (a integer references parent deferrable initially deferred)", "pragma foreign_keys = on"} {
		_, err := d.exec(q)
		must(t, err)
	}
	for round := range 20 {
		errs := gathered(t, st, 10, func(i int) error {
			if i == 3 {
				return st.write(t.Context(), "x", func(tx *tx) error {
					_, err := tx.exec("insert into child values (1)") // found out at the commit
					return err
				})
			}
			_, err := st.Insert(t.Context(), task())
			return err
		})
		for i, err := range errs {
			check(t, (err != nil) == (i == 3), "only the one whose commit fails gets the error: %d %v", i, err)
		}
		check(t, d.c.AutocommitEnabled(), "no transaction is left open")
		check(t, count(t, st) == 9*(round+1), "the neighbours are stored")
	}
	_, err := rawConn(t, st.Path()).exec("begin immediate")
	check(t, err == nil, "the file is not left locked: %v", err)
}
