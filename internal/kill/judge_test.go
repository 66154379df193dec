//go:build linux

package kill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// file is a database that children work on, as the parent sees it.
type file struct {
	t           *testing.T
	what        string // for messages: the point and the seed
	path, diary string
	written     *reader // of the diary
	ahead       time.Duration
	unsaid      int64 // removals that no process lived to tell of
}

func newFile(t *testing.T, what string) *file {
	dir := t.TempDir()
	diary := filepath.Join(dir, "diary")
	return &file{t: t, what: what, path: filepath.Join(dir, "settle.db"), diary: diary, written: &reader{path: diary}}
}

func (f *file) check(ok bool, format string, args ...any) {
	f.t.Helper()
	if !ok {
		f.t.Errorf("%s: must be true: %s", f.what, fmt.Sprintf(format, args...))
	}
}

// with opens the file, as the next process does, for one look.
func (f *file) with(look func(*sqlite.Store)) {
	f.t.Helper()
	st, err := openStore(f.path, f.ahead, true)
	if err != nil {
		f.t.Fatalf("%s: the next start opens the file: %v", f.what, err)
	}
	look(st)
	must(f.t, st.Close())
}

// order fills in where this file is.
func (f *file) order(o order) order {
	o.Path, o.Diary, o.Ahead = f.path, f.diary, f.ahead
	return o
}

// hand is the parent's own store: it tells the diary what it does.
func (f *file) hand(st settle.Store) mortal {
	d, err := openDiary(f.diary)
	must(f.t, err)
	return mortal{st, newMortality(order{}), d}
}

func (f *file) enqueue(jobs ...settle.New) {
	f.t.Helper()
	f.with(func(st *sqlite.Store) {
		_, err := f.hand(st).Insert(ctx, jobs...)
		must(f.t, err)
	})
}

// sight is what the file holds.
type sight struct {
	books settle.Books
	jobs  map[settle.ID]settle.Job
}

// look leaves out what came after its beginning: else producers that are flat
// out would keep it going for ever.
func look(st settle.Store) (s sight, err error) {
	s.jobs = map[settle.ID]settle.Job{}
	if s.books, err = st.Audit(ctx, 0); err != nil {
		return s, err
	}
	for j, err := range settle.NewClient(st).List(ctx, settle.Filter{Limit: 1000}) {
		if err != nil {
			return s, err
		}
		if j.Fence.Handle > s.books.Accepted {
			break
		}
		s.jobs[j.ID] = j
	}
	return s, nil
}

// judge looks at a file on which nobody works, and holds it to the diary.
func (f *file) judge() (s sight) {
	f.t.Helper()
	f.with(func(st *sqlite.Store) {
		var err error
		s, err = look(st)
		must(f.t, err)
	})
	f.check(sound(f.path) == nil, "SQLite finds no fault: %v", sound(f.path))
	f.judgeBooks(s)
	f.judgeDiary(s, f.lines())
	return s
}

func (f *file) judgeBooks(s sight) {
	f.t.Helper()
	f.check(s.books.Balanced() && len(s.books.Overdue) == 0, "the books balance: %+v", s.books)
	f.check(int64(len(s.jobs))+s.books.Removed == s.books.Accepted, "%d jobs are there, %d were removed, %d accepted", len(s.jobs), s.books.Removed, s.books.Accepted)
	for id, j := range s.jobs {
		f.check(j.Charged() <= j.Policy.Attempts && j.Crashed <= j.Policy.Crashes, "job %s keeps to its attempts: %+v", id, j.Counters)
		spent := j.Crashed == j.Policy.Crashes || j.Charged() == j.Policy.Attempts
		f.check(j.State != settle.Dead || spent, "job %s is dead because its budget is spent: %s %+v", id, j.Reason, j.Counters)
	}
}

// judgeDiary compares what was acknowledged with what is there, line by line.
func (f *file) judgeDiary(s sight, lines []line) {
	f.t.Helper()
	over, asked, starts, gone := map[settle.ID]bool{}, map[settle.ID]bool{}, map[settle.ID]int{}, map[settle.ID]bool{}
	for _, l := range lines {
		j, there := s.jobs[l.job]
		switch l.word {
		case doing + opEnqueue:
			asked[l.job] = true
		case did + opEnqueue:
			if !there {
				gone[l.job] = true
			}
		case started:
			f.check(!over[l.job], "job %s does not run again after its end", l.job)
			starts[l.job]++
			f.check(!there || starts[l.job] <= j.Attempt && l.n <= j.Attempt, "each start of job %s was counted before: %d starts, attempt %d, %+v", l.job, starts[l.job], l.n, j.Counters)
		case ended:
			f.check(!over[l.job], "job %s ends once", l.job)
			over[l.job] = true
			f.check(!there || j.State.Ended() && j.Attempt == l.n, "the acknowledged end of job %s stands: %s %+v, want attempt %d", l.job, j.State, j.Counters, l.n)
		}
	}
	f.check(int64(len(gone)) <= s.books.Removed, "every acknowledged job is there or was removed: %d are not, %d were", len(gone), s.books.Removed)
	for id := range gone {
		f.check(over[id], "job %s was removed after its end", id)
	}
	for id := range s.jobs {
		f.check(asked[id], "job %s was enqueued by somebody", id)
	}
}

// sound asks SQLite itself.
func sound(path string) error {
	said, err := ask(path, "pragma integrity_check(5)")
	if err == nil && said != "ok" {
		err = errors.New(said)
	}
	return err
}

// ask reads one value beside the store.
func ask(path, query string) (value string, err error) {
	c, err := zs.OpenConn(path, zs.OpenReadWrite)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetBusyTimeout(5 * time.Second)
	s, _, err := c.PrepareTransient(query)
	if err != nil {
		return "", err
	}
	defer s.Finalize()
	_, err = s.Step()
	return s.ColumnText(0), err
}

// recover is what the living do after a lease: time passes, and a sweep ends it.
func (f *file) recover() {
	f.t.Helper()
	f.ahead += 10 * time.Minute
	f.with(func(st *sqlite.Store) { must(f.t, sweep(f.hand(st))) })
}

// judgeKept holds the file to the answers that were acknowledged before their
// park: each is the result of its step by now, and its attempt no crash.
func (f *file) judgeKept() {
	f.t.Helper()
	f.with(func(st *sqlite.Store) {
		for _, l := range f.lines() {
			if l.word != did+opKeep {
				continue
			}
			j, err := st.Job(ctx, l.job)
			must(f.t, err)
			f.check(len(j.Steps) == 1 && j.Excused == 1, "the answer to attempt %d of job %s is not lost: %d results, %+v", l.n, l.job, len(j.Steps), j.Counters)
			for _, a := range j.Attempts {
				f.check(a.N != l.n, "attempt %d of job %s, which was answered, is no failure: %+v", l.n, l.job, a)
			}
		}
	})
}

// abandon claims jobs as a worker that died long ago.
func (f *file) abandon(n int) {
	f.t.Helper()
	f.with(func(st *sqlite.Store) {
		got, err := f.hand(st).Claim(ctx, settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: []string{plain.Name()}, Limit: n, Lease: time.Microsecond, Worker: 13})
		must(f.t, err)
		f.check(len(got.Jobs) == n, "%d jobs are claimed: %d", n, len(got.Jobs))
	})
}

// finish lets a worker that nobody kills do what is left: all jobs end, none
// without its reason.
func (f *file) finish() (s sight) {
	f.t.Helper()
	for range 20 {
		f.recover()
		f.with(func(st *sqlite.Store) { f.drain(f.hand(st)) })
		if s = f.judge(); s.books.Live == 0 {
			return s
		}
	}
	f.check(false, "a clean worker finishes: %d jobs are live", s.books.Live)
	return s
}

func (f *file) drain(st mortal) {
	f.t.Helper()
	w := worker.New(st, worker.Config{UntilIdle: true, Logger: slog.New(slog.DiscardHandler), Keep: settle.Keep{Succeeded: 1000 * time.Hour}})
	for _, k := range []settle.Kind[int, int]{plain, distant} {
		worker.Handle(w, k, func(_ context.Context, j *worker.Job[int]) (int, error) {
			st.diary.write(line{word: started, job: j.ID, n: j.Attempt})
			return j.In, nil
		})
	}
	bound, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	must(f.t, w.Run(bound))
	must(f.t, bound.Err())
}

// lines returns the diary so far.
func (f *file) lines() []line { return f.written.all(f.t) }

// unanswered are the lines of the call that the process did not survive.
func unanswered(lines []line, op string) (out []line) {
	for _, l := range lines {
		switch l.word {
		case doing + op:
			out = append(out, l)
		case did + op:
			out = slices.DeleteFunc(out, func(o line) bool { return o.job == l.job && o.n == l.n })
		}
	}
	return out
}
