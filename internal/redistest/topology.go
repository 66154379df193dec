package redistest

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faultproxy"
)

// StartReplica starts a replica of the server at addr, which may be a proxy in
// front of it, and waits until it has its data.
func StartReplica(t testing.TB, addr string, conf ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	s := Start(t, append([]string{"replicaof " + host + " " + port}, conf...)...)
	Eventually(t, "the replica is in step", func() bool { return s.Info("master_link_status") == "up" })
	return s
}

// StartSentinel starts a Sentinel, alone in its quorum, that watches a master by
// name, holds it for dead after half a second, and already knows its replicas.
func StartSentinel(t testing.TB, name string, master *Server) *Server {
	t.Helper()
	s := start(t, []string{
		"sentinel monitor " + name + " 127.0.0.1 " + master.Port() + " 1",
		"sentinel down-after-milliseconds " + name + " 500",
		"sentinel failover-timeout " + name + " 5000",
	}, "--sentinel")
	want, _ := strconv.Atoi(master.Info("connected_slaves"))
	Eventually(t, "the sentinel knows the replicas", func() bool {
		list, _ := s.Do("SENTINEL", "replicas", name).([]any)
		return len(list) == want
	})
	return s
}

// IsMaster reports whether it is there, and is no replica.
func (s *Server) IsMaster() bool {
	reply, err := s.Try("ROLE")
	list, _ := reply.([]any)
	return err == nil && len(list) > 0 && list[0] == "master"
}

// StartCluster starts a Cluster of masters without replicas, and waits until
// every one of them serves its part.
func StartCluster(t testing.TB, masters int, conf ...string) []*Server {
	t.Helper()
	var all []*Server
	var buses []string
	for i := range masters {
		_, bus, _ := net.SplitHostPort(faultproxy.FreeAddr(t))
		s := Start(t, append([]string{"cluster-enabled yes", "cluster-node-timeout 2000", "cluster-port " + bus}, conf...)...)
		s.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*16384/masters), strconv.Itoa((i+1)*16384/masters-1))
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		for n, other := range all { // each meets each: gossip takes seconds
			s.Do("CLUSTER", "MEET", "127.0.0.1", other.Port(), buses[n])
			other.Do("CLUSTER", "MEET", "127.0.0.1", s.Port(), bus)
		}
		all, buses = append(all, s), append(buses, bus)
	}
	for _, s := range all {
		Eventually(t, "the cluster is whole", func() bool {
			return strings.Contains(s.Text("CLUSTER", "INFO"), "cluster_state:ok") &&
				strings.Count(s.Text("CLUSTER", "NODES"), " connected ") == masters
		})
	}
	return all
}

// Eventually waits until what must come true has come true, and fails the test
// if that takes more than 20 s.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range patience / (5 * time.Millisecond) {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited %v in vain until %s", patience, what)
}
