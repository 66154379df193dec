package breaker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

var errOut = errors.New("connection refused")

func inGoroutine(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	<-done
}

func TestP11WhatDoMakesOfAnEnd(t *testing.T) {
	type run = func(ctx context.Context, cancel context.CancelFunc, t *Token) error
	say := func(o Outcome, err error) run {
		return func(_ context.Context, _ context.CancelFunc, t *Token) error { t.Settle(o); return err }
	}
	give := func(err error) run { return func(context.Context, context.CancelFunc, *Token) error { return err } }
	for _, c := range []struct {
		name string
		fn   run
		want Outcome
	}{
		{"nil", give(nil), Success},
		{"an error", give(errOut), Failure},
		{"a deadline within the call", give(fmt.Errorf("post: %w", context.DeadlineExceeded)), Failure},
		{"cancelled within the call", give(fmt.Errorf("post: %w", context.Canceled)), Neutral},
		{"another breaker refuses", give(fmt.Errorf("post: %w", &OpenError{State: Open})), Neutral},
		{"the caller is cancelled", func(ctx context.Context, cancel context.CancelFunc, _ *Token) error { cancel(); return errOut }, Neutral},
		{"cancelled, and yet done", func(ctx context.Context, cancel context.CancelFunc, _ *Token) error { cancel(); return nil }, Success},
		{"settled before: answered", say(Answered, errOut), Answered},
		{"settled before: neutral", say(Neutral, errOut), Neutral},
		{"settled before: failure", say(Failure, nil), Failure},
		{"panic", func(context.Context, context.CancelFunc, *Token) error { panic("out") }, Neutral},
		{"Goexit", func(context.Context, context.CancelFunc, *Token) error { runtime.Goexit(); return nil }, Neutral},
		{"failure, then panic", func(_ context.Context, _ context.CancelFunc, t *Token) error { t.Settle(Failure); panic("out") }, Failure},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, from := range []State{Closed, HalfOpen} {
				b := newBench(Config{})
				if from == HalfOpen {
					b.halfOpen(t)
				} else {
					b.pass(t).Settle(Failure)
				}
				ctx, cancel := context.WithCancel(t.Context())
				called := false
				inGoroutine(func() {
					defer func() {
						if r := recover(); r != nil && r != "out" {
							t.Errorf("panic %v", r)
						}
					}()
					b.Do(ctx, func(ctx context.Context, tok *Token) error {
						called = true
						return c.fn(ctx, cancel, tok)
					})
				})
				cancel()
				if !called {
					t.Fatal("not called")
				}
				want := map[State]map[Outcome]string{
					Closed:   {Success: "[closed 0]", Answered: "[closed 1]", Neutral: "[closed 1]", Failure: "[closed 2]"},
					HalfOpen: {Success: "[closed 0]", Answered: "[closed 0]", Neutral: "[half-open 0]", Failure: "[open 0]"},
				}[from][c.want]
				if got := b.brief(true); got != want {
					t.Errorf("%s becomes %s, want %s", from, got, want)
				}
			}
		})
	}
}

func TestDoReturnsTheErrorAsItIs(t *testing.T) {
	b := newBench(Config{Failures: 1})
	if err := b.Do(t.Context(), func(context.Context, *Token) error { return errOut }); err != errOut {
		t.Errorf("%v", err)
	}
	err := b.Do(t.Context(), func(context.Context, *Token) error { t.Error("called while open"); return nil })
	if !errors.Is(err, ErrOpen) {
		t.Errorf("%v", err)
	}
}

func TestDoTakesNothingWhenTheContextHasEnded(t *testing.T) {
	b := newBench(Config{})
	b.halfOpen(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Do(ctx, func(context.Context, *Token) error { t.Error("called"); return nil })
	if !errors.Is(err, context.Canceled) || b.Status().Probes != 0 {
		t.Errorf("%v, %+v", err, b.Status())
	}
}

// The real clock and chance, in a bubble: a probe that hangs, and the next.
func TestP11DefaultsOutliveAHungProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		for range 5 {
			b.Do(t.Context(), func(context.Context, *Token) error { return errOut })
		}
		s := b.Status()
		if wait := time.Until(s.Next); s.State != Open || wait < 5*time.Second || wait > 10*time.Second {
			t.Fatalf("%+v, for %v", s, wait)
		}
		time.Sleep(time.Until(s.Next))
		hung := make(chan struct{})
		go b.Do(t.Context(), func(context.Context, *Token) error { <-hung; return nil })
		synctest.Wait()
		if _, err := b.Admit(); !errors.Is(err, ErrOpen) {
			t.Errorf("a second probe: %v", err)
		}
		time.Sleep(time.Minute)
		if err := b.Do(t.Context(), func(context.Context, *Token) error { return nil }); err != nil || b.State() != Closed {
			t.Errorf("%v, %s", err, b.State())
		}
		close(hung)
	})
}
