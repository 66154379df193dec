package redisbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

// short is a budget that a test can outlive.
func short(t *testing.T, addr string, expiry time.Duration) *Budget {
	t.Helper()
	c := at(addr)
	c.Timeout, c.Wait.Ceiling = 10*time.Second, expiry/2
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	budget, err := b.Budget(BudgetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return budget
}

func (b *Budget) mustAdd(t *testing.T, attempt string) int {
	t.Helper()
	n, err := b.Add(t.Context(), "job", "step", attempt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestP10ABudgetCountsDistinctAttempts(t *testing.T) {
	s := redistest.Start(t)
	b := short(t, s.Addr(), time.Hour)
	for i, attempt := range []string{"a", "b", "c"} {
		for range 3 {
			if n := b.mustAdd(t, attempt); n != i+1 {
				t.Errorf("%s: %d, want %d", attempt, n, i+1)
			}
		}
	}
	other := short(t, s.Addr(), time.Hour) // another process
	if n := other.mustAdd(t, "d"); n != 4 {
		t.Errorf("another process counts %d", n)
	}
	for _, name := range [][2]string{{"job", "prepare"}, {"other", "step"}, {"job:4:step", "x"}, {"j", "ob:step"}, {"job:", "step"}} {
		if n, err := b.Add(t.Context(), name[0], name[1], "a"); n != 1 || err != nil {
			t.Errorf("%q has no budget of its own: %d, %v", name, n, err)
		}
	}
	if ttl := s.Int("PTTL", b.key("job", "step")); ttl < 3_590_000 || ttl > 3_600_000 {
		t.Errorf("expires in %d ms", ttl)
	}
	for _, name := range [][3]string{{"", "step", "a"}, {"job", "", "a"}, {"job", "step", ""}, {"job", "step", strings.Repeat("a", 2000)}} {
		if _, err := b.Add(t.Context(), name[0], name[1], name[2]); err == nil {
			t.Errorf("%.40q is counted", name)
		}
	}
}

func TestP10ALostReplyCountsOnce(t *testing.T) {
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	b := short(t, p.Addr(), time.Hour)
	b.mustAdd(t, "a")
	for name, fault := range map[string]func(string, int) <-chan struct{}{"executed": p.CutReply, "not executed": p.CutRequest} {
		cut := fault("SADD", 1)
		if _, err := b.Add(t.Context(), "job", "step", name); err == nil {
			t.Fatalf("%s: no error", name)
		}
		<-cut
		before := s.Int("SCARD", b.key("job", "step"))
		if n := b.mustAdd(t, name); n != before && name == "executed" || s.Int("SCARD", b.key("job", "step")) != n {
			t.Errorf("%s: %d before, %d when repeated", name, before, n)
		}
	}
	if n := b.mustAdd(t, "a"); n != 3 {
		t.Errorf("%d attempts, want 3", n)
	}
}

func TestP10ManyProcessesCountTheSame(t *testing.T) {
	s := redistest.Start(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for i := range 4 {
		b := short(t, s.Addr(), time.Hour)
		all.Go(func() {
			for j := range 25 {
				n, err := b.Add(t.Context(), "job", "step", fmt.Sprint(i, "-", j))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[n]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for n := 1; n <= 100; n++ {
		if seen[n] != 1 {
			t.Errorf("%d attempts were the number %d", seen[n], n)
		}
	}
}

func TestB014ABudgetAlwaysExpires(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "appendfsync always")
	const expiry = 400 * time.Millisecond
	usable := func(t *testing.T, b *Budget) {
		t.Helper()
		redistest.Eventually(t, "it has expired", func() bool { return s.Int("EXISTS", b.key("job", "step")) == 0 })
		if n := b.mustAdd(t, "new"); n != 1 {
			t.Errorf("after it has expired: %d", n)
		}
		s.Do("DEL", b.key("job", "step"))
	}
	t.Run("B-014 the connection breaks, or the server dies, right after the count", func(t *testing.T) {
		p := faultproxy.New(t, s.Addr())
		b := short(t, p.Addr(), expiry)
		b.mustAdd(t, "a")
		p.CutReply("SADD", 1)
		if _, err := b.Add(t.Context(), "job", "step", "b"); err == nil {
			t.Error("no error")
		}
		s.Restart()
		if ttl := s.Int("PTTL", b.key("job", "step")); ttl == -1 {
			t.Error("there is no expiry")
		}
		usable(t, b)
	})
	t.Run("B-014 a set that has no expiry gets one at its next use", func(t *testing.T) {
		b := short(t, s.Addr(), expiry)
		for i := range 99 {
			s.Do("SADD", b.key("job", "step"), strconv.Itoa(i))
		}
		if n := b.mustAdd(t, "98"); n != 99 {
			t.Errorf("%d", n)
		}
		if ttl := s.Int("PTTL", b.key("job", "step")); ttl <= 0 || ttl > int(expiry.Milliseconds()) {
			t.Errorf("expires in %d ms", ttl)
		}
		usable(t, b)
	})
	t.Run("B-014 what is spent stays spent until one whole expiry without an attempt", func(t *testing.T) {
		b := short(t, s.Addr(), expiry)
		at := time.Now()
		n := 0
		for time.Since(at) < 3*expiry { // a failure at most each 5/6 of the expiry
			gap := time.NewTimer(expiry / 6)
			n++
			if got := b.mustAdd(t, fmt.Sprint(n)); got != n {
				t.Fatalf("attempt %d is number %d", n, got)
			}
			<-gap.C
		}
		usable(t, b)
	})
}

// Expiry may come while an attempt runs; it may not come before the next one is
// counted, so what is shorter than that is refused.
func TestB014AnExpiryThatIsTooShortIsRefused(t *testing.T) {
	b, err := New(Config{Redis: at("127.0.0.1:1").Redis, Wait: mailbox.Config{Ceiling: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config BudgetConfig
		want   time.Duration // 0 = refused
	}{
		{BudgetConfig{}, 2 * time.Hour},
		{BudgetConfig{LongestBackoff: 15 * time.Minute}, 2 * time.Hour},
		{BudgetConfig{LongestBackoff: time.Hour, LongestDeferral: 30 * time.Minute}, 150 * time.Minute},
		{BudgetConfig{Ceiling: 5 * time.Hour}, 10 * time.Hour},
		{BudgetConfig{Expiry: 2 * time.Hour}, 2 * time.Hour},
		{BudgetConfig{Expiry: 2*time.Hour - 1}, 0},
		{BudgetConfig{Expiry: 2 * time.Hour, LongestBackoff: time.Hour + 1}, 0},
		{BudgetConfig{Expiry: time.Second}, 0},
		{BudgetConfig{Expiry: -time.Second}, 0},
		{BudgetConfig{Expiry: 400 * 24 * time.Hour}, 0},
		{BudgetConfig{LongestBackoff: -1}, 0},
		{BudgetConfig{LongestDeferral: 31 * 24 * time.Hour}, 0},
		{BudgetConfig{Ceiling: -time.Hour}, 0},
	} {
		got, err := b.Budget(c.config)
		switch {
		case c.want == 0 && err == nil:
			t.Errorf("%+v is not refused", c.config)
		case c.want != 0 && (err != nil || got.expiry != c.want):
			t.Errorf("%+v: %v, %+v", c.config, err, got)
		}
	}
	_, err = b.Budget(BudgetConfig{Expiry: time.Hour})
	if want := "redisbox: BudgetConfig.Expiry (1h0m0s) is shorter than 2h0m0s: with Ceiling 1h0m0s, LongestBackoff 0s and LongestDeferral 0s the budget could be forgotten between two attempts"; fmt.Sprint(err) != want {
		t.Errorf("says %v", err)
	}
}

func TestABudgetRefusesAServerThatForgets(t *testing.T) {
	s := redistest.Start(t, "maxmemory-policy allkeys-lru")
	b := short(t, s.Addr(), time.Hour)
	if _, err := b.Add(t.Context(), "job", "step", "a"); !errors.Is(err, ErrEvicts) {
		t.Errorf("%v", err)
	}
	b.source.config.AllowEviction = true
	if n := b.mustAdd(t, "a"); n != 1 {
		t.Error(n)
	}
	s.Kill()
	b.source.config.AllowEviction = false
	if _, err := b.Add(t.Context(), "job", "step", "b"); err == nil || errors.Is(err, ErrEvicts) {
		t.Errorf("a server that is down: %v", err)
	}
}
