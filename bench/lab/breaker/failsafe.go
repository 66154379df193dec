package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

type failsafeGo struct {
	cb       circuitbreaker.CircuitBreaker[any]
	executor failsafe.Executor[any]
}

// newFailsafe lets open times grow by a counter beside the breaker, which is
// code that the library leaves to its user.
func newFailsafe(r rules) peer {
	f := &failsafeGo{}
	var openings atomic.Int64
	b := circuitbreaker.NewBuilder[any]().
		WithFailureThreshold(uint(r.failures)).
		WithSuccessThreshold(uint(r.probes)).
		WithDelay(openTime).
		HandleIf(func(_ any, err error) bool { return err != nil && err != errAnswered && err != context.Canceled }).
		OnClose(func(circuitbreaker.StateChangedEvent) { openings.Store(0) })
	if r.openMax > 0 && !r.jitter {
		b = b.WithDelayFunc(func(failsafe.ExecutionAttempt[any]) time.Duration {
			return min(openTime<<(openings.Add(1)-1), r.openMax)
		})
	}
	if r.jitter {
		b = b.WithJitterFactor(0.5)
	}
	if r.onChange != nil {
		b = b.OnStateChanged(func(circuitbreaker.StateChangedEvent) { r.onChange(f) })
	}
	f.cb = b.Build()
	f.executor = failsafe.With[any](f.cb)
	return f
}

func (f *failsafeGo) do(end func() result) bool {
	err := f.executor.Run(func() error { return end().err() })
	return !errors.Is(err, circuitbreaker.ErrOpen)
}

// permit has no way to give a permit back that says nothing about the node.
func (f *failsafeGo) permit() (func(result), bool) {
	return func(r result) {
		if r == failure {
			f.cb.RecordFailure()
		} else {
			f.cb.RecordSuccess()
		}
	}, f.cb.TryAcquirePermit()
}

func (f *failsafeGo) submit() (func(result), bool) {
	settle, ok := f.permit()
	if ok {
		settle(success)
	}
	return settle, ok
}

func (f *failsafeGo) state() string       { return f.cb.State().String() }
func (f *failsafeGo) next() time.Duration { return f.cb.RemainingDelay() }
