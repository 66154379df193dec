package redisbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

func TestACluster(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, 3)
	addrs := []string{all[0].Addr(), all[1].Addr(), all[2].Addr()}
	t.Run("answers", func(t *testing.T) { clusterDelivers(t, all, addrs, false) })
	t.Run("answers, destructive", func(t *testing.T) { clusterDelivers(t, all, addrs, true) })
	t.Run("a node that is down and comes back", func(t *testing.T) { clusterRecovers(t, all, addrs) })
	t.Run("one node that may evict is enough to refuse", func(t *testing.T) {
		all[1].Do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		b := open(t, quick(addrs...))
		<-b.ran
		if err := b.quit(); err == nil || !strings.Contains(err.Error(), "volatile-lru") {
			t.Error(err)
		}
	})
}

func clusterDelivers(t *testing.T, all []*redistest.Server, addrs []string, destructive bool) {
	c := quick(addrs...)
	c.Destructive = destructive
	b := open(t, c)
	b.subscribed(t)
	own, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	const n = 90
	ended := b.await(t.Context(), n, mine)
	b.waiting(t, n)
	looks := b.Stats().Looks
	redistest.Eventually(t, "it polls", func() bool { return b.Stats().Looks > looks+3 })
	pipe(t, own, n/3, func(int) bool { return true })
	for i := n / 3; i < n; i++ { // without nudges
		if err := own.Do(t.Context(), own.B().Set().Key(key(i)).Value(done("1")).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		w := <-ended
		if w.err != nil || string(w.d.Output) != "1" {
			t.Errorf("%s: %v", w.key, w.err)
		}
		if err := w.d.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if st := b.Stats(); st.LookErrors != 0 || st.Note != "" {
		t.Errorf("%+v", st)
	}
	for _, s := range all {
		if conns, subs := clients(s); conns > 2 || subs > 1 || s.Int("DBSIZE") != 0 {
			t.Errorf("%d connections, %d subscribed, %d keys left", conns, subs, s.Int("DBSIZE"))
		}
	}
	budget, err := b.Budget(BudgetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if got, err := budget.Add(t.Context(), fmt.Sprint("job", i), "step", "a"); err != nil || got != 1 {
			t.Error(got, err)
		}
	}
	for _, s := range all {
		s.Do("FLUSHALL")
	}
	_ = b.quit()
	b.Close()
}

func clusterRecovers(t *testing.T, all []*redistest.Server, addrs []string) {
	b := open(t, quick(addrs...))
	b.subscribed(t)
	ended := b.await(t.Context(), 9, mine)
	b.waiting(t, 9)
	all[2].Kill()
	redistest.Eventually(t, "looks fail", func() bool { return b.Stats().Blind })
	all[2].Launch()
	redistest.Eventually(t, "the cluster is whole again", func() bool {
		return strings.Contains(all[0].Text("CLUSTER", "INFO"), "cluster_state:ok") && strings.Contains(all[2].Text("CLUSTER", "INFO"), "cluster_state:ok")
	})
	own, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	pipe(t, own, 9, func(int) bool { return true })
	for range 9 {
		if w := <-ended; w.err != nil {
			t.Error(w.err)
		}
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master.Addr())
	sentinel := redistest.StartSentinel(t, "answers", master)
	c := quick(sentinel.Addr())
	c.Redis.Sentinel.MasterSet = "answers"
	b := open(t, c)
	b.subscribed(t)
	ended := b.await(t.Context(), 2, mailbox.AwaitOpts{Ticket: ticket, Ceiling: time.Minute})
	b.waiting(t, 2)
	put(master, key(0), done("1"))
	if w := <-ended; w.err != nil || w.d.Ack(t.Context()) != nil || master.Int("EXISTS", key(0)) != 0 {
		t.Errorf("%v", w.err)
	}
	master.Kill()
	redistest.Eventually(t, "the replica is the master", replica.IsMaster)
	put(replica, key(1), done("1"))
	if w := <-ended; w.err != nil || w.key != key(1) || w.d.Ack(t.Context()) != nil || replica.Int("EXISTS", key(1)) != 0 {
		t.Errorf("after the failover: %v", w.err)
	}
	b.subscribed(t)
	redistest.Eventually(t, "the subscription is the new master's", func() bool { _, n := clients(replica); return n == 1 })
}
