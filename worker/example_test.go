package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// openExample opens a store that is gone after the example.
func openExample() (*sqlite.Store, func()) {
	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	st, err := sqlite.Open(filepath.Join(dir, "settle.db"))
	if err != nil {
		log.Fatal(err)
	}
	return st, func() { st.Close(); os.RemoveAll(dir) }
}

func Example() {
	greet := settle.Define[string, string]("greet", settle.Policy{Attempts: 5, Timeout: time.Minute})
	st, done := openExample()
	defer done()

	w := worker.New(st, worker.Config{Slots: 10})
	worker.Handle(w, greet, func(_ context.Context, j *worker.Job[string]) (string, error) {
		return "Hello, " + j.In + "!", nil
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }() // usually: err := w.Run(ctx), with signal.NotifyContext

	q := settle.NewClient(st)
	id, err := greet.Enqueue(ctx, q, "World")
	if err != nil {
		log.Fatal(err)
	}
	out, err := greet.Await(ctx, q, id)
	fmt.Println(out, err)
	stop()
	fmt.Println(<-ended)
	// Output:
	// Hello, World! <nil>
	// <nil>
}

// What a handler returns says what happens next.
func ExampleHandle() {
	fetch := settle.Define[string, int]("fetch", settle.Policy{})
	st, done := openExample()
	defer done()
	q := settle.NewClient(st)
	for _, page := range []string{"fine", "gone", "busy"} {
		if _, err := fetch.Enqueue(context.Background(), q, page); err != nil {
			log.Fatal(err)
		}
	}

	w := worker.New(st, worker.Config{UntilIdle: true, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, fetch, func(_ context.Context, j *worker.Job[string]) (int, error) {
		switch j.In {
		case "gone":
			return 0, settle.Terminal(errors.New("404: trying again is useless"))
		case "busy":
			return 0, settle.RetryAfter(time.Hour, errors.New("429: come back later"))
		}
		return 200, nil
	})
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	for j, err := range q.List(context.Background(), settle.Filter{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(j.Input), j.State)
	}
	// Output:
	// "fine" succeeded
	// "gone" dead
	// "busy" pending
}

// A batch handler takes the jobs of one tenant together.
func ExampleHandleBatch() {
	report := settle.Define[string, settle.None]("report", settle.Policy{})
	st, done := openExample()
	defer done()
	q := settle.NewClient(st)
	for _, line := range []string{"a", "b", "c"} {
		if _, err := report.Enqueue(context.Background(), q, line, settle.EnqueueOpts{Tenant: "acme"}); err != nil {
			log.Fatal(err)
		}
	}

	w := worker.New(st, worker.Config{UntilIdle: true})
	worker.HandleBatch(w, report, worker.BatchOpts{Max: 50}, func(_ context.Context, jobs []*worker.Job[string]) []worker.Result[settle.None] {
		fmt.Println(jobs[0].Tenant, len(jobs))
		return make([]worker.Result[settle.None], len(jobs)) // all done
	})
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: acme 3
}

// Listeners count what happens.
func ExampleEvents() {
	tick := settle.Define[settle.None, settle.None]("tick", settle.Policy{})
	st, done := openExample()
	defer done()
	if _, err := tick.Enqueue(context.Background(), settle.NewClient(st), settle.None{}); err != nil {
		log.Fatal(err)
	}

	w := worker.New(st, worker.Config{UntilIdle: true, Events: worker.Events{
		Settled: func(s worker.Settled) { fmt.Println(s.Kind, s.Attempt, s.Transition.To, s.Applied, s.By) },
	}})
	worker.Handle(w, tick, func(context.Context, *worker.Job[settle.None]) (settle.None, error) { return settle.None{}, nil })
	if err := w.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: tick 1 succeeded applied holder
}
