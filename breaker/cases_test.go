package breaker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// Asking takes no permit, and a permit that is not used comes back.
func TestB027EveryPermitComesBack(t *testing.T) {
	gate := errors.New("another gate refuses")
	for _, c := range []struct {
		name string
		take func(t *testing.T, b *bench)
	}{
		{"the state is read 1000 times", func(t *testing.T, b *bench) {
			for range 1000 {
				_ = b.State()
				_ = b.Status()
			}
		}},
		{"the context has ended when the permit is taken", func(t *testing.T, b *bench) {
			ctx, cancel := context.WithCancel(t.Context())
			err := b.Do(ctx, func(ctx context.Context, _ *Token) error { cancel(); return ctx.Err() })
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}},
		{"another gate refuses", func(t *testing.T, b *bench) {
			err := b.Do(t.Context(), func(_ context.Context, tok *Token) error { tok.Settle(Neutral); return gate })
			if err != gate {
				t.Error(err)
			}
		}},
		{"another gate refuses, by hand", func(t *testing.T, b *bench) {
			defer b.pass(t).Settle(Neutral)
		}},
		{"the send function panics", func(t *testing.T, b *bench) {
			defer func() {
				if r := recover(); r != "send" {
					t.Errorf("panic %v", r)
				}
			}()
			_ = b.Do(t.Context(), func(context.Context, *Token) error { panic("send") })
		}},
		{"the goroutine ends by Goexit", func(t *testing.T, b *bench) {
			inGoroutine(func() { _ = b.Do(t.Context(), func(context.Context, *Token) error { runtime.Goexit(); return nil }) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(Config{})
			b.halfOpen(t)
			c.take(t, b)
			if n := b.Status().Probes; n != 0 {
				t.Errorf("%d probes are in flight, want 0", n)
			}
			probe := b.pass(t)
			if _, err := b.Admit(); !errors.Is(err, ErrOpen) {
				t.Errorf("a second probe: %v", err)
			}
			if !probe.Settle(Success) || b.State() != Closed {
				t.Errorf("the one probe does not decide: %s", b.State())
			}
		})
	}
}

// 50 rejected inputs over 3 nodes, then 10 good ones: as far as breakers go.
func TestB028RejectedInputsLeaveNodesInService(t *testing.T) {
	s := NewSet(SetConfig{Breaker: Config{Failures: 3}})
	nodes := []string{"a", "b", "c"}
	invalid := errors.New("the input is invalid")
	for i := range 60 {
		node := nodes[i%3]
		var want error
		if i < 50 {
			want = invalid
		}
		err := s.Node(node).Do(t.Context(), func(_ context.Context, tok *Token) error {
			if want != nil {
				tok.Settle(Answered)
			}
			return want
		})
		if err != want {
			t.Errorf("job %d on %s: %v, want %v", i, node, err, want)
		}
		if st := s.Node(node).Status(); st.State != Closed || st.Failures != 0 || st.Generation != 1 {
			t.Errorf("after job %d: %+v", i, st)
		}
	}
}

// 10 slow calls from before an opening end while a probe is in flight.
func TestB029OnlyTheProbeDecides(t *testing.T) {
	for _, verdict := range []Outcome{Success, Failure} {
		t.Run(string("the probe: "+verdict), func(t *testing.T) {
			b := newBench(Config{})
			type job struct {
				heard   chan bool
				release chan error
				ended   chan error
			}
			var slow []job
			for range 10 {
				j := job{make(chan bool, 1), make(chan error), make(chan error, 1)}
				begun := make(chan struct{})
				go func() {
					j.ended <- b.Do(t.Context(), func(_ context.Context, tok *Token) error {
						close(begun)
						err := <-j.release
						j.heard <- tok.Settle(judge(t.Context(), err))
						return err
					})
				}()
				<-begun
				slow = append(slow, j)
			}
			b.halfOpen(t)
			probe := b.pass(t)
			before := b.Status()
			for i, j := range slow {
				var want error
				if i%2 == 1 {
					want = fmt.Errorf("job %d failed", i)
				}
				j.release <- want
				if err := <-j.ended; err != want {
					t.Errorf("job %d ends with %v, want its own outcome %v", i, err, want)
				}
				if <-j.heard {
					t.Errorf("job %d is not told that its outcome is ignored", i)
				}
				if got := b.Status(); got != before {
					t.Errorf("job %d decides: %+v, before %+v", i, got, before)
				}
				if _, err := b.Admit(); err == nil {
					t.Error("more probes than the limit")
				}
			}
			probe.Settle(verdict)
			state, changes := Closed, []string{"closed → open", "half-open → closed"}
			if verdict == Failure {
				state, changes = Open, []string{"closed → open", "half-open → open"}
			}
			if st := b.Status(); st.State != state || st.Probes != 0 {
				t.Errorf("the probe does not decide: %+v", st)
			}
			if !slices.Equal(b.changes, changes) {
				t.Errorf("changes %q, want %q", b.changes, changes)
			}
		})
	}
}
