package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
)

func TestOnlyATransactionOfInTxCanCarryJobs(t *testing.T) {
	st := bank(t)
	ctx := t.Context()
	open := func(path string) *sql.Tx {
		db, err := sql.Open("sqlite", fileURI(path))
		must(t, err)
		t.Cleanup(func() { must(t, db.Close()) })
		tx, err := db.BeginTx(ctx, nil)
		must(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		return tx
	}
	var over *sql.Tx
	must(t, st.InTx(ctx, func(tx *sql.Tx) error { over = tx; return nil }))
	insert(t, st, task())
	c := takeOne(t, st)
	foreign := map[string]*sql.Tx{
		"nil":                            nil,
		"of another database":            open(filepath.Join(t.TempDir(), "other.db")),
		"of a second connection to ours": open(st.Path()),
		"of an InTx that is over":        over,
	}
	for name, tx := range foreign {
		_, err := st.EnqueueTx(ctx, tx, task())
		check(t, isInvalid(err) && strings.Contains(err.Error(), "InTx"), "a transaction %s is refused with what to do: %v", name, err)
		err = st.CompleteTx(ctx, tx, c, nil)
		check(t, isInvalid(err), "also by CompleteTx: %v", err)
		_, _, err = st.JobsTx(ctx, tx, settle.Filter{})
		check(t, isInvalid(err), "also by JobsTx: %v", err)
	}
	must(t, st.InTx(ctx, func(*sql.Tx) error {
		_, err := st.EnqueueTx(ctx, foreign["of a second connection to ours"], task())
		check(t, isInvalid(err), "also while another one is under way: %v", err)
		return nil
	}))
	check(t, count(t, st) == 1 && get(t, st, c.ID).State == settle.Running, "nothing was stored or ended")
}

func TestACallInsideInTxEndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := bank(t)
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"Insert": func() error { _, err := st.Insert(ctx, task()); return err },
			"Claim":  func() error { _, err := st.Claim(ctx, request(1)); return err },
			"InTx":   func() error { return st.InTx(ctx, pay) },
		} {
			began := time.Now()
			must(t, st.InTx(ctx, func(tx *sql.Tx) error {
				err := call()
				check(t, err != nil && strings.Contains(err.Error(), "InTx"), "%s inside InTx ends with an error that names the cause: %v", name, err)
				return pay(tx)
			}))
			check(t, time.Since(began) < time.Minute, "it does not hang: %s", time.Since(began))
		}
		check(t, paid(t, st) == 3 && count(t, st) == 0, "the outer transactions commit, nothing of the inner calls is stored")
		insert(t, st, task())
	})
}

func TestInTxKeepsTheSettingsOfTheStore(t *testing.T) {
	for level, want := range map[Synchronous]int64{Full: 2, Normal: 1} {
		st := newStore(t, Config{Synchronous: level})
		got, err := number(st.w.c, `pragma synchronous`)
		must(t, err)
		check(t, got == want, "the writer has synchronous %d, got %d", want, got)
		must(t, st.read(t.Context(), "x", func(c conn, _ int64) error {
			got, err := number(c, `pragma synchronous`)
			check(t, got == want, "a reader has synchronous %d, got %d", want, got)
			return err
		}))
		must(t, st.InTx(t.Context(), func(tx *sql.Tx) error {
			var got, wal int64
			var mode string
			err := errors.Join(tx.QueryRow(`pragma synchronous`).Scan(&got), tx.QueryRow(`pragma journal_mode`).Scan(&mode), tx.QueryRow(`pragma busy_timeout`).Scan(&wal))
			check(t, got == want && mode == "wal", "a user's transaction has synchronous %d and the log, got %d %s", want, got, mode)
			return err
		}))
	}
}

func TestSlowUserTransactionsBesideEnqueuers(t *testing.T) {
	st := bank(t)
	const held = 200 * time.Millisecond
	end := time.Now().Add(time.Duration(size(1200, 10_000)) * time.Millisecond)
	worst := make([]time.Duration, 20)
	inserted := make([]int, 20)
	user := make(chan int)
	go func() {
		n := 0
		for ; time.Now().Before(end); n++ {
			must(t, st.InTx(t.Context(), func(tx *sql.Tx) error {
				wait(held) // the user's own slow work
				_, err := st.EnqueueTx(t.Context(), tx, task())
				return errors.Join(err, pay(tx))
			}))
		}
		user <- n
	}()
	errs := together(20, func(i int) error {
		for time.Now().Before(end) {
			began := time.Now()
			if _, err := st.Insert(t.Context(), task()); err != nil {
				return fmt.Errorf("enqueuer %d: %w", i, err)
			}
			worst[i] = max(worst[i], time.Since(began))
			inserted[i]++
		}
		return nil
	})
	must(t, errors.Join(errs...))
	n := <-user
	sum := n
	for i := range worst {
		check(t, worst[i] < 10*held, "an enqueue waits for few transactions, waited %s", worst[i])
		sum += inserted[i]
	}
	check(t, n >= 2, "the user's transactions go on beside the enqueuers, did %d", n)
	check(t, count(t, st) == sum && paid(t, st) == int64(n), "everything acknowledged is stored: %d jobs of %d", count(t, st), sum)
}
