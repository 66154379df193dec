package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// long runs the same tests with bigger numbers.
var long = os.Getenv("SETTLE_LONG") != ""

func size(short, full int) int {
	if long {
		return full
	}
	return short
}

const (
	lease = 30 * time.Second
	me    = int64(7) // the worker
)

// free opens stores that do not look at the volume.
func free(c Config) Config {
	if c.KeepFree == 0 {
		c.KeepFree = -1
	}
	return c
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "settle.db") }

func openAt(t testing.TB, path string, cfg ...Config) *Store {
	t.Helper()
	c := Config{}
	if len(cfg) > 0 {
		c = cfg[0]
	}
	st, err := Open(path, free(c))
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	return st
}

func newStore(t testing.TB, cfg ...Config) *Store {
	t.Helper()
	return openAt(t, newPath(t), cfg...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

// check is one line of what must be true.
func check(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf("must be true: "+format, args...)
	}
}

func isErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func isInvalid(err error) bool {
	var e *settle.InvalidError
	return errors.As(err, &e)
}

func task(o ...settle.EnqueueOpts) settle.New {
	n := settle.New{Kind: "work", Input: []byte(`{"n":1}`)}
	if len(o) > 0 {
		n.EnqueueOpts = o[0]
	}
	return n
}

func tasks(n, bytes int) []settle.New {
	out := make([]settle.New, n)
	for i := range out {
		out[i] = task()
		out[i].Input = []byte(strings.Repeat("x", bytes))
	}
	return out
}

func insert(t testing.TB, st *Store, jobs ...settle.New) []settle.ID {
	t.Helper()
	got, err := st.Insert(t.Context(), jobs...)
	must(t, err)
	out := make([]settle.ID, len(got))
	for i, in := range got {
		out[i] = in.ID
	}
	return out
}

func request(limit int) settle.ClaimReq {
	return settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: []string{"work"}, Limit: limit, Lease: lease, Worker: me}
}

func take(t testing.TB, st *Store, limit int) []settle.ClaimedJob {
	t.Helper()
	got, err := st.Claim(t.Context(), request(limit))
	must(t, err)
	return got.Jobs
}

func takeOne(t testing.TB, st *Store) settle.ClaimedJob {
	t.Helper()
	jobs := take(t, st, 1)
	if len(jobs) != 1 {
		t.Fatalf("claim: got %d jobs, want 1", len(jobs))
	}
	return jobs[0]
}

// decided is what a worker would apply.
func decided(c settle.ClaimedJob, ev settle.Event) settle.Transition {
	m := settle.Decide(c.Snapshot, ev, c.Policy, 0.5)
	m.Fence.Handle, m.Fence.Worker = c.Handle, me
	return m
}

func success(out string) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte(out)}}
}

func failure(text string) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Error: text}}
}

func terminal(text string) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Error: text}}
}

func apply(t testing.TB, st *Store, ts ...settle.Transition) []settle.Applied {
	t.Helper()
	said, err := st.Apply(t.Context(), ts)
	must(t, err)
	return said
}

// drain runs every job to its success and returns how many.
func drain(t testing.TB, st *Store) (n int) {
	t.Helper()
	for {
		jobs := take(t, st, 500)
		if len(jobs) == 0 {
			return n
		}
		var ts []settle.Transition
		for _, j := range jobs {
			ts = append(ts, decided(j, success(`"ok"`)))
		}
		for _, s := range apply(t, st, ts...) {
			check(t, s == settle.Done, "a settle of a held job is applied, got %s", s)
		}
		n += len(jobs)
	}
}

func get(t testing.TB, st *Store, id settle.ID) settle.Job {
	t.Helper()
	j, err := st.Job(t.Context(), id)
	must(t, err)
	return j
}

func all(t testing.TB, st *Store, f settle.Filter) (out []settle.Job) {
	t.Helper()
	for {
		page, next, err := st.Jobs(t.Context(), f)
		must(t, err)
		if out = append(out, page...); next == (settle.Cursor{}) {
			return out
		}
		f.After = next
	}
}

func count(t testing.TB, st *Store, s ...settle.State) int {
	t.Helper()
	return len(all(t, st, settle.Filter{States: s}))
}

// rawConn is a connection beside the store's, as another program would have it.
func rawConn(t testing.TB, path string) direct {
	t.Helper()
	c, err := zs.OpenConn(fileURI(path), zs.OpenReadWrite, zs.OpenURI)
	must(t, err)
	c.SetBusyTimeout(5 * time.Second)
	t.Cleanup(func() { _ = c.Close() })
	return newDirect(c)
}

// sound fails the test unless SQLite and our own books find the file in order.
func sound(t testing.TB, path string) {
	t.Helper()
	c, err := zs.OpenConn(fileURI(path), zs.OpenReadWrite, zs.OpenURI)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	c.SetBusyTimeout(5 * time.Second)
	found, err := faults(newDirect(c))
	must(t, err)
	check(t, len(found) == 0, "%s is sound, got %v", path, found)
}

// together calls fn n times at once and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errs
}

// wait lets real time pass: for other processes, and locks of SQLite's own.
func wait(d time.Duration) { time.Sleep(d) }

// until polls a condition that another process or goroutine brings about.
func until(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); wait(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("must be true within %s: %s", limit, what)
		}
	}
}

type sqlTx = *sql.Tx

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// checked are jobs that are known to be right.
func checked(s *Store, jobs ...settle.New) []ready {
	out, err := s.check(jobs)
	if err != nil {
		panic(err)
	}
	return out
}
