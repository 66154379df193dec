package main

import (
	"context"
	"errors"

	"github.com/sony/gobreaker/v2"
)

var (
	errAnswered = errors.New("the node says: invalid")
	errFailure  = errors.New("connection refused")
)

// err is what a call of this result returns.
func (r result) err() error {
	switch r {
	case success:
		return nil
	case answered:
		return errAnswered
	case cancelled:
		return context.Canceled
	}
	return errFailure
}

// gobreakers are two breakers of the same settings: the one-step and the
// two-step one share nothing, and a case uses only one of them.
type gobreakers struct {
	one *gobreaker.CircuitBreaker[any]
	two *gobreaker.TwoStepCircuitBreaker[any]
	in2 bool // the case goes by permits
}

func newGobreaker(excludeAnswers bool) func(rules) peer {
	return func(r rules) peer {
		g := &gobreakers{}
		s := gobreaker.Settings{
			MaxRequests: uint32(r.probes),
			Timeout:     openTime,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(r.failures) },
			IsSuccessful: func(err error) bool {
				return err == nil || err == errAnswered
			},
			IsExcluded: func(err error) bool {
				return err == context.Canceled || excludeAnswers && err == errAnswered
			},
		}
		if r.onChange != nil {
			s.OnStateChange = func(string, gobreaker.State, gobreaker.State) { r.onChange(g) }
		}
		g.one, g.two = gobreaker.NewCircuitBreaker[any](s), gobreaker.NewTwoStepCircuitBreaker[any](s)
		return g
	}
}

func (g *gobreakers) do(end func() result) bool {
	_, err := g.one.Execute(func() (any, error) { return nil, end().err() })
	return !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests)
}

func (g *gobreakers) permit() (func(result), bool) {
	g.in2 = true
	done, err := g.two.Allow()
	return func(r result) { done(r.err()) }, err == nil
}

// submit calls done a second time for the delivery: it is fenced by the
// generation, and nothing keeps it from being called twice.
func (g *gobreakers) submit() (func(result), bool) {
	settle, ok := g.permit()
	if ok {
		settle(success)
	}
	return settle, ok
}

func (g *gobreakers) state() string {
	if g.in2 {
		return g.two.State().String()
	}
	return g.one.State().String()
}
