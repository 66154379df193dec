package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle/breaker"
)

var (
	errRefused = errors.New("connection refused")
	errInvalid = errors.New("the node says: invalid input")
)

// clock is moved by hand, so that the examples print the same at each run.
var clock = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

var example = breaker.Config{
	Failures: 2,
	Now:      func() time.Time { return clock },
	Rand:     func() float64 { return 0 },
	OnChange: func(from breaker.State, now breaker.Status) { fmt.Println(now.Node, from, "→", now.State) },
}

func Example() {
	ctx := context.Background()
	c := example
	c.Node = "a"
	b := breaker.New(c)
	for _, answer := range []error{errRefused, errRefused, nil, nil} {
		err := b.Do(ctx, func(context.Context, *breaker.Token) error { return answer })
		var open *breaker.OpenError
		if errors.As(err, &open) { // not called: come back when a probe can be made
			fmt.Println(err)
			clock = clock.Add(open.Wait)
		}
	}
	// Output:
	// a closed → open
	// the breaker of node "a" is open, next probe in 5s
	// a half-open → closed
}

// An explicit failure of the node is an answer: the node is healthy.
func ExampleBreaker_Do_answered() {
	b := breaker.New(example)
	for range 50 {
		err := b.Do(context.Background(), func(_ context.Context, t *breaker.Token) error {
			t.Settle(breaker.Answered)
			return errInvalid
		})
		if err != errInvalid {
			fmt.Println(err)
		}
	}
	fmt.Println(b.State())
	// Output: closed
}

func ExampleBreaker_Admit() {
	b := breaker.New(example)
	call := func() error {
		t, err := b.Admit()
		if err != nil {
			return err
		}
		defer t.Settle(breaker.Neutral) // counts if nothing else was said
		// … make the call …
		t.Settle(breaker.Success)
		return nil
	}
	fmt.Println(call(), b.State())
	// Output: <nil> closed
}

// Work is submitted now and delivered later, perhaps to another process.
func ExampleBreaker_Observe() {
	nodes := breaker.NewSet(breaker.SetConfig{Breaker: example})

	t, err := nodes.AdmitFirst("a", "b")
	if err != nil {
		fmt.Println(err)
		return
	}
	node, ticket := t.Node(), t.Ticket() // keep both with the job, before the call
	t.Settle(breaker.Answered)           // the node accepted; it has not delivered yet

	// Later: the answer cannot be read.
	fmt.Println("heard:", nodes.Node(node).Observe(ticket, breaker.Failure))

	// Or in another process, where nobody knows what has happened since.
	elsewhere := breaker.New(example)
	fmt.Println("good news of others:", elsewhere.Observe(ticket, breaker.Success))
	fmt.Println("bad news of others:", elsewhere.Observe(ticket, breaker.Failure), elsewhere.Status().Failures)
	// Output:
	// heard: true
	// good news of others: false
	// bad news of others: true 1
}

// When all nodes refuse, the error says when the first probe can be made.
func ExampleSet_AdmitFirst() {
	nodes := breaker.NewSet(breaker.SetConfig{Breaker: example})
	for _, name := range []string{"a", "a", "b", "b"} {
		if t, err := nodes.Node(name).Admit(); err == nil {
			t.Settle(breaker.Failure)
			clock = clock.Add(time.Second)
		}
	}
	_, err := nodes.AdmitFirst("b", "a")
	fmt.Println(err)
	for _, s := range nodes.Snapshot() {
		fmt.Println(s.Node, s.State, "for another", s.Next.Sub(clock))
	}
	// Output:
	// a closed → open
	// b closed → open
	// none of 2 nodes can be called: the breaker of node "a" is open, next probe in 2s
	// a open for another 2s
	// b open for another 4s
}
