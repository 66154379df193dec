package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// bank is a store with a table of the program's own in the same file.
func bank(t testing.TB) *Store {
	t.Helper()
	st := newStore(t)
	must(t, st.InTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`create table paid (job text, amount integer)`)
		return err
	}))
	return st
}

func pay(tx *sql.Tx) error {
	_, err := tx.Exec(`insert into paid values ('x', 1)`)
	return err
}

func paid(t testing.TB, st *Store) (n int64) {
	t.Helper()
	must(t, st.read(t.Context(), "paid", func(c conn, _ int64) (err error) {
		n, err = number(c, `select count(*) from paid`)
		return err
	}))
	return n
}

func TestP3InTxCommitsEffectAndJobsTogether(t *testing.T) {
	st := bank(t)
	ctx := t.Context()
	nudged := make(chan settle.Lane, 10)
	lctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = st.Listen(lctx, settle.DefaultQueue, func(l settle.Lane) { nudged <- l }) }()
	until(t, time.Second, "somebody listens", func() bool { st.bus.mu.RLock(); defer st.bus.mu.RUnlock(); return len(st.bus.listen) == 1 })
	mixed := task()
	mixed.Kind = "notify"
	must(t, st.InTx(ctx, func(tx *sql.Tx) error {
		if err := pay(tx); err != nil {
			return err
		}
		got, err := st.EnqueueTx(ctx, tx, task(), mixed)
		check(t, len(got) == 2, "two jobs are answered, got %d", len(got))
		page, _, perr := st.JobsTx(ctx, tx, settle.Filter{})
		check(t, perr == nil && len(page) == 2, "the transaction sees its own jobs: %d %v", len(page), perr)
		check(t, count(t, st, settle.Pending) == 0, "nobody else sees them before the commit")
		return err
	}))
	check(t, paid(t, st) == 1 && count(t, st, settle.Pending) == 2, "effect and jobs are there after the commit")
	check(t, <-nudged != 0, "a listener is nudged with the lane")
}

func TestP3InTxUndoesEverything(t *testing.T) {
	boom := errors.New("boom")
	both := func(st *Store, tx *sql.Tx) {
		_ = pay(tx)
		_, _ = st.EnqueueTx(context.Background(), tx, task())
	}
	for name, run := range map[string]func(t *testing.T, st *Store) error{
		"error": func(t *testing.T, st *Store) error {
			return st.InTx(t.Context(), func(tx *sql.Tx) error { both(st, tx); return boom })
		},
		"panic": func(t *testing.T, st *Store) (err error) {
			defer func() {
				check(t, recover() == boom, "the panic reaches the caller")
				err = boom
			}()
			return st.InTx(t.Context(), func(tx *sql.Tx) error { both(st, tx); panic(boom) })
		},
		"goexit": func(t *testing.T, st *Store) error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = st.InTx(context.Background(), func(tx *sql.Tx) error { both(st, tx); runtime.Goexit(); return nil })
			}()
			<-done
			return boom
		},
		"context ends inside": func(t *testing.T, st *Store) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			return st.InTx(ctx, func(tx *sql.Tx) error {
				both(st, tx)
				cancel(boom)
				_, err := st.EnqueueTx(ctx, tx, task())
				return err
			})
		},
		"context ended before": func(t *testing.T, st *Store) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(boom)
			return st.InTx(ctx, func(tx *sql.Tx) error { both(st, tx); return boom })
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := bank(t)
			err := run(t, st)
			isErr(t, err, boom)
			check(t, paid(t, st) == 0 && count(t, st) == 0, "effect and jobs are undone")
			insert(t, st, task())
			must(t, st.InTx(t.Context(), pay))
			check(t, paid(t, st) == 1, "the store goes on")
		})
	}
}

func TestP3CompleteTxEndsTheJobWithItsEffect(t *testing.T) {
	st := bank(t)
	id := insert(t, st, task())[0]
	c := takeOne(t, st)
	must(t, st.InTx(t.Context(), func(tx *sql.Tx) error {
		return errors.Join(pay(tx), st.CompleteTx(t.Context(), tx, c, map[string]int{"sum": 1}))
	}))
	j := get(t, st, id)
	check(t, j.State == settle.Succeeded && string(j.Output) == `{"sum":1}`, "the job has succeeded with its output: %s %s", j.State, j.Output)
	check(t, paid(t, st) == 1, "its effect is there")
	check(t, apply(t, st, decided(c, success("null")))[0] == settle.Already, "the handler's own settle is answered: already")
	check(t, string(get(t, st, id).Output) == `{"sum":1}`, "and changes nothing")
}

func TestP3CompleteTxOfAStaleAttemptUndoesTheEffect(t *testing.T) {
	st := bank(t)
	insert(t, st, task())
	c := takeOne(t, st)
	apply(t, st, decided(c, settle.LeaseOver{})) // somebody else ended the attempt
	err := st.InTx(t.Context(), func(tx *sql.Tx) error {
		return errors.Join(pay(tx), st.CompleteTx(t.Context(), tx, c, nil))
	})
	var stale *settle.StaleError
	check(t, errors.As(err, &stale) && stale.Job == c.ID && stale.Attempt == 1 && stale.State == settle.Pending, "it is a StaleError that says where the job stands: %v", err)
	check(t, paid(t, st) == 0, "the effect is undone")
	check(t, get(t, st, c.ID).State == settle.Pending, "the job is untouched")
}

func TestCompleteTxRolledBackLeavesTheJobRunning(t *testing.T) {
	st := bank(t)
	insert(t, st, task())
	c := takeOne(t, st)
	_ = st.InTx(t.Context(), func(tx *sql.Tx) error {
		must(t, st.CompleteTx(t.Context(), tx, c, nil))
		return errors.New("no")
	})
	check(t, get(t, st, c.ID).State == settle.Running, "the end is undone with the rest")
	check(t, apply(t, st, decided(c, failure("no")))[0] == settle.Done, "the holder can settle it otherwise")
}

func TestCompleteTxRefusesAnOutputItCannotStore(t *testing.T) {
	st := bank(t)
	insert(t, st, task())
	c := takeOne(t, st)
	for _, out := range []any{make(chan int), make([]byte, settle.MaxPayload+1)} {
		err := st.InTx(t.Context(), func(tx *sql.Tx) error { return st.CompleteTx(t.Context(), tx, c, out) })
		check(t, isInvalid(err), "it is an InvalidError: %v", err)
	}
	check(t, get(t, st, c.ID).State == settle.Running, "the job is untouched")
}

func TestEnqueueTxStoresAllOrNoneAlsoIfTheCallerCommits(t *testing.T) {
	st := bank(t)
	bad := task()
	bad.Tenant = "a\x00b"
	must(t, st.InTx(t.Context(), func(tx *sql.Tx) error {
		_, err := st.EnqueueTx(t.Context(), tx, task(), bad)
		check(t, isInvalid(err), "it is an InvalidError: %v", err)
		// A fault that shows only after the first row was written.
		t2, err := st.user.current(tx)
		must(t, err)
		err = t2.whole(func() error {
			_, err := t2.insert(checked(st, task()))
			must(t, err)
			return errors.New("later")
		})
		check(t, err != nil, "it fails")
		return pay(tx) // and commits all the same
	}))
	check(t, count(t, st) == 0, "no job of a failed enqueue is stored")
	check(t, paid(t, st) == 1, "the rest is committed")
	check(t, st.room.jobs == 0, "and not counted: %d", st.room.jobs)
}

func TestEnqueueTxStoresNothingInATransactionThatIsLost(t *testing.T) {
	st := bank(t)
	err := st.InTx(t.Context(), func(tx *sql.Tx) error {
		must(t, pay(tx))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := tx.ExecContext(ctx, `insert into paid with recursive r(i) as (select 1 union all select i+1 from r limit 100000000) select 'y', i from r`)
		isErr(t, err, context.DeadlineExceeded) // SQLite rolls the whole transaction back
		_, err = st.EnqueueTx(t.Context(), tx, task())
		check(t, err != nil && strings.Contains(err.Error(), "interrupted"), "the enqueue is refused: %v", err)
		return nil
	})
	check(t, err != nil && strings.Contains(err.Error(), "interrupted"), "InTx says that nothing was committed: %v", err)
	check(t, paid(t, st) == 0 && count(t, st) == 0, "nothing is stored")
	must(t, st.InTx(t.Context(), pay))
	check(t, paid(t, st) == 1, "the next one works")
}
