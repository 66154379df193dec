package redisinbox

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
)

// fill adds many answers at once.
func fill(t *testing.T, s *redistest.Server, in *Inbox, count, size int) {
	t.Helper()
	doc := strings.Repeat("x", size)
	script := `for i = 1, #ARGV - 1, 2 do redis.call('XADD', ARGV[i], '*', 'ticket', ARGV[i + 1], 'doc', ARGV[#ARGV]) end`
	for count > 0 {
		args := []string{"EVAL", script, "0"}
		for range min(count, 500) {
			a := in.Address(settle.NewID(), settle.NewID())
			args = append(args, a.Stream, a.Ticket)
		}
		s.Do(append(args, doc)...)
		count -= 500
	}
}

func TestWhatWaitsCostsNoGoroutineAndNoConnection(t *testing.T) {
	// Not in parallel: it counts the goroutines of the process.
	s := redistest.Start(t)
	before := runtime.NumGoroutine()
	in := open(t, at(s.Addr()), func(c *Config) { c.TakeOver = time.Minute })
	var mu sync.Mutex
	seen := map[settle.ID]bool{}
	stop := run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range list {
			seen[e.Attempt] = true
		}
		return make([]bool, len(list)), nil // nobody is done with anything
	})
	reading(t, in)
	measure := func(waiting int) string {
		redistest.Eventually(t, fmt.Sprint(waiting, " were seen"), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen) == waiting
		})
		got := ""
		redistest.Eventually(t, "nothing changes any more", func() bool {
			before := got
			sleep(context.Background(), 150*time.Millisecond)
			got = fmt.Sprint(runtime.NumGoroutine(), " goroutines, ", s.Info("connected_clients"), " connections")
			return got == before
		})
		return got
	}
	fill(t, s, in, 10, 100)
	few := measure(10)
	fill(t, s, in, 9990, 100)
	if many := measure(10_000); many != few {
		t.Errorf("with 10: %s; with 10000: %s", few, many)
	}
	reads, at := s.Calls("xreadgroup"), time.Now()
	sleep(context.Background(), time.Second)
	if n, most := s.Calls("xreadgroup")-reads, int(time.Since(at)/in.cfg.Block)+2; n > most {
		t.Errorf("%d reads in a second with 10000 that wait, want at most %d", n, most)
	}
	stop()
	redistest.Eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	redistest.Eventually(t, "all connections are closed", func() bool { return s.Info("connected_clients") == "1" })
}

func TestABacklogComesInBoundedBatches(t *testing.T) {
	s, in, n := rig(t)
	fill(t, s, in, 10_000, 100)
	st := newStore()
	run(t, in, st.deliver)
	redistest.Eventually(t, "all is settled", func() bool { got, _, _ := st.count(); return got == 10_000 })
	n.emptied()
	if st.most > most || st.most < 200 {
		t.Errorf("up to %d entries at once, want up to %d, and no fewer than 200", st.most, most)
	}
}

func TestLargeDocumentsComeInSmallBatches(t *testing.T) {
	s, in, n := rig(t)
	fill(t, s, in, 150, 1<<20)
	st := newStore()
	var mu sync.Mutex
	largest := 0
	run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		size := 0
		for _, e := range list {
			size += len(e.Doc)
		}
		mu.Lock()
		largest = max(largest, size)
		mu.Unlock()
		return st.deliver(ctx, list)
	})
	redistest.Eventually(t, "all is settled", func() bool { got, _, _ := st.count(); return got == 150 })
	n.emptied()
	mu.Lock()
	defer mu.Unlock()
	if largest > 33<<20 {
		t.Errorf("up to %d MiB at once", largest>>20)
	}
}

func TestManyRunsShareTheEntries(t *testing.T) {
	s, in, n := rig(t)
	st := newStore()
	first := run(t, in, st.deliver)
	for range 3 {
		run(t, in, st.deliver)
	}
	reading(t, in)
	<-n.load(200)
	first()
	<-n.load(100)
	n.drained(st)
	if _, again, _ := st.count(); again != 0 {
		t.Errorf("%d were delivered twice", again)
	}
	redistest.Eventually(t, "the one that ended has left no name", func() bool {
		list, _ := s.Do("XINFO", "CONSUMERS", "settle:{0}:inbox", group).([]any)
		return len(list) <= 3
	})
}

func TestRunEndsSoonAlsoOnADeadLink(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*faultproxy.Proxy, *redistest.Server){
		"well":    func(*faultproxy.Proxy, *redistest.Server) {},
		"silent":  func(p *faultproxy.Proxy, _ *redistest.Server) { p.Silence() },
		"refused": func(p *faultproxy.Proxy, _ *redistest.Server) { p.Refuse() },
		"paused":  func(_ *faultproxy.Proxy, s *redistest.Server) { s.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := faultproxy.New(t, s.Addr())
			in := open(t, at(p.Addr()))
			stop := run(t, in, newStore().deliver)
			reading(t, in)
			fault(p, s)
			at := time.Now()
			stop()
			if d := time.Since(at); d > 2*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}
