package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

type payload struct {
	User, Action, Text string
}

var noop = settle.Define[payload, settle.None]("bench.noop", settle.Policy{})

var load = payload{User: "0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a", Action: "resize",
	Text: "a payload of about two hundred bytes, as most jobs have: some ids, a few words, a path and a small number or two"}

var scenarios = []scenario{
	{"floor", floor},
	{"enqueue", enqueue},
	{"work-off", workOff},
	{"steady state", steady},
	{"latency", latency},
}

func open(dir string, level sqlite.Synchronous) (*sqlite.Store, error) {
	return sqlite.Open(file(dir), sqlite.Config{Synchronous: level})
}

// floor: one row of the payload's size a transaction, bare driver.
func floor(ctx context.Context, dir string, level sqlite.Synchronous, _ int) ([]reading, error) {
	c, err := zs.OpenConn(file(dir), zs.OpenReadWrite|zs.OpenCreate|zs.OpenWAL)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	want := map[sqlite.Synchronous]int64{sqlite.Full: 2, sqlite.Normal: 1}[level]
	if err := sqlitex.ExecuteTransient(c, fmt.Sprintf("pragma synchronous = %d", want), nil); err != nil {
		return nil, err
	}
	if err := sqlitex.ExecuteTransient(c, "create table t (n integer primary key, b blob)", nil); err != nil {
		return nil, err
	}
	var got int64
	if err := sqlitex.ExecuteTransient(c, "pragma synchronous", &sqlitex.ExecOptions{ResultFunc: func(s *zs.Stmt) error { got = s.ColumnInt64(0); return nil }}); err != nil || got != want {
		return nil, fmt.Errorf("synchronous is %d, want %d: %w", got, want, err)
	}
	insert := c.Prep("insert into t (b) values (?)")
	blob := make([]byte, 200)
	began, n := time.Now(), 0
	for time.Since(began) < 2*time.Second && ctx.Err() == nil {
		insert.BindBytes(1, blob)
		if _, err := insert.Step(); err != nil {
			return nil, err
		}
		if err := insert.Reset(); err != nil {
			return nil, err
		}
		n++
	}
	return []reading{{"floor: one-row transactions", rate(n, began), "/s"}}, nil
}

func rate(n int, began time.Time) float64 { return float64(n) / time.Since(began).Seconds() }

// enqueue: one by one from 1 and from 50 goroutines, and in batches of 1000.
func enqueue(ctx context.Context, dir string, level sqlite.Synchronous, size int) ([]reading, error) {
	s, err := open(dir, level)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c := settle.NewClient(s)
	var out []reading
	for _, g := range []int{1, 50} {
		n := min(size, 2000*g)
		began := time.Now()
		if err := parallel(g, n, func(int) error { _, err := noop.Enqueue(ctx, c, load); return err }); err != nil {
			return nil, err
		}
		out = append(out, reading{fmt.Sprintf("enqueue one by one, %d goroutines", g), rate(n, began), "/s"})
	}
	began := time.Now()
	if err := prefill(ctx, c, size); err != nil {
		return nil, err
	}
	return append(out, reading{"enqueue in batches of 1000", rate(size, began), "/s"}), nil
}

// parallel calls f n times from g goroutines.
func parallel(g, n int, f func(int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	faults := make(chan error, g)
	for range g {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := f(int(i)); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(faults)
	return <-faults
}

func prefill(ctx context.Context, c *settle.Client, n int) error {
	for done := 0; done < n; done += 1000 {
		batch := make([]settle.New, min(1000, n-done))
		for i := range batch {
			batch[i] = noop.New(load)
		}
		if _, err := c.Enqueue(ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}

// workOff: a prefilled backlog, no-op handlers, default settings, until every
// job has ended.
func workOff(ctx context.Context, dir string, level sqlite.Synchronous, size int) ([]reading, error) {
	s, err := open(dir, level)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := prefill(ctx, settle.NewClient(s), size); err != nil {
		return nil, err
	}
	w := worker.New(s, worker.Config{UntilIdle: true})
	worker.Handle(w, noop, func(context.Context, *worker.Job[payload]) (settle.None, error) { return settle.None{}, nil })
	began := time.Now()
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	took := rate(size, began)
	return []reading{{"work-off", took, "/s"}}, check(ctx, s, size)
}

// check: only what has ended counts.
func check(ctx context.Context, s *sqlite.Store, want int) error {
	counts, err := s.Counts(ctx, want+1)
	if err != nil {
		return err
	}
	for _, c := range counts {
		if c.State != settle.Succeeded || c.N != want {
			return fmt.Errorf("%d jobs are %s, want %d succeeded and nothing else", c.N, c.State, want)
		}
	}
	return nil
}

// steady: 50 goroutines enqueue one by one beside the worker; producers pause
// above 2000 in flight.
func steady(ctx context.Context, dir string, level sqlite.Synchronous, size int) ([]reading, error) {
	s, err := open(dir, level)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c := settle.NewClient(s)
	var ended atomic.Int64
	room := make(chan struct{}, 2000)
	w := worker.New(s, worker.Config{Events: worker.Events{Settled: func(worker.Settled) { ended.Add(1); <-room }}})
	worker.Handle(w, noop, func(context.Context, *worker.Job[payload]) (settle.None, error) { return settle.None{}, nil })
	run, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.Run(run) }()
	began := time.Now()
	err = parallel(50, size, func(int) error {
		room <- struct{}{}
		_, err := noop.Enqueue(ctx, c, load)
		return err
	})
	for err == nil && ended.Load() < int64(size) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	got := rate(size, began)
	stop()
	if fault := <-over; err == nil {
		err = fault
	}
	return []reading{{"steady state, 50 goroutines one by one", got, "/s"}}, err
}

// latency: enqueue call to handler start, 50 jobs a second for 10 s.
func latency(ctx context.Context, dir string, level sqlite.Synchronous, _ int) ([]reading, error) {
	s, err := open(dir, level)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	const n = 500
	started := make(chan time.Time, 1)
	w := worker.New(s, worker.Config{})
	worker.Handle(w, noop, func(context.Context, *worker.Job[payload]) (settle.None, error) {
		started <- time.Now()
		return settle.None{}, nil
	})
	run, stop := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.Run(run) }()
	took := make([]float64, 0, n)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range n {
		<-tick.C
		began := time.Now()
		if _, err := noop.Enqueue(ctx, settle.NewClient(s), load); err != nil {
			stop()
			return nil, err
		}
		took = append(took, float64((<-started).Sub(began).Microseconds())/1000)
	}
	stop()
	slices.Sort(took)
	return []reading{{"enqueue to start, p50", took[n/2], "ms"}, {"enqueue to start, p99", took[n*99/100], "ms"},
		{"enqueue to start, max", took[n-1], "ms"}}, <-over
}
