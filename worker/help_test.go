package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
)

// quiet is a Config for tests: no logs.
func quiet(c Config) Config {
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

// start runs a worker in the background of a bubble. stop ends its context,
// waits for Run and returns its error; it may be called more than once.
func start(t *testing.T, w *Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() { err = w.Run(ctx); close(done) }()
	t.Cleanup(cancel)
	synctest.Wait()
	return func() error { cancel(); <-done; return err }
}

// bubble runs a test with a fake clock and checks the store's invariants.
func bubble(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		test(t, f)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, fault := range f.faults {
			t.Error(fault)
		}
	})
}

// tape records from any goroutine.
type tape[T any] struct {
	mu   sync.Mutex
	list []T
}

func (r *tape[T]) add(v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, v)
}

func (r *tape[T]) all() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// nap lets fake time pass.
func nap(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// raw registers a handler that needs neither input nor output.
func raw(w *Worker, kind string, f func(context.Context, *Job[[]byte]) error) {
	HandleRaw(w, kind, func(ctx context.Context, j *Job[[]byte]) ([]byte, error) { return nil, f(ctx, j) })
}

// wantState checks where a job stands.
func wantState(t *testing.T, f *fake, id settle.ID, want settle.State, attempts int) settle.Job {
	t.Helper()
	j := f.get(t, id)
	if j.State != want || j.Attempt != attempts {
		t.Errorf("job is %s after %d attempts (%s), want %s after %d", j.State, j.Attempt, j.Reason, want, attempts)
	}
	return j
}

// owned says how many rows a worker holds.
func (f *fake) owned(id int64) int {
	return f.count(func(j settle.Job) bool { return j.State == settle.Running && j.Worker == id })
}

// pol is EnqueueOpts with a policy.
func pol(p settle.Policy) settle.EnqueueOpts { return settle.EnqueueOpts{Policy: &p} }

// link is one process's way to a fake: it can be cut without the others.
type link struct {
	*fake
	cut atomic.Pointer[func(op string) error]
}

func (l *link) cutWith(f func(op string) error) { l.cut.Store(&f) }

func (l *link) ask(op string) error {
	if f := l.cut.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

func (l *link) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	if err := l.ask("claim"); err != nil {
		return settle.ClaimedJobs{}, err
	}
	return l.fake.Claim(ctx, r)
}

func (l *link) Renew(ctx context.Context, w int64, held []settle.Held, lease time.Duration) ([]settle.ID, error) {
	if err := l.ask("renew"); err != nil {
		return nil, err
	}
	return l.fake.Renew(ctx, w, held, lease)
}

func (l *link) Apply(ctx context.Context, ts []settle.Transition) ([]settle.Applied, error) {
	if err := l.ask("apply"); err != nil {
		return nil, err
	}
	return l.fake.Apply(ctx, ts)
}

func (l *link) Overdue(ctx context.Context, after settle.Cursor, n int) (settle.Overdue, error) {
	if err := l.ask("overdue"); err != nil {
		return settle.Overdue{}, err
	}
	return l.fake.Overdue(ctx, after, n)
}

// down fails the named operations.
func down(ops ...string) func(string) error {
	return func(op string) error {
		if slices.Contains(ops, op) {
			return errDown
		}
		return nil
	}
}
