package redisbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

func TestB021SubscriptionsAreKilled(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, quick(s.Addr()))
	b.subscribed(t)
	ended := b.await(t.Context(), 20, mine)
	b.waiting(t, 20)
	conns, subs := clients(s)
	before := runtime.NumGoroutine()
	kill := func() {
		t.Helper()
		n := b.Stats().Reconnects
		if s.Int("CLIENT", "KILL", "TYPE", "pubsub") != 1 {
			t.Error("there was not one subscription to kill")
		}
		redistest.Eventually(t, "the box has noticed", func() bool { return b.Stats().Reconnects > n })
		b.subscribed(t)
	}
	kill()
	kill()
	t.Run("B-021 the next nudge is effective", func(t *testing.T) {
		for i := range 10 {
			dt := took(func() { put(s, key(i), done("1")); <-ended })
			if dt > 150*time.Millisecond {
				t.Errorf("a nudge was effective after %s", dt)
			}
		}
	})
	t.Run("B-021 all 20 return within one poll interval", func(t *testing.T) {
		s.Do("CLIENT", "KILL", "TYPE", "pubsub")
		dt := took(func() {
			for i := range 10 {
				put(s, key(10+i), done("1"))
			}
			for range 10 {
				if w := <-ended; w.err != nil {
					t.Error(w.err)
				}
			}
		})
		if dt > 600*time.Millisecond {
			t.Errorf("returned after %s", dt)
		}
	})
	t.Run("B-021 reconnections are counted, nothing is left", func(t *testing.T) {
		redistest.Eventually(t, "the connections are as before", func() bool { a, n := clients(s); return a == conns && n == subs && n == 1 })
		goroutines(t, before)
		if n := b.Stats().Reconnects; n != 3 {
			t.Errorf("%d reconnections, want 3", n)
		}
	})
}

func TestB022AHalfOpenSubscription(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	c := quick(p.Addr())
	b := open(t, c)
	b.subscribed(t)
	ended := b.await(t.Context(), 5, mine)
	b.waiting(t, 5)
	p.Abandon()
	at := time.Now()
	for i := range 5 {
		put(s, key(i), done("1"))
	}
	t.Run("B-022 the heartbeat notices within the stated time, a metric shows it", func(t *testing.T) {
		redistest.Eventually(t, "it is noticed", func() bool { return b.Stats().Reconnects > 0 })
		stated := c.Heartbeat + c.Timeout + time.Second
		if dt := time.Since(at); dt > stated+500*time.Millisecond {
			t.Errorf("noticed after %s, stated %s", dt, stated)
		}
		b.subscribed(t)
	})
	t.Run("B-022 waits return by polling", func(t *testing.T) {
		for range 5 {
			if w := <-ended; w.err != nil {
				t.Error(w.err)
			}
		}
		stated := 2*c.Redis.Dialer.KeepAlive + c.Timeout + c.Wait.Poll
		if dt := time.Since(at); dt > stated+time.Second {
			t.Errorf("returned after %s, stated %s", dt, stated)
		}
	})
}

// Only the subscription is dead, and commands work: what nobody notices without
// a heartbeat.
func TestB022OnlyTheSubscriptionIsHalfOpen(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	c := quick(p.Addr())
	c.Wait.Poll = 20 * time.Second
	b := open(t, c)
	b.subscribed(t)
	p.Abandon()
	// A first look makes a new connection for commands, while the subscription
	// is still believed.
	ended := b.await(t.Context(), 1, mine)
	b.waiting(t, 1)
	redistest.Eventually(t, "it is noticed", func() bool { return b.Stats().Reconnects > 0 })
	b.subscribed(t)
	dt := took(func() { put(s, key(0), done("1")); <-ended })
	if dt > time.Second {
		t.Errorf("the new subscription is effective after %s", dt)
	}
}

func TestB023NothingHasSeveralMeanings(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, quick(s.Addr()))
	for _, output := range []string{`null`, `{}`, `""`, `0`, `false`} {
		t.Run("B-023 a success whose result is "+output, func(t *testing.T) {
			s.Do("SET", "k", done(output))
			d, err := b.Await(t.Context(), "k", mine)
			if err != nil || string(d.Output) != output {
				t.Errorf("%q, %v", d.Output, err)
			}
		})
	}
	for name, doc := range map[string]string{
		"zero bytes": "", "null": "null", "a list": "[]", "a brace": "{", "0xFF": "\xff", "a byte order mark": "\ufeff" + done("1"),
		"two documents": done("1") + done("1"), "HTML": "<html><body>502 Bad Gateway</body></html>",
	} {
		t.Run("B-023 a mailbox that holds "+name, func(t *testing.T) {
			k := "k " + name
			s.Do("SET", k, doc)
			before := b.Stats().LookedAt
			d, err := b.Await(t.Context(), k, mine)
			if e, ok := is[*mailbox.ProtocolError](err); !ok || e.Size != len(doc) {
				t.Errorf("%v", err)
			}
			if n := b.Stats().LookedAt - before; n != 1 {
				t.Errorf("looked at %d times", n)
			}
			if err := d.Ack(t.Context()); err != nil || s.Int("EXISTS", k) != 0 {
				t.Errorf("Ack: %v", err)
			}
		})
	}
}

func TestB024ErrorsThatPass(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, reply := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"CLUSTERDOWN The cluster is down", "NOAUTH Authentication required.", "MASTERDOWN Link with MASTER is down",
		"NOPERM this user has no permissions to run the 'eval' command", "BUSY Redis is busy running a script.",
		"TRYAGAIN Multiple keys request during rehashing of slot", "OOM command not allowed when used memory > 'maxmemory'.",
		"MOVED 1 127.0.0.1:1", "ERR unknown command", "MISCONF Redis is configured to save RDB snapshots", "UNKNOWN canary",
	} {
		t.Run("B-024 the wait goes on: "+reply, func(t *testing.T) {
			for _, destructive := range []bool{false, true} {
				f := redistest.NewFront(t, s.Addr())
				c := quick(f.Addr())
				c.Destructive, c.Wait.Poll = destructive, 40*time.Millisecond
				b := open(t, c)
				b.subscribed(t)
				f.Answer(-1, reply)
				ended := b.await(t.Context(), 1, mine)
				put(s, key(0), done("1"))
				redistest.Eventually(t, "the box has looked in vain", func() bool { return b.Stats().LookErrors > 3 })
				f.Clear()
				if w := <-ended; w.err != nil || string(w.d.Output) != "1" {
					t.Errorf("%q, %v", w.d.Output, w.err)
				}
				if n := b.log.count("cannot look"); n != 1 {
					t.Errorf("%d lines for %d failures", n, b.Stats().LookErrors)
				}
				s.Do("DEL", key(0))
			}
		})
	}
}

func TestB024TheServerLoadsFromTheStart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := redistest.NewFront(t, s.Addr())
	f.Answer(-1, "LOADING Redis is loading the dataset in memory")
	b := open(t, quick(f.Addr()))
	s.Do("SET", key(0), done("1"))
	ended := b.await(t.Context(), 1, mine)
	redistest.Eventually(t, "the box has tried", func() bool { return b.Stats().LookErrors > 3 })
	f.Clear()
	if w := <-ended; w.err != nil {
		t.Error(w.err)
	}
	b.subscribed(t)
}

func TestB025AnAcknowledgedResultVanishes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	b := open(t, quick(p.Addr()))
	b.subscribed(t)
	o := mailbox.AwaitOpts{Ticket: ticket, Ceiling: 2 * time.Second}
	ended := b.await(t.Context(), 1, o)
	b.waiting(t, 1)
	p.Refuse()
	put(s, key(0), done("1"))
	s.Do("DEL", key(0))
	s.Do("CLIENT", "KILL", "TYPE", "normal")
	p.Pass()
	t.Run("B-025 the wait ends at its deadline, without a result", func(t *testing.T) {
		w := <-ended
		if e, ok := is[*mailbox.NoResultError](w.err); !ok || mailbox.IsFinal(w.err) || e.Err != nil {
			t.Errorf("%v", w.err)
		}
	})
	t.Run("B-025 the next attempt succeeds, the lost answer is removed", func(t *testing.T) {
		b.subscribed(t)
		next := mailbox.AwaitOpts{Ticket: mailbox.Ticket{Job: "video-7", Step: "render", Attempt: "second"}}
		again := make(chan error, 1)
		go func() { _, err := b.Await(t.Context(), "second", next); again <- err }()
		b.waiting(t, 1)
		put(s, key(0), done("1"))
		redistest.Eventually(t, "the late answer is gone", func() bool { return s.Int("EXISTS", key(0)) == 0 && b.Stats().Late == 1 })
		put(s, "second", `{"v":1,"job":"video-7","step":"render","attempt":"second","node":"n","status":"done","output":2}`)
		if err := <-again; err != nil {
			t.Error(err)
		}
	})
}

func TestB025AServerThatMayEvictIsRefused(t *testing.T) {
	s := redistest.Start(t)
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		s.Do("CONFIG", "SET", "maxmemory-policy", policy)
		t.Run("B-025 refused: "+policy, func(t *testing.T) {
			s.Do("DEL", "k")
			b := open(t, at(s.Addr()))
			_, awaited := b.Await(t.Context(), "k", mine)
			err := b.quit()
			want := `redisbox: the server may evict answers and budgets: maxmemory-policy is ` + policy + `. Run "redis-cli CONFIG SET maxmemory-policy noeviction", or set Config.AllowEviction`
			if !errors.Is(err, ErrEvicts) || err.Error() != want {
				t.Errorf("%v", err)
			}
			if awaited != mailbox.ErrStopped && awaited != mailbox.ErrNotRunning {
				t.Errorf("the wait: %v", awaited)
			}
		})
		t.Run("B-025 allowed, and shown: "+policy, func(t *testing.T) {
			c := at(s.Addr())
			c.AllowEviction = true
			b := open(t, c)
			redistest.Eventually(t, "the status shows it", func() bool { return b.Stats().Note != "" })
			s.Do("SET", "k", done("1"))
			if _, err := b.Await(t.Context(), "k", mine); err != nil || b.log.count(policy) != 1 {
				t.Errorf("%v; %q", err, b.Stats().Note)
			}
		})
	}
	t.Run("B-025 a server that does not tell is used, and shown", func(t *testing.T) {
		f := redistest.NewFront(t, s.Addr())
		f.Answer(-1, "NOPERM this user has no permissions to run the 'info' command", "INFO")
		b := open(t, at(f.Addr()))
		if _, err := b.Await(t.Context(), "k", mine); err != nil {
			t.Error(err)
		}
		redistest.Eventually(t, "the status shows it", func() bool { return b.Stats().Note != "" })
		if want := "the memory policy is not known: NOPERM this user has no permissions to run the 'info' command"; b.Stats().Note != want {
			t.Errorf("%q", b.Stats().Note)
		}
	})
}

func TestB026ManyWaitsAreCancelledAtOnce(t *testing.T) {
	s := redistest.Start(t)
	for _, whose := range []string{"the waits'", "everybody's"} {
		t.Run("B-026 "+whose+" context ends", func(t *testing.T) {
			b := open(t, at(s.Addr()))
			b.subscribed(t)
			if _, err := b.Await(t.Context(), "warm", mailbox.AwaitOpts{Ceiling: time.Millisecond}); err == nil {
				t.Fatal("an answer from nowhere")
			}
			conns, _ := clients(s)
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(context.Background())
			ended := b.await(ctx, 20, mine)
			b.waiting(t, 20)
			for i := range 5 {
				s.Do("SET", key(i), done("1"))
			}
			cancel()
			if whose == "everybody's" {
				go b.quit()
			}
			var ok int
			dt := took(func() {
				for range 20 {
					switch w := <-ended; {
					case w.err == nil && string(w.d.Output) == "1":
						ok++
					case !errors.Is(w.err, context.Canceled):
						t.Errorf("%s: %v", w.key, w.err)
					}
				}
			})
			if dt > 200*time.Millisecond || ok != 5 {
				t.Errorf("all returned after %s, %d with their answers", dt, ok)
			}
			if n := s.Int("EXISTS", key(0), key(1), key(2), key(3), key(4)); n != 5 {
				t.Errorf("%d of 5 answers are kept until they are acknowledged", n)
			}
			s.Do("FLUSHALL")
			want := 1
			if whose == "everybody's" {
				_ = b.quit()
				want, before = 0, before-3
			}
			redistest.Eventually(t, "the connections are as before", func() bool { a, n := clients(s); return a == conns-1+want && n == want })
			goroutines(t, before)
			b.Close()
		})
	}
}

func TestB066SubscribingIsForbidden(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "-subscribe")
	c := quick(s.Addr())
	c.Redis.Username, c.Redis.Password = "deaf", "secret"
	b := open(t, c)
	ended := b.await(t.Context(), 500, mine)
	b.waiting(t, 500)
	redistest.Eventually(t, "one line says so", func() bool { return b.log.count("no subscription") == 1 })
	redistest.Eventually(t, "one connection is left", func() bool { a, n := clients(s); return a == 1 && n == 0 })
	looks := b.Stats().Looks
	redistest.Eventually(t, "polls go on", func() bool { return b.Stats().Looks > looks+10 })
	if a, n := clients(s); a != 1 || n != 0 || b.Stats().Subscribed {
		t.Errorf("%d connections, %d of them subscribed", a, n)
	}
	for i := range 500 {
		s.Do("SET", key(i), done("1"))
	}
	for range 500 {
		if w := <-ended; w.err != nil {
			t.Error(w.err)
		}
	}
	if n := b.log.count("level=WARN"); n != 1 {
		t.Errorf("%d lines: %q", n, b.log.all)
	}
}

func TestB066TenThousandWaits(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, at(s.Addr()))
	b.subscribed(t)
	if _, err := b.Await(t.Context(), "warm", mailbox.AwaitOpts{Ceiling: time.Millisecond}); err == nil {
		t.Fatal("an answer from nowhere")
	}
	conns, subs := clients(s)
	own := client(t, s.Addr())
	pipe(t, own, 1, func(int) bool { return true })
	s.Do("DEL", key(0))
	channels := fmt.Sprint(s.Do("PUBSUB", "NUMSUB", DefaultChannel))
	before := runtime.NumGoroutine()
	const n = 9_999
	ctx, cancel := context.WithCancel(context.Background())
	type end struct {
		i   int
		d   mailbox.Delivery
		err error
	}
	ended := make(chan end, n)
	for i := range n {
		o, c := mailbox.AwaitOpts{Ticket: ticket}, ctx
		switch i % 3 {
		case 0:
			c = context.Background()
		case 1:
			o.Ceiling, c = 3*time.Second, context.Background()
		}
		if err := b.Watch(c, key(i), o, func(d mailbox.Delivery, err error) { ended <- end{i, d, err} }); err != nil {
			t.Fatal(err)
		}
	}
	if g := runtime.NumGoroutine(); g > before+5 {
		t.Errorf("%d goroutines for %d waits", g-before, n)
	}
	pipe(t, own, n, func(i int) bool { return i%3 == 0 })
	cancel()
	for range n {
		e := <-ended
		_, none := is[*mailbox.NoResultError](e.err)
		if e.i%3 == 0 && (e.err != nil || e.d.Ack(context.Background()) != nil) || e.i%3 == 1 && !none || e.i%3 == 2 && !errors.Is(e.err, context.Canceled) {
			t.Fatalf("wait %d: %v", e.i, e.err)
		}
	}
	pipe(t, own, n, func(i int) bool { return i%3 == 1 }) // late
	redistest.Eventually(t, "the late answers are removed", func() bool { return b.Stats().Late == n/3 })
	if st := b.Stats(); st.Done != n/3 || st.NoResult != n/3+1 || st.Left != n/3 || st.Waits != 0 || st.Acked != n/3 {
		t.Errorf("%+v", st)
	}
	if left := s.Int("DBSIZE"); left != 0 {
		t.Errorf("%d keys are left", left)
	}
	redistest.Eventually(t, "the connections are as before", func() bool { a, m := clients(s); return a == conns && m == subs })
	if now := fmt.Sprint(s.Do("PUBSUB", "NUMSUB", DefaultChannel)); now != channels {
		t.Errorf("subscriptions: %s, before %s", now, channels)
	}
	goroutines(t, before)
}

// pipe writes answers, then nudges, on one connection.
func pipe(t *testing.T, c rueidis.Client, n int, which func(int) bool) {
	t.Helper()
	var sets, nudges rueidis.Commands
	for i := range n {
		if which(i) {
			sets = append(sets, c.B().Set().Key(key(i)).Value(done("1")).ExSeconds(7200).Build())
			nudges = append(nudges, c.B().Publish().Channel(DefaultChannel).Message(key(i)).Build())
		}
	}
	for _, r := range append(c.DoMulti(t.Context(), sets...), c.DoMulti(t.Context(), nudges...)...) {
		if err := r.Error(); err != nil {
			t.Fatal(err)
		}
	}
}
