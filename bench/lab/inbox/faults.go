package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

var t0 = context.Background()

func pause(f float64) { time.Sleep(seconds(f)) }

// steady runs both forms with few and many waits, in turn.
func steady() {
	for range *rounds {
		for _, waits := range []int{10_000, 1_000_000} {
			for _, form := range []string{"stream", "keys, each polls a third", "keys, each polls all"} {
				t := single(strings.Split(form, ",")[0], fmt.Sprintf("%s, %d waits", form, waits), waits)
				t.PollAll = form == "keys, each polls all"
				t.idle = seconds(*idle)
				t.run()
				t.servers[0].close()
			}
		}
	}
}

// single is a trial on one server of its own.
func single(form, label string, waits int) *trial {
	return newTrial(form, label, waits, startRedis())
}

func reads() {
	for _, perShard := range []bool{false, true, false, true} {
		label := map[bool]string{false: "one read of 16 shards", true: "16 reads of one shard"}[perShard]
		t := single("stream", label, 10_000)
		t.PerShard, t.idle = perShard, seconds(*idle)
		t.run()
		t.servers[0].close()
	}
}

// forms runs a fault on both forms.
func forms(label string, f func(*trial)) {
	for _, form := range []string{"stream", "keys"} {
		t := single(form, form+", "+label, 10_000)
		f(t)
		t.run()
		for _, s := range t.servers {
			s.close()
		}
	}
}

// kills also has a store so slow that a kill always meets answers in the making:
// read and not committed, or committed and not removed.
func kills() {
	for _, lag := range []time.Duration{0, 100 * time.Millisecond} {
		with := fmt.Sprintf(", commit %d ms", 2*lag.Milliseconds())
		forms("kill -9 of bridges, 6 times"+with, func(t *trial) {
			t.Lag, t.happens = lag, killBridges
		})
		forms("all bridges killed at once"+with, func(t *trial) {
			t.Lag, t.happens = lag, killAll
		})
	}
}

func killAll(t *trial) {
	for range 2 {
		pause(3)
		for i := range t.kids {
			t.kill(i)
		}
		t.startAll()
	}
}

func killBridges(t *trial) {
	for n := range 6 {
		pause(1.2)
		t.kill(n % bridges)
		pause(0.3)
		t.start(n % bridges)
	}
}

func restarts() {
	forms("redis kill -9, back in 1 s", func(t *trial) {
		t.happens = func(t *trial) {
			pause(4)
			t.servers[0].kill()
			pause(1)
			t.servers[0].start()
		}
	})
	for _, stall := range []bool{false, true} {
		label := "… its log cut back by 1 s"
		if stall {
			label += ", store stalls"
		}
		forms(label, func(t *trial) {
			t.happens = func(t *trial) { powerCut(t, stall) }
		})
	}
}

// powerCut takes the server's last second away, as a power cut may under
// appendfsync everysec.
func powerCut(t *trial, stall bool) {
	s := t.servers[0]
	pause(4)
	from := t.store.now()
	before, err := os.Stat(s.logFile())
	must(err)
	t.store.stall.Store(stall)
	pause(1)
	s.kill()
	must(os.Truncate(s.logFile(), before.Size()))
	t.store.stall.Store(false)
	window(t, from)
	s.start()
}

// window prints how many answers were confirmed since then: at most these may
// be lost.
func window(t *trial, from time.Duration) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	n, open := 0, 0
	for _, w := range t.store.waits {
		if w.acked >= from {
			n++
			if w.settled == 0 {
				open++
			}
		}
	}
	fmt.Printf("   (confirmed to nodes in the lost %.2f s: %d, of these not settled yet: %d)\n", (t.store.now() - from).Seconds(), n, open)
}

// failover kills a master whose replica has had nothing for half a second; once
// more while the store stalls in that time, so that answers are lost unsettled.
func failover() {
	for _, form := range []string{"stream", "keys"} {
		for _, busy := range []bool{false, true} {
			promote(form, busy)
		}
	}
}

func promote(form string, storeStalls bool) {
	master := startRedis()
	link := newProxy(master.addr())
	replica := startRedis()
	_, port := splitAddr(link.addr())
	replica.do("REPLICAOF", "127.0.0.1", port)
	for replica.info("replication", "master_sync_in_progress") != 0 || master.info("replication", "connected_slaves") != 1 {
		pause(0.1)
	}
	sentinel := startSentinel(master)
	pause(2.5) // the sentinel learns of the replica
	label := form + ", failover, replica 0.5 s behind"
	if storeStalls {
		label += ", store stalls"
	}
	t := newTrial(form, label, 10_000, replica)
	t.addrs, t.Sentinel = []string{sentinel.addr()}, true
	t.happens = func(t *trial) {
		pause(4)
		from := t.store.now()
		link.frozen.Store(true)
		t.store.stall.Store(storeStalls)
		pause(0.5)
		master.kill()
		t.store.stall.Store(false)
		window(t, from)
		at := time.Now()
		for !isMaster(replica) {
			pause(0.02)
		}
		fmt.Printf("   (promoted after %.1f s)\n", time.Since(at).Seconds())
	}
	t.run()
	link.close()
	for _, s := range []*server{sentinel, replica, master} {
		s.close()
	}
}

func halfOpen() {
	forms("a bridge's link dead for 6 s", func(t *trial) {
		t.via = newProxy(t.servers[0].addr())
		t.happens = func(t *trial) {
			pause(3)
			t.via.frozen.Store(true)
			pause(6)
			t.via.frozen.Store(false)
		}
	})
}

func cluster() {
	for _, c := range []struct {
		label   string
		happens func(*trial)
	}{
		{"Cluster, undisturbed", nil},
		{"Cluster, kill -9 of bridges", killBridges},
		{"Cluster, a master killed, back 1 s", func(t *trial) {
			pause(4)
			t.servers[1].kill()
			pause(1)
			t.servers[1].start()
		}},
	} {
		t := newTrial("stream", c.label, 10_000, startCluster(3)...)
		t.PerShard, t.happens = true, c.happens
		if c.happens == nil {
			t.idle = seconds(*idle)
		}
		t.run()
		for _, s := range t.servers {
			s.close()
		}
	}
}

func flush() {
	t := single("stream", "stream, FLUSHALL twice", 10_000)
	t.happens = func(t *trial) {
		for range 2 {
			pause(3)
			window(t, t.store.now()-100*time.Millisecond)
			t.servers[0].do("FLUSHALL")
		}
	}
	t.run()
	t.servers[0].close()
}

// slow has living bridges that need longer than the take-over waits: each
// answer is read by several.
func slow() {
	t := single("stream", "stream, commits take 3 s, take-over 2 s", 10_000)
	t.Lag = 1500 * time.Millisecond
	t.run()
	t.servers[0].close()
}

func burst() {
	t := single("stream", "stream, backlog while no bridge ran", 10_000)
	t.hold = true
	t.happens = func(t *trial) {
		pause(t.load.Seconds() - 0.3)
		fmt.Printf("   (backlog before bridges: redis %.1f MB)\n", t.servers[0].info("memory", "used_memory")/1e6)
	}
	t.run()
	t.servers[0].close()
}
