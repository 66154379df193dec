package sqlite

import (
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// One row that cannot be read must not keep the others from going on.
func TestARowThatCannotBeReadKeepsNobodyBack(t *testing.T) {
	clk := newClock()
	st := newStore(t, Config{Clock: clk.source()})
	ids := insert(t, st, tasks(3, 10)...)
	policy := insert(t, st, task())[0]
	waits := insert(t, st, task(settle.EnqueueOpts{Tenant: "w"}))[0]
	for _, c := range take(t, st, 5) {
		if c.ID == waits {
			apply(t, st, decided(c, settle.Parked{Wait: settle.Wait{Ticket: settle.NewID(), Step: "gpu"}}))
		} else {
			apply(t, st, decided(c, settle.Deferred{Reason: settle.AttemptShutdown}))
		}
	}
	for query, id := range map[string]settle.ID{`update body set policy = x'99' where id = ?`: policy,
		`update live set wait = x'99' where n = (select n from body where id = ?)`: waits} {
		_, err := st.w.c.exec(query, id[:])
		must(t, err)
	}
	check(t, count(t, st) == 5, "all are listed")
	jobs := take(t, st, 10)
	check(t, len(jobs) == 4, "all that are due are claimed, got %d", len(jobs))
	for _, c := range jobs {
		if c.ID == policy {
			check(t, c.Policy == settle.DefaultPolicy(), "an unreadable policy counts as the default one: %+v", c.Policy)
		}
	}
	clk.advance(2 * time.Hour) // leases and waits are over
	got, err := st.Overdue(t.Context(), settle.Cursor{}, 10)
	must(t, err)
	check(t, len(got.Jobs) == 5, "a sweep sees all, got %d", len(got.Jobs))
	for _, j := range got.Jobs {
		var ev settle.Event = settle.LeaseOver{}
		if j.State == settle.Awaiting {
			check(t, j.ID == waits && j.Wait == nil, "an unreadable wait is shown as none")
			ev = settle.WaitOver{}
		}
		check(t, apply(t, st, j.Decide(ev, 0.5, true))[0] == settle.Done, "and moves all: %s", j.State)
	}
	check(t, count(t, st, settle.Pending) == 5 && len(ids) == 3, "all go on")
	check(t, stateAt(17) == "damaged" && stateAt(-1) == "damaged", "a state that does not exist is no panic")
}

func TestNumbersOfLanesStandInTheRangeOfTheirQueue(t *testing.T) {
	seen := map[int64]bool{}
	for queue := int64(1); queue <= maxQueue; queue += maxQueue / 7 {
		lo, hi := span(queue)
		for _, name := range []string{"", "a", "tenant", "日本", "\xff"} {
			for _, n := range []int64{laneOf(queue, name), streamOf(queue, name)} {
				check(t, n >= lo && n <= hi && n > 0, "%d of queue %d stands in %d to %d", n, queue, lo, hi)
				check(t, !seen[n], "lanes and streams differ: %d", n)
				seen[n] = true
			}
		}
	}
}

func TestWhatWasRolledBackIsForgotten(t *testing.T) {
	st := newStore(t)
	other := task(settle.EnqueueOpts{Queue: "new"})
	boom := st.InTx(t.Context(), func(tx sqlTx) error {
		_, err := st.EnqueueTx(t.Context(), tx, other)
		must(t, err)
		return settle.ErrFull
	})
	isErr(t, boom, settle.ErrFull)
	err := st.write(t.Context(), "x", func(tx *tx) error {
		_, err := tx.insert(checked(st, other))
		must(t, err)
		return settle.ErrNotFound
	})
	isErr(t, err, settle.ErrNotFound)
	_, known := st.queues.byName("new")
	check(t, !known && st.room.jobs == 0, "neither the queue's id nor the job is remembered: %d", st.room.jobs)
	insert(t, st, task(settle.EnqueueOpts{Queue: "between"})) // takes the id
	insert(t, st, other)
	jobs := all(t, st, settle.Filter{Queue: "new"})
	check(t, len(jobs) == 1 && jobs[0].Queue == "new", "the queue is made anew: %v", jobs)
	check(t, st.room.jobs == 2, "two jobs are counted: %d", st.room.jobs)
}

func TestManyPoliciesAreNotKeptForEver(t *testing.T) {
	st := newStore(t, Config{Synchronous: Normal})
	jobs := make([]settle.New, 500)
	for round := range maxPolicies/len(jobs) + 2 {
		for i := range jobs {
			jobs[i] = task(settle.EnqueueOpts{Deadline: time.Hour + time.Duration(round*len(jobs)+i)*time.Millisecond})
		}
		insert(t, st, jobs...)
		drain(t, st)
	}
	kept := 0
	policies.Range(func(any, any) bool { kept++; return true })
	check(t, kept <= maxPolicies+1, "the cache of policies is bounded: %d", kept)
}

func TestLongerKeptQueuesArePrunedToo(t *testing.T) {
	clk := newClock()
	st := newStore(t, Config{Clock: clk.source()})
	insert(t, st, tasks(10, 10)...)
	drain(t, st)
	must(t, st.SetNote(t.Context(), settle.Note{Queue: "run", Keep: 60 * 24 * time.Hour}))
	clk.advance(8 * 24 * time.Hour)
	p, err := st.Prune(t.Context(), settle.Keep{}, 100)
	check(t, err == nil && p.Removed == 10, "another queue's rule does not keep these: %+v %v", p, err)
	ids := insert(t, st, tasks(3, 10)...)
	drain(t, st)
	n, err := st.Remove(t.Context(), append(ids, ids...))
	check(t, err == nil && n == 3, "each removal is counted once: %d %v", n, err)
}
