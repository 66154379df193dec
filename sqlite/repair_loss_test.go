package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

// judgeLosses holds a report to how many jobs are really gone.
func judgeLosses(t *testing.T, r Report, gone int64) {
	t.Helper()
	exact := !r.EndUnknown && !r.RemovedUnknown && r.Stale == 0
	check(t, !exact || r.Lost == gone, "exactly the lost jobs are reported: got %d, want %d\n%s", r.Lost, gone, r)
	check(t, r.RemovedUnknown || r.Lost <= max(gone, 0), "no more than the lost jobs are reported: got %d, want %d\n%s", r.Lost, gone, r)
	check(t, gone <= 0 || !r.Whole(), "that jobs are lost is not passed over: %d\n%s", gone, r)
	check(t, r.Whole() == (len(r.Losses()) == 0), "what is not whole is explained:\n%s", r)
}

// stored makes a closed file of n equal jobs and returns its bytes.
func stored(t *testing.T, n int) []byte {
	t.Helper()
	path := newPath(t)
	st, err := Open(path, free(Config{Synchronous: Normal}))
	must(t, err)
	insert(t, st, tasks(n, 40)...)
	must(t, st.Close())
	return slurp(t, path)[""]
}

// rootOf is where a table begins in a file.
func rootOf(t *testing.T, path, table string) int64 {
	t.Helper()
	d := rawConn(t, path)
	root, err := number(d, `select rootpage from sqlite_schema where name = ?`, table)
	must(t, err)
	must(t, d.c.Close())
	check(t, root > 1, "%s has a page", table)
	return (root - 1) * page
}

func repaired(t *testing.T, path string, b []byte) (Report, settle.Books) {
	t.Helper()
	must(t, os.WriteFile(path, b, 0o600))
	r, err := Repair(t.Context(), path)
	must(t, err)
	st, err := Open(path, free(Config{MustExist: true}))
	must(t, err)
	books, err := st.Audit(t.Context(), 0)
	must(t, err)
	must(t, st.Close())
	check(t, books.Balanced() && books.WrittenOff == r.Lost, "the books balance and know of the loss: %+v\n%s", books, r)
	return r, books
}

func TestRepairCountsTheJobsOfACutFile(t *testing.T) {
	t.Parallel()
	const jobs = 3000
	whole := stored(t, jobs)
	for _, percent := range []int{90, 50, 10} {
		r, books := repaired(t, newPath(t), bytes.Clone(whole[:len(whole)*percent/100]))
		gone := jobs - books.Live - books.Dead
		check(t, r.Lost == gone && gone > 100 && !r.EndUnknown && !r.Whole(), "of %d %%: %d jobs are lost, %d reported", percent, gone, r.Lost)
		check(t, strings.Contains(r.String(), fmt.Sprintf("%d jobs are lost", gone)) && !strings.Contains(r.String(), "at least"), "the report says so: %s", r)
		check(t, books.Accepted == jobs, "all are known to the books: %d", books.Accepted)
	}
	r, _ := repaired(t, newPath(t), bytes.Clone(whole[:page]))
	check(t, r.EndUnknown && strings.Contains(r.String(), "an unknown number of jobs is lost") && !r.Whole(), "with the head alone nothing is known: %s", r)
}

func TestRepairSaysAtLeastWithoutTheLastNumber(t *testing.T) {
	t.Parallel()
	const jobs = 3000
	path := newPath(t)
	b := stored(t, jobs)
	must(t, os.WriteFile(path, b, 0o600))
	root := rootOf(t, path, "sqlite_sequence")
	b = slurp(t, path)[""]
	copy(b[root:root+page], make([]byte, page))
	r, books := repaired(t, path, b[:len(b)*9/10])
	gone := jobs - books.Live - books.Dead
	check(t, r.EndUnknown && r.Lost > 100 && r.Lost <= gone, "at least %d jobs are lost, %d are", r.Lost, gone)
	check(t, strings.Contains(r.String(), fmt.Sprintf("at least %d jobs are lost", r.Lost)) &&
		strings.Contains(r.String(), fmt.Sprintf("nothing is known of jobs stored after number %d", r.Highest)), "the report says so: %s", r)
}

func TestRepairCountsRemovedAndWrittenOffJobsOnce(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st, err := Open(path, free(Config{Synchronous: Normal}))
	must(t, err)
	ids := insert(t, st, tasks(1000, 40)...)
	drain(t, st)
	removed, err := st.Remove(t.Context(), ids[:300])
	must(t, err)
	insert(t, st, tasks(1000, 40)...)
	must(t, st.Close())
	b := slurp(t, path)[""]
	first, books := repaired(t, path, b[:len(b)*3/4])
	gone := 2000 - int64(removed) - books.Live - books.Dead - books.Succeeded
	check(t, removed == 300 && books.Removed == 300 && first.Lost == gone && gone > 0, "what was removed is not lost: %d lost, %d reported", gone, first.Lost)
	b = slurp(t, path)[""]
	must(t, os.WriteFile(path, b[:len(b)/3], 0o600))
	second, err := Repair(t.Context(), path)
	must(t, err)
	st = openAt(t, path)
	books, err = st.Audit(t.Context(), 0)
	must(t, err)
	check(t, books.Balanced() && second.Lost > 0 && books.WrittenOff == first.Lost+second.Lost, "a second repair reports its own losses: %d and %d, %+v", first.Lost, second.Lost, books)
}

func TestRepairThatSavesEverythingSaysSo(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	must(t, os.WriteFile(path, stored(t, 1000), 0o600))
	zeroRoots(t, path, "body", "live")
	r, err := Repair(t.Context(), path)
	must(t, err)
	check(t, !r.Sound && r.Whole() && r.Lost == 0 && len(r.Losses()) == 0, "nothing is lost: %s", r)
	check(t, count(t, openAt(t, path)) == 1000, "all jobs are there")
}

// TestRepairIsNotLedByADamagedNumber: nobody is told of a trillion lost jobs.
func TestRepairIsNotLedByADamagedNumber(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"body", "sequence"} {
		path := newPath(t)
		must(t, os.WriteFile(path, stored(t, 1000), 0o600))
		d := rawConn(t, path)
		for _, q := range map[string][]string{
			"body":     {`update body set n = 1 << 60 where n = 500`, `delete from live where n = 500`, `update sqlite_sequence set seq = 1000`},
			"sequence": {`delete from live where n = 500`, `update sqlite_sequence set seq = 1 << 60`},
		}[where] {
			_, err := d.exec(q)
			must(t, err)
		}
		must(t, d.c.Close())
		r, books := repaired(t, path, slurp(t, path)[""])
		check(t, books.Accepted == 1000 && r.Lost <= 1, "%s: %d jobs were accepted, %d are lost: %s", where, books.Accepted, r.Lost, r)
		check(t, where == "body" || r.EndUnknown, "%s: a number that cannot be right is not the last one: %s", where, r)
	}
}

func TestRepairOfALogThatIsDamagedInItsMiddle(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st, err := Open(path, free(Config{Synchronous: Normal}))
	must(t, err)
	for range 100 {
		insert(t, st, task())
	}
	files := slurp(t, path)
	must(t, st.Close())
	log := files["-wal"]
	copy(log[len(log)/2:], make([]byte, 5000))
	spill(t, path, files)
	r, err := Repair(t.Context(), path)
	must(t, err)
	check(t, !r.Sound && r.EndUnknown && !r.Whole(), "SQLite would throw the rest away and find nothing wrong: %s", r)
	st = openAt(t, path)
	gone := int64(100 - count(t, st))
	check(t, gone > 0 && r.Lost == gone, "the lost jobs are counted by what stands behind the damage: %d, reported %d", gone, r.Lost)
	kept, err := os.ReadFile(r.Moved + "-wal")
	check(t, err == nil && bytes.Equal(kept, log), "the log is kept aside: %v", err)
}

// TestRepairNamesFindingsOneByOne: SQLite puts many into one text.
func TestRepairNamesFindingsOneByOne(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	b := stored(t, 3000)
	for i := 100 * page; i < 110*page; i++ {
		b[i] = 0x55
	}
	r, _ := repaired(t, path, b)
	check(t, len(r.Problems) > 5, "each is one: %q", r.Problems)
	for _, p := range r.Problems {
		check(t, !strings.Contains(p, "\n") && !strings.Contains(p, "***") && strings.Count(p, "Tree ") <= 1, "one finding: %q", p)
	}
	check(t, len(r.Found()) == shownProblems+1 && strings.Contains(r.Found()[shownProblems], "more"), "a person reads the first ones: %q", r.Found())
}
