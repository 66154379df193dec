package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// sample is a database with jobs in all states: as its files stand while it is
// open, with a log, and after it was closed.
type sample struct {
	open, closed map[string][]byte // suffix → bytes
	jobs         map[settle.ID]settle.Job
	rows         map[settle.ID]string // all that stands of a job
}

func makeSample(t testing.TB, n int, seed uint64) *sample {
	t.Helper()
	s := &sample{jobs: map[settle.ID]settle.Job{}, rows: map[settle.ID]string{}}
	path := newPath(t)
	st, err := Open(path, free(Config{Synchronous: Normal}))
	must(t, err)
	mixed(t, st, n, rand.New(rand.NewPCG(seed, 1)))
	for _, j := range all(t, st, settle.Filter{}) {
		s.jobs[j.ID] = get(t, st, j.ID)
		s.rows[j.ID], err = rowsOf(st.w.c, j)
		must(t, err)
	}
	must(t, st.InTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`create table mine (name text primary key, at real, note blob); create index mine_at on mine (at);
			insert into mine values ('one', 1.5, x'00ff'), ('two', 2, null)`)
		return err
	}))
	s.open = slurp(t, path)
	must(t, st.Close())
	s.closed = slurp(t, path)
	return s
}

func slurp(t testing.TB, path string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, s := range suffixes {
		if b, err := os.ReadFile(path + s); err == nil && s != "-shm" {
			out[s] = b
		}
	}
	return out
}

func spill(t testing.TB, path string, files map[string][]byte) {
	t.Helper()
	for s, b := range files {
		must(t, os.WriteFile(path+s, b, 0o640))
	}
}

// damage is one way to ruin a file.
type damage struct {
	name string
	do   func(rng *rand.Rand, files map[string][]byte)
}

const page = 4096

func overwrite(rng *rand.Rand, b []byte, n int, fill func() byte) {
	for range n {
		at := rng.IntN(len(b)/page) * page
		for i := range page {
			b[at+i] = fill()
		}
	}
}

func noise(rng *rand.Rand) func() byte { return func() byte { return byte(rng.Uint32()) } }

var damages = []damage{
	{"random pages", func(rng *rand.Rand, f map[string][]byte) { overwrite(rng, f[""], 1+rng.IntN(10), noise(rng)) }},
	{"zeroed pages", func(rng *rand.Rand, f map[string][]byte) {
		overwrite(rng, f[""], 1+rng.IntN(20), func() byte { return 0 })
	}},
	{"half of the pages", func(rng *rand.Rand, f map[string][]byte) { overwrite(rng, f[""], len(f[""])/page/2, noise(rng)) }},
	{"scattered bytes", func(rng *rand.Rand, f map[string][]byte) {
		for range 2000 {
			f[""][100+rng.IntN(len(f[""])-100)] = byte(rng.Uint32())
		}
	}},
	{"torn pages", func(rng *rand.Rand, f map[string][]byte) {
		for range 8 {
			at := rng.IntN(len(f[""])/page)*page + page/2
			copy(f[""][at:at+page/2], make([]byte, page/2))
		}
	}},
	{"pages in the wrong place", func(rng *rand.Rand, f map[string][]byte) {
		for range 5 {
			from, to := rng.IntN(len(f[""])/page)*page, rng.IntN(len(f[""])/page)*page
			copy(f[""][to:to+page], f[""][from:from+page])
		}
	}},
	{"garbage head", func(rng *rand.Rand, f map[string][]byte) {
		for i := range 100 {
			f[""][i] = byte(rng.Uint32())
		}
	}},
	{"first page lost", func(rng *rand.Rand, f map[string][]byte) {
		for i := range page {
			f[""][i] = byte(rng.Uint32())
		}
	}},
	{"cut short", func(rng *rand.Rand, f map[string][]byte) {
		f[""] = f[""][:page+rng.IntN(len(f[""])-page)]
	}},
}

// readable are the jobs whose rows SQLite itself still finds, one by one.
func readable(t testing.TB, path string, s *sample) (out []settle.Job) {
	t.Helper()
	var d direct
	for _, j := range s.jobs {
		if d.c == nil {
			c, err := zs.OpenConn(fileURI(path)+"?immutable=1", zs.OpenReadOnly, zs.OpenURI) // touches nothing
			if err != nil {
				return nil
			}
			d = newDirect(c)
		}
		rows, err := rowsOf(d, j)
		if err == nil && rows == s.rows[j.ID] {
			out = append(out, j)
		}
		if err != nil { // one error must not hide the next row
			_ = d.c.Close()
			d.c = nil
		}
	}
	if d.c != nil {
		must(t, d.c.Close())
	}
	return out
}

var quotedCols = map[string]string{
	"body":  "concat_ws(',', quote(id), at, queue, kind, tenant, quote(key), quote(policy), gated, quote(input))",
	"live":  "concat_ws(',', state, suspect, lane, stream, ord, due, alarm, deadline, since, attempt, excused, deferred, crashed, tries, redrives, base, gated, worker, quote(batch), quote(wait), quote(key))",
	"ended": "concat_ws(',', at, state, reason, since, attempt, excused, deferred, crashed, tries, redrives, base, worker, acked, quote(stream), quote(lane), quote(output))",
}

// rowsOf reads all columns of a job's two rows as text.
func rowsOf(d direct, j settle.Job) (text string, err error) {
	table := "live"
	if j.State.Ended() {
		table = "ended"
	}
	for _, table := range []string{"body", table} {
		_, err = one(d, `select `+quotedCols[table]+` from `+table+` where n = ?`, func(r row) error {
			text += r.text(0) + "\n"
			return nil
		}, j.Fence.Handle)
		if err != nil {
			return "", err
		}
	}
	return text, nil
}

func TestRepairSavesWhatIsReadable(t *testing.T) {
	s := makeSample(t, size(400, 2000), 1)
	big := makeSample(t, 2000, 2)
	for i, d := range damages {
		for seed := range size(3, 40) {
			t.Run(fmt.Sprintf("%s %d", d.name, seed), func(t *testing.T) {
				t.Parallel()
				from := s
				if seed == 0 {
					from = big
				}
				rng := rand.New(rand.NewPCG(uint64(i), uint64(seed)))
				files := map[string][]byte{"": bytes.Clone(from.closed[""])}
				d.do(rng, files)
				judgeRepair(t, from, files)
			})
		}
	}
}

// judgeRepair repairs files and holds the result to what must be true.
func judgeRepair(t *testing.T, s *sample, files map[string][]byte) {
	path := newPath(t)
	spill(t, path, files)
	want := readable(t, path, s)
	r, err := Repair(t.Context(), path)
	must(t, err)
	if r.Sound { // an unused page was hit, or indexes alone
		check(t, r.Moved == "", "a sound file stands where it stood")
	} else {
		for suffix, b := range files {
			kept, err := os.ReadFile(r.Moved + suffix)
			must(t, err)
			check(t, bytes.Equal(kept, b), "the original bytes of %q are preserved aside", suffix)
		}
		info, err := os.Stat(path)
		must(t, err)
		check(t, info.Mode().Perm() == 0o640, "the new file has the rights of the old one, got %v", info.Mode())
	}
	sound(t, path)
	st := openAt(t, path, Config{Synchronous: Normal})
	have := map[settle.ID]settle.Job{}
	for _, j := range all(t, st, settle.Filter{}) {
		have[j.ID] = get(t, st, j.ID)
	}
	compareRepaired(t, want, have)
	// The new file is used like any other.
	insert(t, st, task())
	for _, in := range take(t, st, 10) {
		apply(t, st, decided(in, success("")))
	}
	if r.Sound {
		return
	}
	again, err := Repair(t.Context(), path)
	check(t, err != nil && !again.Sound, "a file in use is refused, got %v", err)
}

func compareRepaired(t *testing.T, want []settle.Job, have map[settle.ID]settle.Job) {
	t.Helper()
	for _, w := range want {
		h, ok := have[w.ID]
		if !ok {
			t.Errorf("job %s (%s) could be read and is gone", w.ID, w.State)
			continue
		}
		check(t, h.State == w.State && h.Reason == w.Reason && h.Counters == w.Counters, "job %s keeps its state: got %s %s %+v, want %s %s %+v",
			w.ID, h.State, h.Reason, h.Counters, w.State, w.Reason, w.Counters)
		check(t, bytes.Equal(h.Input, w.Input) && bytes.Equal(h.Output, w.Output), "job %s keeps input and output", w.ID)
		check(t, h.Fence.Handle == w.Fence.Handle, "job %s keeps its row id", w.ID)
	}
}

func TestRepairTellsWhatItDid(t *testing.T) {
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

func TestRepairKeepsEverythingOfASoundCopy(t *testing.T) {
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

func TestRepairLeavesSoundFilesAlone(t *testing.T) {
	s := makeSample(t, 100, 6)
	t.Run("sound", func(t *testing.T) {
		path := newPath(t)
		spill(t, path, s.closed)
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound && !r.Reindexed && strings.Contains(r.String(), "is sound: nothing was changed"), "it says so: %s", r)
		check(t, bytes.Equal(slurp(t, path)[""], s.closed[""]), "no byte is changed")
	})
	t.Run("with a log", func(t *testing.T) {
		path := newPath(t)
		spill(t, path, s.open)
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound, "a log is no damage: %v", r)
		check(t, len(all(t, openAt(t, path), settle.Filter{})) == len(s.jobs), "nothing of the log is lost")
	})
	t.Run("empty file", func(t *testing.T) {
		path := newPath(t)
		must(t, os.WriteFile(path, nil, 0o600))
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound, "an empty file is an empty database")
		insert(t, openAt(t, path), task())
	})
	t.Run("another program's database", func(t *testing.T) {
		path := newPath(t)
		c, err := zs.OpenConn(path, zs.OpenReadWrite|zs.OpenCreate)
		must(t, err)
		_, err = newDirect(c).exec(`create table theirs (a)`)
		must(t, err)
		must(t, c.Close())
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound, "it is sound")
	})
}

func TestRepairRefuses(t *testing.T) {
	dir := t.TempDir()
	refused := func(path, why string) {
		t.Helper()
		_, err := Repair(t.Context(), path)
		var r *settle.RefusedError
		check(t, errors.As(err, &r) && r.Recover != "" && strings.Contains(err.Error(), why), "%s is refused with a command, because it %s: got %v", path, why, err)
	}
	refused(dir, "is a directory")
	refused(filepath.Join(dir, "none.db"), "does not exist")
	st := newStore(t)
	refused(st.Path(), "is in use")
	insert(t, st, task())
	check(t, len(take(t, st, 1)) == 1, "the store that has it open goes on")

	newer := newPath(t)
	st = openAt(t, newer)
	_, err := st.w.c.exec(`update schema_version set version = 99`)
	must(t, err)
	must(t, st.Close())
	b, err := os.ReadFile(newer)
	must(t, err)
	copy(b[8*page:9*page], make([]byte, page)) // something of it
	must(t, os.WriteFile(newer, b, 0o600))
	refused(newer, "has schema 99")
	check(t, bytes.Equal(slurp(t, newer)[""], b), "nothing is changed by a refusal")
	left, err := filepath.Glob(newer + ".*")
	must(t, err)
	check(t, len(left) == 0, "and nothing is left lying about: %v", left)
}

func TestRepairWithALog(t *testing.T) {
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

func TestRepairOfAnythingElse(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	random := make([]byte, 50_000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for name, b := range map[string][]byte{"text": []byte("this is a shopping list\n"), "random": random,
		"zeros": make([]byte, 20*page), "head alone": []byte("SQLite format 3\x00")} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			must(t, os.WriteFile(path, b, 0o600))
			_, err := Open(path)
			check(t, err != nil && strings.Contains(err.Error(), "settle repair"), "opening it names the command, got %v", err)
			r, err := Repair(t.Context(), path)
			must(t, err)
			kept, err := os.ReadFile(r.Moved)
			must(t, err)
			check(t, bytes.Equal(kept, b), "its bytes are preserved aside")
			sound(t, path)
			insert(t, openAt(t, path), task())
		})
	}
}

func TestRepairNeverOverwritesWhatLiesAside(t *testing.T) {
	path := newPath(t)
	names := map[string]bool{}
	for range 3 { // within one second
		must(t, os.WriteFile(path, []byte("rubbish"), 0o600))
		r, err := Repair(t.Context(), path)
		must(t, err)
		names[r.Moved] = true
	}
	check(t, len(names) == 3, "each damaged file has a name of its own: %v", names)
	for n := range names {
		b, err := os.ReadFile(n)
		must(t, err)
		check(t, string(b) == "rubbish", "and its bytes")
	}
}
