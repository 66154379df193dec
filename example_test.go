package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

type Mail struct{ To, Text string }
type Receipt struct{ Bytes int }

var Send = settle.Define[Mail, Receipt]("mail.send", settle.Policy{Attempts: 3, BackoffMin: time.Millisecond})

// openExample opens a store in a folder of its own; close removes both.
func openExample() (store *sqlite.Store, close func()) {
	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	if store, err = sqlite.Open(filepath.Join(dir, "settle.db")); err != nil {
		log.Fatal(err)
	}
	return store, func() {
		store.Close()
		os.RemoveAll(dir)
	}
}

// runUntilIdle runs what is due and returns.
func runUntilIdle(ctx context.Context, store *sqlite.Store, register func(*worker.Worker)) {
	w := worker.New(store, worker.Config{UntilIdle: true})
	register(w)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func send(ctx context.Context, j *worker.Job[Mail]) (Receipt, error) {
	return Receipt{Bytes: len(j.In.Text)}, nil
}

// A kind ties a name to Go types; a job is enqueued, run and awaited by them.
func Example() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)

	id, err := Send.Enqueue(ctx, client, Mail{To: "a@example.com", Text: "hello"})
	if err != nil {
		log.Fatal(err)
	}
	runUntilIdle(ctx, store, func(w *worker.Worker) { worker.Handle(w, Send, send) })
	out, err := Send.Await(ctx, client, id)
	fmt.Println(out.Bytes, err)
	// Output: 5 <nil>
}

// A key is unique over live jobs: the second enqueue returns the first job.
func ExampleKind_Enqueue_key() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)

	first, _ := Send.Enqueue(ctx, client, Mail{To: "a@example.com"}, settle.EnqueueOpts{Tenant: "acme", Key: "welcome-7"})
	second, _ := Send.Enqueue(ctx, client, Mail{To: "a@example.com"}, settle.EnqueueOpts{Tenant: "acme", Key: "welcome-7"})
	fmt.Println(first == second)
	// Output: true
}

// One call stores jobs of several kinds, all or none.
func ExampleClient_Enqueue() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	audit := settle.Define[string, settle.None]("audit", settle.Policy{})

	got, err := settle.NewClient(store).Enqueue(ctx,
		Send.New(Mail{To: "a@example.com"}, settle.EnqueueOpts{Delay: time.Hour}),
		audit.New("a mail was planned", settle.EnqueueOpts{Queue: "audit", Deadline: 24 * time.Hour}))
	fmt.Println(len(got), got[0].State, err)
	// Output: 2 pending <nil>
}

// A job that does not succeed ends as a typed error that says why.
func ExampleKind_Await() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)

	id, _ := Send.Enqueue(ctx, client, Mail{To: "nobody"})
	runUntilIdle(ctx, store, func(w *worker.Worker) {
		worker.Handle(w, Send, func(context.Context, *worker.Job[Mail]) (Receipt, error) {
			return Receipt{}, settle.Terminal(errors.New("no such address"))
		})
	})
	_, err := Send.Await(ctx, client, id)
	var end *settle.EndError
	if errors.As(err, &end) {
		fmt.Println(end.State, end.Reason, end.Message)
	}
	// Output: dead terminal no such address
}

// Cancel ends a job at once; Redrive gives an ended one a new, bounded chance.
func ExampleClient_Redrive() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)

	id, _ := Send.Enqueue(ctx, client, Mail{To: "a@example.com"}, settle.EnqueueOpts{Delay: time.Hour})
	j, _ := client.Cancel(ctx, id, "not yet")
	fmt.Println(j.State, j.Reason)
	j, _ = client.Redrive(ctx, id)
	fmt.Println(j.State, j.Redrives)
	// Output:
	// cancelled cancelled
	// pending 1
}

// List walks jobs page by page; nothing is held open between pages.
func ExampleClient_List() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)

	for _, to := range []string{"a", "b"} {
		if _, err := Send.Enqueue(ctx, client, Mail{To: to}, settle.EnqueueOpts{Delay: time.Hour, Tenant: to}); err != nil {
			log.Fatal(err)
		}
	}
	for j, err := range client.List(ctx, settle.Filter{Kind: Send.Name(), States: []settle.State{settle.Pending}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(j.Tenant, j.Label(), string(j.Input))
	}
	// Output:
	// a scheduled {"To":"a","Text":""}
	// b scheduled {"To":"b","Text":""}
}

// OnEnd names a kind that is told of every end, in the transaction of the end.
func ExamplePolicy_onEnd() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)
	told := settle.Define[settle.Ended, settle.None]("mail.ended", settle.Policy{})
	send2 := settle.Define[Mail, Receipt]("mail.send2", settle.Policy{OnEnd: told.Name()})

	if _, err := send2.Enqueue(ctx, client, Mail{To: "a@example.com"}); err != nil {
		log.Fatal(err)
	}
	runUntilIdle(ctx, store, func(w *worker.Worker) {
		worker.Handle(w, send2, send)
		worker.Handle(w, told, func(_ context.Context, j *worker.Job[settle.Ended]) (settle.None, error) {
			fmt.Println(j.In.Kind, j.In.State, j.In.Reason)
			return settle.None{}, nil
		})
	})
	// Output: mail.send2 succeeded ok
}

// Pause and Hold last until a time that passes by itself.
func ExampleClient_Pause() {
	ctx := context.Background()
	store, closeStore := openExample()
	defer closeStore()
	client := settle.NewClient(store)

	fmt.Println(client.Pause(ctx, settle.DefaultQueue, time.Hour, "maintenance"))
	fmt.Println(client.Hold(ctx, settle.DefaultQueue, "acme", time.Hour, "asked to wait"))
	was, err := client.Resume(ctx, settle.DefaultQueue)
	fmt.Println(was, err)
	// Output:
	// <nil>
	// <nil>
	// true <nil>
}
