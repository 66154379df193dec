package sqlite

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
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
	last         int64                // number of a job
	removed      int64                // jobs, counted
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
	s.last, err = number(st.w.c, `select seq from sqlite_sequence`)
	must(t, err)
	s.removed, err = number(st.w.c, `select coalesce(sum(n), 0) from tally`)
	must(t, err)
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
	seeds := size(4, 40)
	if raced {
		seeds = 1
	}
	small, big := makeSample(t, 400, 1), makeSample(t, 2000, 2)
	for i, d := range damages {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s %d", d.name, seed), func(t *testing.T) {
				t.Parallel()
				from := big
				if seed%2 == 1 || raced && i > 1 {
					from = small
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
	if !r.Sound {
		books, err := st.Audit(t.Context(), 0)
		must(t, err)
		if r.Highest <= s.last && books.Removed <= s.removed { // else a number is damaged into a greater one, and nothing shows it
			judgeLosses(t, r, int64(len(s.jobs)-len(have)))
		}
		check(t, books.Balanced() && books.WrittenOff == r.Lost, "the books balance and know of %d lost jobs: %+v", r.Lost, books)
	}
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
