package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// onSQLite runs a test in a bubble with an embedded store.
func onSQLite(t *testing.T, test func(t *testing.T, st *sqlite.Store, c *settle.Client)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settle.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(file, sqlite.Config{Synchronous: sqlite.Normal})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		test(t, st, settle.NewClient(st))
	})
}

func quiet(c worker.Config) worker.Config {
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

// run starts a worker; the function that it returns stops it.
func run(t *testing.T, w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func counts(t *testing.T, st *sqlite.Store) map[settle.State]int {
	t.Helper()
	list, err := st.Counts(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	n := map[settle.State]int{}
	for _, c := range list {
		n[c.State] += c.N
	}
	return n
}

func TestP1EveryJobEndsOnSQLite(t *testing.T) {
	kind := settle.Define[int, int]("mixed", settle.Policy{Attempts: 3, Deferrals: 5, Timeout: time.Second,
		BackoffMin: time.Second, BackoffMax: time.Minute, Deadline: time.Hour})
	onSQLite(t, func(t *testing.T, st *sqlite.Store, c *settle.Client) {
		w := worker.New(st, quiet(worker.Config{Slots: 8, Poll: 10 * time.Second}))
		worker.Handle(w, kind, func(ctx context.Context, j *worker.Job[int]) (int, error) {
			switch j.In % 7 {
			case 0:
				return 0, errors.New("always")
			case 1:
				return 0, settle.Terminal(errors.New("never"))
			case 2:
				return 0, settle.Snooze(time.Second)
			case 3:
				panic("boom")
			case 4:
				<-ctx.Done()
				return 0, ctx.Err()
			case 5:
				if j.Attempt == 1 {
					return 0, errors.New("once")
				}
			}
			return j.In, nil
		})
		const jobs = 350
		for i := range jobs {
			if _, err := kind.Enqueue(t.Context(), c, i, settle.EnqueueOpts{Tenant: fmt.Sprint("t", i%10)}); err != nil {
				t.Fatal(err)
			}
		}
		stop := run(t, w)
		time.Sleep(10 * time.Minute)
		stop()
		n := counts(t, st)
		if n[settle.Succeeded] != jobs*2/7 || n[settle.Dead] != jobs*5/7 {
			t.Errorf("%v, want %d succeeded and %d dead", n, jobs*2/7, jobs*5/7)
		}
	})
}

func TestB009ThreeHundredRacesOfCancelAndFinishOnSQLite(t *testing.T) {
	kind := settle.Define[settle.None, settle.None]("race", settle.Policy{})
	onSQLite(t, func(t *testing.T, st *sqlite.Store, c *settle.Client) {
		w := worker.New(st, quiet(worker.Config{}))
		worker.Handle(w, kind, func(context.Context, *worker.Job[settle.None]) (settle.None, error) {
			time.Sleep(rand.N(2 * time.Millisecond))
			return settle.None{}, nil
		})
		stop := run(t, w)
		for range 300 {
			id, err := kind.Enqueue(t.Context(), c, settle.None{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(2 * time.Millisecond))
			told, err := c.Cancel(t.Context(), id, "race")
			switch {
			case err == nil && told.State != settle.Cancelled:
				t.Fatalf("a cancel was acknowledged for a job that is %s", told.State)
			case err != nil && !settle.IsStale(err):
				t.Fatal(err)
			}
			want := settle.Succeeded
			if err == nil {
				want = settle.Cancelled
			}
			time.Sleep(3 * time.Millisecond)
			if j, err := c.Get(t.Context(), id); err != nil || j.State != want {
				t.Fatalf("the caller was told %v, the job is %s (%v)", want, j.State, err)
			}
		}
		stop()
	})
}

func TestB010NothingIsOwnedAfterRunOnSQLite(t *testing.T) {
	kind := settle.Define[int, settle.None]("work", settle.Policy{})
	onSQLite(t, func(t *testing.T, st *sqlite.Store, c *settle.Client) {
		for i := range 500 {
			if _, err := kind.Enqueue(t.Context(), c, i); err != nil {
				t.Fatal(err)
			}
		}
		for round := range 20 {
			w := worker.New(st, quiet(worker.Config{Slots: 4, Drain: 5 * time.Millisecond}))
			worker.Handle(w, kind, func(ctx context.Context, j *worker.Job[int]) (settle.None, error) {
				select {
				case <-time.After(rand.N(10 * time.Millisecond)):
					return settle.None{}, nil
				case <-ctx.Done():
					return settle.None{}, ctx.Err()
				}
			})
			stop := run(t, w)
			time.Sleep(rand.N(20 * time.Millisecond))
			stop()
			if n := counts(t, st)[settle.Running]; n != 0 {
				t.Fatalf("round %d: %d rows run after Run returned", round, n)
			}
		}
		jobs, _, err := st.Jobs(t.Context(), settle.Filter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.State == settle.Pending && j.Charged() != 0 {
				t.Errorf("a job that was handed back is charged %d attempts", j.Charged())
			}
		}
	})
}

func TestB003B005ALostWorkersJobsGoOnOnSQLite(t *testing.T) {
	kind := settle.Define[settle.None, settle.None]("lost", settle.Policy{Crashes: 5, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	onSQLite(t, func(t *testing.T, st *sqlite.Store, c *settle.Client) {
		id, err := kind.Enqueue(t.Context(), c, settle.None{})
		if err != nil {
			t.Fatal(err)
		}
		sweeper := worker.New(st, quiet(worker.Config{})) // knows no kind at all
		stop := run(t, sweeper)
		for n := range 2 {
			got, err := st.Claim(t.Context(), settle.ClaimReq{Queue: "default", Kinds: []string{"lost"}, Limit: 1, Lease: 10 * time.Second, Worker: 9})
			if err != nil || len(got.Jobs) != 1 {
				t.Fatalf("claimed %d, %v", len(got.Jobs), err)
			}
			time.Sleep(30 * time.Second)
			if j, err := c.Get(t.Context(), id); err != nil || j.State != settle.Pending || j.Attempt != n+1 || j.Attempts[n].Reason != settle.AttemptWorkerLost {
				t.Fatalf("job is %s after %d attempts, %+v, %v", j.State, j.Attempt, j.Attempts, err)
			}
		}
		w := worker.New(st, quiet(worker.Config{UntilIdle: true}))
		worker.Handle(w, kind, func(context.Context, *worker.Job[settle.None]) (settle.None, error) { return settle.None{}, nil })
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j, err := c.Get(t.Context(), id); err != nil || j.State != settle.Succeeded || j.Attempt != 3 {
			t.Errorf("job is %s after %d attempts, %v", j.State, j.Attempt, err)
		}
		stop()
	})
}

func TestASuspectRunsAloneOnSQLite(t *testing.T) {
	kind := settle.Define[bool, settle.None]("suspect", settle.Policy{Crashes: 2, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	onSQLite(t, func(t *testing.T, st *sqlite.Store, c *settle.Client) {
		if _, err := kind.Enqueue(t.Context(), c, true); err != nil {
			t.Fatal(err)
		}
		if got, err := st.Claim(t.Context(), settle.ClaimReq{Queue: "default", Kinds: []string{"suspect"}, Limit: 1, Lease: time.Second, Worker: 9}); err != nil || len(got.Jobs) != 1 {
			t.Fatalf("claimed %d, %v", len(got.Jobs), err)
		}
		w := worker.New(st, quiet(worker.Config{Slots: 4}))
		var running, suspects atomic.Int64
		worker.Handle(w, kind, func(_ context.Context, j *worker.Job[bool]) (settle.None, error) {
			running.Add(1)
			defer running.Add(-1)
			if !j.In {
				time.Sleep(100 * time.Millisecond)
				return settle.None{}, nil
			}
			suspects.Add(1)
			for range 10 {
				if running.Load() != 1 {
					t.Error("a suspect does not run alone")
				}
				time.Sleep(100 * time.Millisecond)
			}
			return settle.None{}, nil
		})
		others := make([]settle.New, 400)
		for i := range others {
			others[i] = kind.New(false)
		}
		if _, err := c.Enqueue(t.Context(), others...); err != nil {
			t.Fatal(err)
		}
		stop := run(t, w)
		time.Sleep(time.Minute)
		stop()
		if suspects.Load() != 1 {
			t.Errorf("the suspect ran %d times", suspects.Load())
		}
	})
}
