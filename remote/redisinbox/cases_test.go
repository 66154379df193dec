package redisinbox

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/redistest"
)

func TestB024AServerThatLoadsIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	n := newNodes(t, open(t, at(s.Addr())), at(s.Addr()))
	f := redistest.NewFront(t, s.Addr())
	in := open(t, at(f.Addr()))
	st := newStore()
	f.Answer(-1, "LOADING Redis is loading the dataset in memory")
	run(t, in, st.deliver)
	n.answer("result")
	sleep(t.Context(), 5*time.Second) // half of it before any connection …
	f.Clear()
	n.drained(st)
	reading(t, in)
	f.Answer(-1, "LOADING Redis is loading the dataset in memory")
	redistest.Eventually(t, "it is loading", func() bool { return !in.Readable(0) })
	n.answer("result")
	sleep(t.Context(), 5*time.Second) // … and half under way
	seen := f.Seen("XREADGROUP")
	f.Clear()
	n.drained(st)

	t.Run("B-024 the wait goes on and returns the result", func(t *testing.T) {
		expect(t, "settled", st.size(), 2)
	})
	t.Run("B-024 budget and breaker are untouched: nothing but the results is delivered", func(t *testing.T) {
		_, again, calls := st.count()
		expect(t, "calls, doubled", []int{calls, again}, []int{2, 0})
		if in.Readable(time.Minute) {
			t.Error("silence would be blamed on a node")
		}
	})
	t.Run("B-024 the log has a few lines", func(t *testing.T) {
		if lines := strings.Count(loggedBy(in), "\n"); lines == 0 || lines > 8 {
			t.Errorf("%d lines:\n%s", lines, loggedBy(in))
		}
		if seen > 60 {
			t.Errorf("asked %d times", seen)
		}
	})
}

func TestB024OtherStatesThatPass(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"READONLY You can't write against a read only replica.", "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN The cluster is down", "MOVED 1 127.0.0.1:1", "TRYAGAIN Multiple keys request during rehashing of slot", "BUSY Redis is busy running a script.",
		"NOAUTH Authentication required.", "NOPERM this user has no permissions", "OOM command not allowed when used memory > 'maxmemory'.", "MAXCLIENTS too many",
		"NOGROUP No such key", "UNBLOCKED the stream key no longer exists", "WRONGTYPE Operation against a key", "something else"} {
		t.Run(strings.Fields(reply)[0], func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			f := redistest.NewFront(t, s.Addr())
			in := open(t, at(f.Addr()))
			n := newNodes(t, in, at(s.Addr()))
			st := newStore()
			run(t, in, st.deliver)
			reading(t, in)
			f.Answer(-1, reply, "XREADGROUP", "XPENDING", "XCLAIM", "XACK", "XDEL", "XRANGE", "EXEC", "XGROUP")
			redistest.Eventually(t, "it shows", func() bool {
				return !in.Readable(0) && strings.Contains(in.Status().LastError, strings.Fields(reply)[0])
			})
			n.answer("{}")
			f.Clear()
			n.drained(st)
			reading(t, in)
		})
	}
}

func TestB025AConfirmedAnswerVanishes(t *testing.T) {
	s, in, n := rig(t)
	st := newStore()
	hold, held := make(chan struct{}), make(chan struct{}, 1000)
	run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		held <- struct{}{}
		<-hold // nothing is read from now on
		return st.deliver(ctx, list)
	})
	reading(t, in)
	n.answer("holds the reader")
	<-held
	lost := n.answer("lost")
	a := in.Address(lost, lost)
	s.Do("FLUSHALL")
	s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	close(hold)
	redistest.Eventually(t, "it is read again", func() bool {
		return in.Status().Gaps > 0 && in.Readable(100*time.Millisecond) && in.LastLook(t.Context()) == nil
	})

	t.Run("B-025 the wait ends as no result, and no node is blamed", func(t *testing.T) {
		if err := in.LastLook(t.Context()); err != nil {
			t.Errorf("a last look: %v", err)
		}
		expect(t, "settled", st.has(lost), 0)
		if in.Readable(time.Minute) || in.Status().Gaps == 0 {
			t.Error("there was no gap")
		}
	})
	t.Run("B-025 the next attempt succeeds", func(t *testing.T) {
		next := n.answer("next")
		redistest.Eventually(t, "the next is settled", func() bool { return st.has(next) == 1 })
	})
	t.Run("B-025 the lost one is offered as what it is if it appears later, and removed", func(t *testing.T) {
		n.add(a.Stream, a.Ticket, "late")
		redistest.Eventually(t, "it is offered under its own attempt", func() bool { return st.has(lost) == 1 })
		n.emptied()
	})
}

func TestB025AMemoryPolicyThatEvicts(t *testing.T) {
	t.Parallel()
	for policy, refused := range map[string]bool{"allkeys-lru": true, "allkeys-lfu": true, "allkeys-random": true,
		"noeviction": false, "volatile-lru": false, "volatile-ttl": false} {
		s := redistest.Start(t, "maxmemory 50mb", "maxmemory-policy "+policy)
		in := open(t, at(s.Addr()))
		err := in.Check(t.Context())
		t.Run("B-025 start-up refuses "+policy, func(t *testing.T) {
			if errors.Is(err, ErrEvicts) != refused || err != nil && !strings.Contains(err.Error(), "CONFIG SET maxmemory-policy noeviction") {
				t.Errorf("got %v", err)
			}
		})
		t.Run("B-025 the state is visible in the status view", func(t *testing.T) {
			st := in.Status()
			if st.Policy != policy || st.Version == "" || st.AppendOnly != "yes" || (st.Warning != "") != refused {
				t.Errorf("got %+v", st)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	s, in, n := rig(t)
	s.Do("CONFIG", "SET", "appendonly", "no")
	expect(t, "without a log", in.Check(t.Context()), nil)
	if !strings.Contains(in.Status().Warning, "appendonly") || !strings.Contains(loggedBy(in), "appendonly") {
		t.Errorf("status %+v, log %s", in.Status(), loggedBy(in))
	}
	s.Do("ACL", "SETUSER", "default", "-info", "-config")
	expect(t, "where INFO is refused", in.Check(t.Context()), nil)
	expect(t, "policy", in.Status().Policy, unknown)
	st := newStore()
	run(t, in, st.deliver)
	n.answer("{}")
	n.drained(st)
	s.Do("ACL", "SETUSER", "default", "+info", "+config")
	s.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	redistest.Eventually(t, "a change under way shows", func() bool { return strings.Contains(in.Status().Warning, "allkeys-lru") })
	n.answer("{}")
	n.drained(st)
	if !strings.Contains(loggedBy(in), "allkeys-lru") {
		t.Errorf("it is not logged: %s", loggedBy(in))
	}
	s.Kill()
	var op *net.OpError
	if err := in.Check(t.Context()); !errors.As(err, &op) {
		t.Errorf("a server that is away: %v", err)
	}
}
