package redisbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/mailbox/redisbox"
)

// One box serves all waits of a process.
func Example() {
	ctx := context.Background()
	box, err := redisbox.New(redisbox.Config{
		Redis: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}},
		Wait:  mailbox.Config{Ceiling: time.Hour, Lifetime: 2 * time.Hour},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	go func() { log.Print(box.Run(ctx)) }()

	ticket := mailbox.Ticket{Job: "video-7", Step: "render", Attempt: "a1b2c3", Node: "gpu-3"}
	// … give the node its work, with the ticket and redisbox.Key(ticket) …
	d, err := box.Await(ctx, redisbox.Key(ticket), mailbox.AwaitOpts{Ticket: ticket})
	var step *mailbox.StepError
	var none *mailbox.NoResultError
	switch {
	case err == nil:
		fmt.Printf("commit the result: %s\n", d.Output)
	case errors.As(err, &step) && step.Retry == mailbox.RetryUseless:
		fmt.Println("commit the failure:", err)
	case mailbox.IsFinal(err), errors.As(err, &none):
		fmt.Println("commit another attempt, on another node:", err)
	default:
		fmt.Println("shutting down, wait again later:", err)
		return
	}
	if err := d.Ack(ctx); err != nil {
		log.Print(err) // it expires by itself
	}
}

// A wait that resumes after a restart has what is left of its ceiling: store
// until beside the ticket, before the work is given away.
func ExampleBox_Watch() {
	box, err := redisbox.New(redisbox.Config{Redis: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}})
	if err != nil {
		log.Fatal(err)
	}
	resume := func(ctx context.Context, ticket mailbox.Ticket, until time.Time) error {
		opts := mailbox.AwaitOpts{Ticket: ticket, Until: until}
		return box.Watch(ctx, redisbox.Key(ticket), opts, func(d mailbox.Delivery, err error) {
			fmt.Println("commit:", string(d.Output), err)
			_ = d.Ack(ctx)
		})
	}
	_ = resume
}

// An attempt is counted before it is made.
func ExampleBox_Budget() {
	box, err := redisbox.New(redisbox.Config{Redis: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}})
	if err != nil {
		log.Fatal(err)
	}
	budget, err := box.Budget(redisbox.BudgetConfig{LongestBackoff: 15 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	again := func(ctx context.Context, job, step, attempt string) (bool, error) {
		n, err := budget.Add(ctx, job, step, attempt)
		return n <= 2, err // with an error: ask again, with the same attempt
	}
	_ = again
}
