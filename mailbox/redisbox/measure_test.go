package redisbox

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

// cpu is the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Waits of which nobody hears anything cost next to nothing: 3 % of a core is
// the bar for 10 000 at the default poll.
func TestTenThousandIdleWaitsAreCheap(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, at(s.Addr()))
	b.subscribed(t)
	const n = 10_000
	for i := range n {
		if err := b.Watch(t.Context(), key(i), mailbox.AwaitOpts{}, func(mailbox.Delivery, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	looks := b.Stats()
	redistest.Eventually(t, "each was looked at", func() bool { return b.Stats().LookedAt >= looks.LookedAt+n })
	const span = 4 * time.Second
	first, server, before := b.Stats(), serverCPU(t, s), cpu(t)
	rest := time.NewTimer(span)
	<-rest.C
	used, served, last := cpu(t)-before, serverCPU(t, s)-server, b.Stats()
	conns, subs := clients(s)
	t.Logf("%d idle waits: %.2f %% of a core here, %.2f %% in the server; %d looks for %d keys in %s; %d connections, %d subscription",
		n, percent(used, span), percent(served, span), last.Looks-first.Looks, last.LookedAt-first.LookedAt, span, conns, subs)
	if last.LookedAt-first.LookedAt < n*3/2 || subs != 1 || conns != 2 {
		t.Errorf("%d keys were looked at; %d connections, %d subscribed", last.LookedAt-first.LookedAt, conns, subs)
	}
	if bar := 3.0; !raceDetector && percent(used, span) > bar {
		t.Errorf("%.2f %% of a core, the bar is %.0f %%", percent(used, span), bar)
	}
}

func percent(part, whole time.Duration) float64 { return 100 * float64(part) / float64(whole) }

func serverCPU(t *testing.T, s *redistest.Server) (d time.Duration) {
	t.Helper()
	for line := range strings.Lines(s.Text("INFO", "cpu")) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if v, ok := strings.CutPrefix(line, name); ok {
				part, err := time.ParseDuration(strings.TrimSpace(v) + "s")
				if err != nil {
					t.Fatal(err)
				}
				d += part
			}
		}
	}
	return d
}

// A nudge is effective at once, also among many waits.
func TestANudgeIsEffectiveAtOnce(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, at(s.Addr()))
	b.subscribed(t)
	own := client(t, s.Addr())
	const idle, n = 5_000, 500
	for i := range idle {
		if err := b.Watch(t.Context(), key(n+i), mailbox.AwaitOpts{}, func(mailbox.Delivery, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	var took []time.Duration
	for i := range n {
		ended := make(chan time.Time, 1)
		if err := b.Watch(t.Context(), key(i), mine, func(mailbox.Delivery, error) { ended <- time.Now() }); err != nil {
			t.Fatal(err)
		}
		looked := b.Stats().LookedAt
		redistest.Eventually(t, "its first look is over", func() bool { return b.Stats().LookedAt > looked })
		if err := own.Do(t.Context(), own.B().Set().Key(key(i)).Value(done("1")).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		if err := own.Do(t.Context(), own.B().Publish().Channel(DefaultChannel).Message(key(i)).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		took = append(took, (<-ended).Sub(at))
	}
	slices.Sort(took)
	p50, p99 := took[n/2], took[n*99/100]
	t.Logf("nudge to delivery beside %d waits: p50 %s, p99 %s, longest %s", idle, p50, p99, took[n-1])
	if p50 > 50*time.Millisecond {
		t.Errorf("half of the nudges took longer than %s", p50)
	}
}
