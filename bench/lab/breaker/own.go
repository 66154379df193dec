package main

import (
	"context"
	"errors"
	"time"

	"github.com/settle-go/settle/breaker"
)

type own struct{ b *breaker.Breaker }

func newOwn(r rules) peer {
	o := own{}
	c := breaker.Config{Failures: r.failures, Probes: r.probes, ProbeLease: lease, OpenMin: openTime, OpenMax: max(r.openMax, openTime)}
	if !r.jitter {
		c.Rand = func() float64 { return 0 }
	}
	if r.onChange != nil {
		c.OnChange = func(breaker.State, breaker.Status) { r.onChange(o) }
	}
	o.b = breaker.New(c)
	return o
}

func (r result) outcome() breaker.Outcome {
	switch r {
	case success:
		return breaker.Success
	case answered:
		return breaker.Answered
	case failure:
		return breaker.Failure
	}
	return breaker.Neutral
}

func (o own) do(end func() result) bool {
	err := o.b.Do(context.Background(), func(_ context.Context, t *breaker.Token) error {
		r := end()
		if r == answered {
			t.Settle(breaker.Answered)
		}
		return r.err()
	})
	return !errors.Is(err, breaker.ErrOpen)
}

func (o own) permit() (func(result), bool) {
	settle, ok := o.permitThatTells()
	return func(r result) { settle(r) }, ok
}

func (o own) permitThatTells() (func(result) bool, bool) {
	t, err := o.b.Admit()
	return func(r result) bool { return t.Settle(r.outcome()) }, err == nil
}

func (o own) submit() (func(result), bool) {
	ticket, ok := o.submitAndStore()
	return func(r result) { o.restored(ticket, r) }, ok
}

func (o own) submitAndStore() (ticket string, ok bool) {
	t, err := o.b.Admit()
	if err != nil {
		return "", false
	}
	t.Settle(breaker.Answered)
	return string(t.Ticket()), true
}

func (o own) restored(ticket string, r result) { o.b.Observe(breaker.Ticket(ticket), r.outcome()) }
func (o own) count() int                       { return o.b.Status().Failures }
func (o own) state() string                    { return string(o.b.State()) }

func (o own) next() time.Duration {
	if next := o.b.Status().Next; !next.IsZero() {
		return time.Until(next)
	}
	return 0
}
