package redisinbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
)

// trial has two bridges and four nodes work while a fault happens, and proves that
// nothing was lost, that each answer was settled, and that nothing is left.
func trial(t *testing.T, bridges, node rueidis.ClientOption, fault func()) (*store, []*Inbox) {
	t.Helper()
	st := newStore()
	var ins []*Inbox
	for range 2 {
		in := open(t, bridges)
		run(t, in, st.deliver)
		reading(t, in)
		ins = append(ins, in)
	}
	n := newNodes(t, ins[0], node)
	loaded := n.load(200)
	redistest.Eventually(t, "half is settled", func() bool { got, _, _ := st.count(); return got > 60 })
	fault()
	<-loaded
	n.drained(st)
	expect(t, "confirmed", len(n.all()), 200)
	if got, _, _ := st.count(); got != 200 {
		t.Errorf("settled %d, want 200", got)
	}
	for _, in := range ins {
		reading(t, in)
		if n := strings.Count(loggedBy(in), "\n"); n > 12 {
			t.Errorf("%d lines in the log:\n%s", n, loggedBy(in))
		}
	}
	return st, ins
}

func TestUndisturbed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, ins := trial(t, at(s.Addr()), at(s.Addr()), func() {})
	if _, again, _ := st.count(); again != 0 {
		t.Errorf("%d answers were delivered twice", again)
	}
	var read, removed int64
	for _, in := range ins {
		read, removed = read+in.Status().Read, removed+in.Status().Removed
		if strings.Contains(loggedBy(in), "doing=read") {
			t.Errorf("the log: %s", loggedBy(in))
		}
		expect(t, "gaps", in.Status().Gaps, 0)
	}
	expect(t, "read, removed", fmt.Sprint(read, removed), "200 200")
}

func TestFaultsOfTheServer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*redistest.Server){
		"restart": func(s *redistest.Server) {
			s.Try("SHUTDOWN", "NOSAVE")
			s.Restart()
		},
		"kill -9, back later": func(s *redistest.Server) {
			s.Kill()
			sleep(context.Background(), 500*time.Millisecond)
			s.Launch()
		},
		"away so long that clients are made anew": func(s *redistest.Server) {
			s.Kill()
			sleep(context.Background(), 3*time.Second)
			s.Launch()
		},
		"paused": func(s *redistest.Server) {
			s.Pause()
			sleep(context.Background(), 1500*time.Millisecond)
			s.Resume()
		},
		"made read-only": func(s *redistest.Server) {
			s.Do("REPLICAOF", "127.0.0.1", "1")
			sleep(context.Background(), 500*time.Millisecond)
			s.Do("REPLICAOF", "NO", "ONE")
		},
		"full": func(s *redistest.Server) {
			s.Do("CONFIG", "SET", "maxmemory", "1")
			sleep(context.Background(), 500*time.Millisecond)
			s.Do("CONFIG", "SET", "maxmemory", "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			trial(t, at(s.Addr()), at(s.Addr()), func() { fault(s) })
		})
	}
}

func TestFaultsOfTheNetwork(t *testing.T) {
	t.Parallel()
	wait := func(d time.Duration) { sleep(context.Background(), d) }
	for name, fault := range map[string]func(*faultproxy.Proxy){
		"every link cut": func(p *faultproxy.Proxy) { p.Cut(); wait(200 * time.Millisecond); p.Cut() },
		"refused":        func(p *faultproxy.Proxy) { p.Refuse(); wait(500 * time.Millisecond); p.Pass() },
		"half-open":      func(p *faultproxy.Proxy) { p.Abandon() },
		"silent":         func(p *faultproxy.Proxy) { p.Silence(); wait(time.Second); p.Pass() },
		"silent so long that clients are made anew": func(p *faultproxy.Proxy) { p.Silence(); wait(4 * time.Second); p.Pass() },
		"slow": func(p *faultproxy.Proxy) { p.Delay(50 * time.Millisecond); wait(time.Second); p.Pass() },
		"replies to reads dropped": func(p *faultproxy.Proxy) {
			for range 5 {
				<-p.CutReply("XREADGROUP", 1)
			}
		},
		"replies to removals dropped": func(p *faultproxy.Proxy) {
			for range 5 {
				<-p.CutReply("EXEC", 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := faultproxy.New(t, s.Addr())
			trial(t, at(p.Addr()), at(s.Addr()), func() { fault(p) })
		})
	}
}

// The nth command that could remove is cut off, before or after it ran: every entry
// is removed only when Deliver said so, and none stays.
func TestP9NoCutRemovesWhatNobodyIsDoneWith(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	in := open(t, at(p.Addr()))
	n := newNodes(t, in, at(s.Addr()))
	st := newStore()
	var refuse atomic.Bool
	refuse.Store(true)
	stop := run(t, in, func(ctx context.Context, list []Entry) ([]bool, error) {
		if refuse.Load() {
			return make([]bool, len(list)), nil
		}
		return st.deliver(ctx, list)
	})
	for _, cut := range []func(string, int) <-chan struct{}{p.CutReply, p.CutRequest} {
		for _, command := range []string{"XREADGROUP", "XCLAIM", "XPENDING", "XRANGE", "EVAL"} {
			n.answer("{}")
			done := cut(command, 1)
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				case <-time.After(50 * time.Millisecond):
					in.LastLook(context.Background())
				}
			}
			if entries, _, err := n.rest(); err != nil || entries != int64(len(n.all())) {
				t.Fatalf("cut at %s: %d entries of %d are there, %v", command, entries, len(n.all()), err)
			}
		}
	}
	stop()
	refuse.Store(false)
	run(t, in, st.deliver)
	n.drained(st)
}

func TestFlushedServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	in := open(t, at(s.Addr()))
	st := newStore()
	run(t, in, st.deliver)
	reading(t, in)
	n := newNodes(t, in, at(s.Addr()))
	for range 5 {
		n.answer("{}")
		n.drained(st)
		s.Do("FLUSHALL")
		n.answer("{}") // at once
		n.drained(st)
	}
	expect(t, "settled", st.size(), 10)
	expect(t, "clients made", in.Status().Connects, 1)
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master.Addr())
	sentinel := redistest.StartSentinel(t, "inbox", master)
	o := at(sentinel.Addr())
	o.Sentinel.MasterSet = "inbox"
	inStep := func() bool {
		return master.Info("master_repl_offset") == replica.Info("master_repl_offset")
	}
	st, in := newStore(), open(t, o)
	run(t, in, st.deliver)
	reading(t, in)
	n := newNodes(t, in, o)
	<-n.load(100)
	n.drained(st)
	st.mu.Lock()
	st.fault = func(int) error { return errStore } // what comes now waits
	st.mu.Unlock()
	n.answer("waits over the failover")
	redistest.Eventually(t, "the replica has it", inStep)
	master.Kill()
	st.mu.Lock()
	st.fault = nil
	st.mu.Unlock()
	redistest.Eventually(t, "the replica is the master", replica.IsMaster)
	<-n.load(100)
	n.drained(st)
	expect(t, "settled", st.size(), 201)
	if in.Status().Gaps == 0 || in.Readable(time.Minute) {
		t.Error("a failover left no gap, though it may lose answers")
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, 3)
	o := at(all[0].Addr())
	t.Run("undisturbed", func(t *testing.T) {
		_, ins := trial(t, o, o, func() {})
		if n := len(ins[0].sessions[0].lanes); n != Shards {
			t.Errorf("%d reads at once, want one for each shard", n)
		}
		if err := ins[0].Check(context.Background()); err != nil {
			t.Errorf("Check: %v", err)
		}
		if err := ins[0].LastLook(context.Background()); err != nil {
			t.Errorf("LastLook: %v", err)
		}
	})
	t.Run("a master killed", func(t *testing.T) {
		trial(t, o, o, func() {
			all[1].Kill()
			sleep(context.Background(), 500*time.Millisecond)
			all[1].Launch()
		})
	})
	t.Run("all killed", func(t *testing.T) {
		trial(t, o, o, func() {
			for _, s := range all {
				s.Kill()
			}
			sleep(context.Background(), 3*time.Second)
			for _, s := range all {
				s.Launch()
			}
		})
	})
	t.Run("a shard moves", func(t *testing.T) {
		trial(t, o, o, func() { move(t, all, slot("settle:{7}:inbox", all[0])) })
	})
}

// A client that was made for one server cannot learn that there is a Cluster now.
func TestAClientIsMadeAnewWhenItCannotRecover(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	all := redistest.StartCluster(t, 3)
	p := faultproxy.New(t, s.Addr())
	in, st := open(t, at(p.Addr())), newStore()
	run(t, in, st.deliver)
	reading(t, in)
	p.SetTarget(all[0].Addr())
	p.Cut()
	n := newNodes(t, in, at(all[0].Addr()))
	n.answer("{}")
	n.drained(st)
	if got := in.Status().Connects; got < 2 || got > 4 {
		t.Errorf("%d clients were made", got)
	}
	p.SetTarget(s.Addr())
	p.Cut()
	for _, m := range all {
		m.Kill()
	}
	back := newNodes(t, in, at(s.Addr()))
	back.answer("{}")
	back.drained(st)
}

// move moves a slot with all its keys to another master.
func move(t *testing.T, all []*redistest.Server, slot string) {
	t.Helper()
	var from *redistest.Server
	for _, s := range all {
		if s.Int("CLUSTER", "COUNTKEYSINSLOT", slot) > 0 {
			from = s
		}
	}
	to := all[0]
	if from == to {
		to = all[1]
	}
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Text("CLUSTER", "MYID"))
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Text("CLUSTER", "MYID"))
	keys, _ := from.Do("CLUSTER", "GETKEYSINSLOT", slot, "10").([]any)
	for _, key := range keys {
		from.Do("MIGRATE", "127.0.0.1", to.Port(), key.(string), "0", "5000")
	}
	for _, s := range []*redistest.Server{to, from, all[2], all[1], all[0]} {
		s.Do("CLUSTER", "SETSLOT", slot, "NODE", to.Text("CLUSTER", "MYID"))
	}
}

func slot(key string, s *redistest.Server) string {
	return strconv.Itoa(s.Int("CLUSTER", "KEYSLOT", key))
}

func TestP9KilledBridges(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	in := open(t, at(s.Addr()))
	n := newNodes(t, in, at(s.Addr()))
	var to commits
	c := victimConfig{Addr: s.Addr(), Lag: 30 * time.Millisecond} // always read and not committed, or committed and not removed
	a, b := startVictim(t, c, &to), startVictim(t, c, &to)
	loaded := n.load(200)
	for i := range 6 {
		redistest.Eventually(t, "some are settled", func() bool { return to.has(n.all()) > 20*i })
		if i == 3 {
			a.kill() // both at once
		}
		b.kill()
		a, b = startVictim(t, c, &to), a
		if i == 3 {
			b = startVictim(t, c, &to)
		}
	}
	<-loaded
	redistest.Eventually(t, "all is settled", func() bool { return to.has(n.all()) == 200 })
	n.emptied()
	redistest.Eventually(t, "no name of a dead bridge is left after a while", func() bool {
		keep := open(t, at(s.Addr()))
		keep.pace.dead = 100 * time.Millisecond
		stop := run(t, keep, newStore().deliver)
		reading(t, keep)
		a.kill()
		b.kill()
		sleep(context.Background(), 300*time.Millisecond)
		stop()
		list, _ := s.Do("XINFO", "CONSUMERS", "settle:{0}:inbox", group).([]any)
		return len(list) == 0
	})
}

func TestP4AnEntryThatKillsBooksNoNeighbourAsPoisoned(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	in := open(t, at(s.Addr()))
	n := newNodes(t, in, at(s.Addr()))
	job := settle.NewID()
	for range 10 { // all in one stream
		attempt := settle.NewID()
		attempt[15] = 3
		a := in.Address(job, attempt)
		n.add(a.Stream, a.Ticket, "{}")
		n.confirmed = append(n.confirmed, attempt)
	}
	deadly := settle.NewID()
	deadly[15] = 3
	a := in.Address(job, deadly)
	n.add(a.Stream, a.Ticket, "deadly")
	var to commits
	deaths := 0
	for ; to.has([]settle.ID{deadly}) == 0; deaths++ {
		p := startVictim(t, victimConfig{Addr: s.Addr(), Die: "deadly"}, &to)
		redistest.Eventually(t, "it died, or all is settled", func() bool {
			select {
			case <-p.gone:
				return true
			default:
				return to.has([]settle.ID{deadly}) == 1
			}
		})
		if deaths > 15 {
			t.Fatal("it is never poisoned")
		}
	}
	redistest.Eventually(t, "the others are settled", func() bool { return to.has(n.all()) == 10 })
	expect(t, "deaths", deaths-1, poisoned)
	expect(t, "poisoned", to.poisoned, []settle.ID{deadly})
	n.emptied()
}
