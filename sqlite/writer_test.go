package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// commits counts the transactions in the write-ahead log: each ends with a
// frame that says how big the file is.
func commits(t testing.TB, path string) (n int) {
	t.Helper()
	b, err := os.ReadFile(path + "-wal")
	must(t, err)
	for at := 32; at+24+page <= len(b) && string(b[at+8:at+16]) == string(b[16:24]); at += 24 + page {
		if be.Uint32(b[at+4:]) > 0 {
			n++
		}
	}
	return n
}

// gathered holds the writer's turn until n calls of fn wait, then lets them go
// together.
func gathered(t testing.TB, st *Store, n int, fn func(i int) error) []error {
	t.Helper()
	st.w.turn <- struct{}{}
	done := make(chan []error)
	go func() { done <- together(n, fn) }()
	until(t, 10*time.Second, "all calls wait", func() bool {
		st.w.mu.Lock()
		defer st.w.mu.Unlock()
		return len(st.w.todo) == n
	})
	<-st.w.turn
	return <-done
}

func TestConcurrentCallsShareTransactions(t *testing.T) {
	st := newStore(t)
	before := commits(t, st.Path())
	errs := gathered(t, st, 200, func(int) error { _, err := st.Insert(t.Context(), task()); return err })
	must(t, errors.Join(errs...))
	n := commits(t, st.Path()) - before
	check(t, n >= 1 && n <= 60, "200 concurrent inserts are far fewer than 200 transactions, got %d", n)
	check(t, count(t, st) == 200, "all are stored")
	before = commits(t, st.Path())
	insert(t, st, task())
	check(t, commits(t, st.Path()) == before+1, "a lone insert is one transaction")
}

func TestAFailingCallDoesNotUndoItsNeighbours(t *testing.T) {
	st := newStore(t)
	boom := errors.New("boom")
	errs := gathered(t, st, 60, func(i int) error {
		switch i % 3 {
		case 0:
			return st.write(t.Context(), "x", func(tx *tx) error { // fails after it has written
				_, err := tx.insert(checked(st, task()))
				return errors.Join(err, boom)
			})
		case 1:
			return st.write(t.Context(), "x", func(*tx) error { return settle.ErrNotFound }) // fails before
		default:
			_, err := st.Insert(t.Context(), task())
			return err
		}
	})
	for i, err := range errs {
		switch i % 3 {
		case 0:
			isErr(t, err, boom)
		case 1:
			isErr(t, err, settle.ErrNotFound)
		default:
			check(t, err == nil, "a neighbour is not touched: %v", err)
		}
	}
	check(t, count(t, st) == 20, "the good ones are stored, and only they: %d", count(t, st))
}

func TestAPanicReachesItsCallerAndNobodyElse(t *testing.T) {
	st := newStore(t)
	errs := gathered(t, st, 30, func(i int) (err error) {
		if i%10 != 0 {
			_, err := st.Insert(t.Context(), task())
			return err
		}
		defer func() { err = fmt.Errorf("thrown: %v", recover()) }()
		return st.write(t.Context(), "x", func(tx *tx) error {
			_, err := tx.insert(checked(st, task()))
			must(t, err)
			panic("boom")
		})
	})
	for i, err := range errs {
		if i%10 == 0 {
			check(t, err != nil && strings.Contains(err.Error(), "thrown: panic: boom"), "the panic is thrown in the caller's goroutine: %v", err)
		} else {
			check(t, err == nil, "a neighbour is not touched: %v", err)
		}
	}
	check(t, count(t, st) == 27, "the others are stored: %d", count(t, st))
	func() {
		defer func() { check(t, recover() != nil, "a panic of a read is thrown too") }()
		_ = st.read(t.Context(), "x", func(conn, int64) error { panic("boom") })
	}()
	for range 2 * maxReaders {
		_ = count(t, st)
	}
	insert(t, st, task())
}

func TestACallThatGivesUpIsAnsweredAlsoIfItDidNotFit(t *testing.T) {
	st := newStore(t, Config{Synchronous: Normal})
	for range size(20, 500) {
		began := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		errs := gathered(t, st, 2, func(i int) error {
			if i == 0 {
				return st.write(t.Context(), "slow", func(*tx) error {
					close(began)
					wait(2 * batchWork) // the other one does not fit any more
					return nil
				})
			}
			go func() { <-began; cancel() }()
			_, err := st.Insert(ctx, task())
			return err
		})
		cancel()
		check(t, errs[0] == nil && (errs[1] == nil || errors.Is(errs[1], context.Canceled)), "both are answered: %v", errs)
	}
}

func TestLimitOfJobsHoldsForCallsThatShareATransaction(t *testing.T) {
	st := newStore(t, Config{MaxJobs: 10})
	errs := gathered(t, st, 50, func(int) error { _, err := st.Insert(t.Context(), task()); return err })
	full := 0
	for _, err := range errs {
		if err != nil {
			isErr(t, err, settle.ErrFull)
			full++
		}
	}
	check(t, full == 40 && count(t, st) == 10, "10 are accepted, got %d, %d refused", count(t, st), full)
}

// Counting a large table takes long, and everybody waits for the writer.
func TestJobsAreCountedOnlyNearTheLimit(t *testing.T) {
	st := newStore(t, Config{MaxJobs: 20})
	for range 3 {
		insert(t, st, task())
	}
	check(t, st.room.jobs == 3 && !st.room.exact, "far from the limit a bound does: %+v", st.room.jobs)
	must(t, st.write(t.Context(), "x", func(tx *tx) error { // all but the first have left
		_, err := tx.exec(`update live set n = n + 100 where n = 3`)
		return err
	}))
	st.room.counted = time.Time{}
	insert(t, st, task())
	check(t, st.room.jobs == 4 && st.room.exact, "gaps take no room: %+v", st.room.jobs)
}

func TestReadsDoNotBlockWrites(t *testing.T) {
	st := newStore(t)
	insert(t, st, task())
	must(t, st.read(t.Context(), "x", func(c conn, _ int64) error {
		before, err := number(c, `select count(*) from live`)
		must(t, err)
		insert(t, st, task()) // would hang
		after, err := number(c, `select count(*) from live`)
		check(t, before == 1 && after == 1, "a read sees one moment: %d, %d", before, after)
		return err
	}))
	// And a writer at work blocks no read.
	must(t, st.write(t.Context(), "x", func(*tx) error {
		check(t, count(t, st) == 2, "a read goes on beside the writer")
		return nil
	}))
}
