package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestP11ManyGoroutinesNeverHaveMoreProbesThanAllowed lets many goroutines call
// nodes that end in every way, while time passes; leases are longer than the
// test, so what is in flight can be counted from outside.
func TestP11ManyGoroutinesNeverHaveMoreProbesThanAllowed(t *testing.T) {
	const probes, goroutines, calls = 3, 16, 800
	var clock atomic.Int64
	var opened, closed, probed atomic.Int64
	s := NewSet(SetConfig{Nodes: 4, Breaker: Config{
		Failures: 2, Probes: probes, ProbeLease: maxSpan, OpenMin: time.Millisecond, OpenMax: 4 * time.Millisecond,
		Now: func() time.Time { return start.Add(time.Duration(clock.Load())) },
		OnChange: func(from State, now Status) {
			if now.State == Open {
				opened.Add(1)
			} else {
				closed.Add(1)
			}
		},
	}})
	type period struct {
		node       string
		generation uint64
	}
	var mu sync.Mutex
	inFlight := map[period]int{}
	count := func(tok *Token, by int) {
		mu.Lock()
		defer mu.Unlock()
		p := period{tok.Node(), tok.pass.generation}
		if inFlight[p] += by; inFlight[p] > probes {
			t.Errorf("%d probes in flight", inFlight[p])
		}
	}
	call := func(tok *Token) error {
		if tok.Probe() {
			probed.Add(1)
			count(tok, 1)
			defer count(tok, -1)
		}
		runtime.Gosched()
		switch rand.IntN(8) {
		case 0:
			return nil
		case 1:
			panic("out")
		case 2:
			runtime.Goexit()
		case 3:
			return context.Canceled
		}
		return errOut
	}
	nodes := []string{"a", "b", "c"}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range calls {
				clock.Add(int64(100 * time.Microsecond))
				node := nodes[rand.IntN(len(nodes))]
				var ticket Ticket
				inGoroutine(func() {
					defer func() { _ = recover() }()
					_ = s.Node(node).Do(context.Background(), func(_ context.Context, tok *Token) error {
						ticket = tok.Ticket()
						return call(tok)
					})
				})
				if rand.IntN(4) == 0 {
					s.Node(node).Observe(ticket, []Outcome{Success, Answered, Failure}[rand.IntN(3)])
				}
				for _, st := range s.Snapshot() {
					if st.Probes > probes {
						t.Errorf("%+v", st)
					}
				}
				if tok, err := s.AdmitFirst(nodes...); err == nil {
					tok.Settle(Neutral)
				}
			}
		})
	}
	wg.Wait()
	clock.Add(int64(time.Second))
	for _, st := range s.Snapshot() {
		if st.Probes != 0 {
			t.Errorf("all calls have ended: %+v", st)
		}
	}
	if opened.Load() == 0 || closed.Load() == 0 || probed.Load() == 0 || opened.Load() < closed.Load() {
		t.Errorf("opened %d, closed %d times, %d probes", opened.Load(), closed.Load(), probed.Load())
	}
}

// Two goroutines that settle one token: one is heard.
func TestATokenIsSettledOnceByManyGoroutines(t *testing.T) {
	b := New(Config{Failures: 1000})
	for i := range 500 {
		tok, err := b.Admit()
		if err != nil {
			t.Fatal(err)
		}
		var heard atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if tok.Settle(Failure) {
					heard.Add(1)
				}
			})
		}
		wg.Wait()
		if n := b.Status().Failures; heard.Load() != 1 || n != i+1 {
			t.Fatalf("heard %d times, %d failures after %d", heard.Load(), n, i+1)
		}
	}
}

func BenchmarkDo(b *testing.B) {
	s := NewSet(SetConfig{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Node("a").Do(ctx, func(context.Context, *Token) error { return nil })
	}
}
