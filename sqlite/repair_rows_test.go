package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

func TestRepairTellsWhatItDid(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 300, 3)
	path := newPath(t)
	spill(t, path, s.closed)
	// Lose every live row: the page of the root.
	d := rawConn(t, path)
	root, err := number(d, `select rootpage from sqlite_schema where name = 'live'`)
	must(t, err)
	must(t, d.c.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	im, err := openImage(path)
	must(t, err)
	tree, _ := im.tree(uint32(root), map[uint32]bool{}, false)
	must(t, im.close())
	for _, n := range tree {
		_, err = f.WriteAt(make([]byte, page), int64(n-1)*page)
		must(t, err)
	}
	must(t, f.Close())
	r, err := Repair(t.Context(), path)
	must(t, err)
	st := openAt(t, path)
	live := 0
	for _, was := range s.jobs {
		now := get(t, st, was.ID)
		if !was.State.Live() {
			check(t, now.State == was.State, "an ended job is as it was")
			continue
		}
		live++
		last, _ := now.LastError()
		check(t, now.State == settle.Dead && strings.Contains(last.Error, "its state was lost in a damaged file"),
			"a job that lost its state is dead and says so: %s %q", now.State, last.Error)
		check(t, now.Attempt > was.Attempt-1 && bytes.Equal(now.Input, was.Input), "it keeps its payload, and its fence does not go back")
		check(t, len(now.Attempts) >= len(was.Attempts), "it keeps its history")
	}
	check(t, r.Stateless == live && live > 0, "the report counts them: got %d of %d", r.Stateless, live)
	check(t, strings.Contains(r.String(), "settle dead list") && strings.Contains(r.String(), r.Moved), "the report says what to do:\n%s", r)
	c := settle.NewClient(st)
	for _, was := range s.jobs {
		if was.State.Live() {
			j, err := c.Redrive(t.Context(), was.ID)
			must(t, err)
			check(t, j.State == settle.Pending, "a person can redrive it")
			break
		}
	}
}

// zeroRoots wipes the roots of tables, all of which have pages below them.
func zeroRoots(t *testing.T, path string, tables ...string) {
	t.Helper()
	d := rawConn(t, path)
	var roots []int64
	for _, table := range tables {
		n, err := number(d, `select rootpage from sqlite_schema where name = ?`, table)
		must(t, err)
		roots = append(roots, n)
	}
	must(t, d.c.Close())
	im, err := openImage(path)
	must(t, err)
	for i, n := range roots {
		kind, _ := im.kind(uint32(n))
		check(t, kind == tableInner, "%s has more than one page", tables[i])
	}
	must(t, im.close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	for _, n := range roots {
		_, err = f.WriteAt(make([]byte, page), (n-1)*page)
		must(t, err)
	}
	must(t, f.Close())
}

func TestRepairFindsRowsToWhichNothingLeads(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 600, 8)
	t.Run("roots lost", func(t *testing.T) {
		path := newPath(t)
		spill(t, path, s.closed)
		zeroRoots(t, path, "body", "live", "ended")
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Stateless == 0 && r.Bodiless == 0, "every row is found in its page: %s", r)
		st := openAt(t, path)
		for id, was := range s.jobs {
			now := get(t, st, id)
			check(t, now.State == was.State && now.Counters == was.Counters && len(now.Attempts) == len(was.Attempts), "job %s is as it was: %s, want %s", id, now.State, was.State)
		}
		check(t, count(t, st) == len(s.jobs), "and no removed job is back: %d of %d", count(t, st), len(s.jobs))
	})
	t.Run("the first page too", func(t *testing.T) {
		path := newPath(t)
		spill(t, path, s.closed)
		zeroRoots(t, path, "live", "ended")
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		_, err = f.WriteAt(make([]byte, page), 0)
		must(t, errors.Join(err, f.Close()))
		_, err = Repair(t.Context(), path)
		must(t, err)
		st := openAt(t, path)
		for id, was := range s.jobs {
			now := get(t, st, id)
			if was.State.Live() { // the list of free pages is lost: the row may be an old one
				check(t, now.State == settle.Dead, "a live row that may be stale is not run again: %s", now.State)
			} else {
				check(t, now.State == was.State, "an ended job is as it was: %s, want %s", now.State, was.State)
			}
		}
	})
}

func TestRepairKeepsEverythingOfASoundCopy(t *testing.T) {
	t.Parallel()
	// Only our own books are broken: SQLite finds nothing, so every row is copied.
	s := makeSample(t, 300, 4)
	path := newPath(t)
	spill(t, path, s.closed)
	d := rawConn(t, path)
	var lost settle.ID
	for id, j := range s.jobs {
		if j.State == settle.Pending && j.Attempt == 0 {
			lost = id
			_, err := d.exec(`delete from live where n = ?`, j.Fence.Handle)
			must(t, err)
			break
		}
	}
	before := dump(t, d)
	must(t, d.c.Close())
	r, err := Repair(t.Context(), path)
	must(t, err)
	check(t, !r.Sound && len(r.Problems) == 1 && strings.Contains(r.Problems[0], "1 jobs have no state"), "the broken books are named, got %v", r.Problems)
	d = rawConn(t, path)
	after := dump(t, d)
	for table, rows := range before {
		extra := 0
		if table == "ended" || table == "attempt" {
			extra = 1 // of the job without a state
		}
		check(t, len(after[table]) == len(rows)+extra, "table %s has all %d rows, got %d", table, len(rows), len(after[table]))
		for row := range rows {
			check(t, after[table][row] || table == "queue", "table %s: a row is gone or changed: %.300s", table, row)
		}
	}
	check(t, before["mine"] != nil && len(before["inbox"]) == 0, "tables of the program are looked at too")
	n, err := number(d, `select count(*) from sqlite_schema where name = 'mine_at'`)
	must(t, err)
	check(t, n == 1, "its indexes are made again")
	must(t, d.c.Close())
	st := openAt(t, path)
	check(t, get(t, st, lost).State == settle.Dead, "the job without a state is dead")
}

// dump reads all rows of all tables as text.
func dump(t testing.TB, d direct) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	var names []string
	must(t, d.query(`select name from sqlite_schema where type = 'table'`, func(r row) error { names = append(names, r.text(0)); return nil }))
	for _, name := range names {
		tab, err := describe(d, name)
		must(t, err)
		var cols []string
		for _, c := range tab.cols {
			cols = append(cols, "quote("+c.name+")")
		}
		out[name] = map[string]bool{}
		must(t, d.query(`select `+strings.Join(cols, "||','||")+` from `+name, func(r row) error { out[name][r.text(0)] = true; return nil }))
	}
	return out
}

func TestRepairOfDamagedIndexesAlone(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 400, 5)
	for _, index := range []string{"live_turn", "live_alarm", "ended_done", "sqlite_autoindex_body_1", "live_key"} {
		t.Run(index, func(t *testing.T) {
			path := newPath(t)
			spill(t, path, s.closed)
			d := rawConn(t, path)
			root, err := number(d, `select rootpage from sqlite_schema where name = ?`, index)
			must(t, err)
			before := dump(t, d)
			must(t, d.c.Close())
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			// An entry is missing: the page says that it has fewer.
			_, err = f.WriteAt([]byte{0, 1}, (root-1)*page+3)
			must(t, err)
			must(t, f.Close())
			r, err := Repair(t.Context(), path)
			must(t, err)
			sound(t, path)
			d = rawConn(t, path)
			after := dump(t, d)
			for table := range before {
				check(t, len(after[table]) == len(before[table]), "table %s keeps its rows", table)
			}
			if r.Sound {
				check(t, r.Reindexed && r.Moved == "", "the indexes are made anew in place")
			}
		})
	}
}

func TestRepairWithALog(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 400, 7)
	if len(s.open["-wal"]) < 100*page {
		t.Fatalf("the log has %d bytes: too few to prove anything", len(s.open["-wal"]))
	}
	with := func(do func(f map[string][]byte)) map[string][]byte {
		f := map[string][]byte{"": bytes.Clone(s.open[""]), "-wal": bytes.Clone(s.open["-wal"])}
		do(f)
		return f
	}
	t.Run("database file empty", func(t *testing.T) {
		f := with(func(f map[string][]byte) { f[""] = nil })
		judgeRepair(t, s, f)
	})
	t.Run("head garbage", func(t *testing.T) {
		judgeRepair(t, s, with(func(f map[string][]byte) { copy(f[""], "rubbish rubbish rubbish") }))
	})
	t.Run("log missing", func(t *testing.T) {
		judgeRepair(t, s, with(func(f map[string][]byte) { delete(f, "-wal") }))
	})
	t.Run("log garbled", func(t *testing.T) {
		judgeRepair(t, s, with(func(f map[string][]byte) { copy(f["-wal"][len(f["-wal"])/2:], make([]byte, 5000)) }))
	})
	t.Run("log garbled and pages lost", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 1))
		judgeRepair(t, s, with(func(f map[string][]byte) {
			copy(f["-wal"][len(f["-wal"])*3/4:], make([]byte, 5000))
			overwrite(rng, f[""], 5, noise(rng))
		}))
	})
}
