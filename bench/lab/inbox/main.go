// Command inbox is the experiment behind docs/decisions/007-inbox-stream.md:
// how the answers of remote nodes reach the processes that settle the waits.
// Form A is a key per wait with a nudge by pub/sub and a poll of all waits;
// form B is a stream shared by all tickets, in 16 shards, read by a consumer
// group. Three bridges run as processes of their own against private Redis
// servers on loopback; nodes answer 1 000 waits a second meanwhile.
//
//	go build -o inbox . && ./inbox              # all parts, about fifteen minutes
//	./inbox -part steady,kill                   # some of them
//
// It needs redis-server in the PATH and removes all that it started.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// parts in the order in which they run.
var parts = []struct {
	name string
	run  func()
}{
	{"steady", steady},     // both forms, few and many waits, under load and idle
	{"reads", reads},       // one blocking read of 16 shards against 16 reads of one
	{"kill", kills},        // kill -9 of bridges
	{"restart", restarts},  // kill -9 of Redis, then with the last second of its log cut off
	{"failover", failover}, // Sentinel promotes a replica that had fallen behind
	{"halfopen", halfOpen}, // a link that stops forwarding and stays open
	{"cluster", cluster},   // three masters; kills of bridges and of a master
	{"flush", flush},       // FLUSHALL: groups and answers gone
	{"slow", slow},         // living bridges slower than the take-over
	{"burst", burst},       // answers that piled up while no bridge ran
	{"traps", traps},       // single questions to the server and to the client library
}

var (
	part   = flag.String("part", "all", "comma-separated parts to run")
	rounds = flag.Int("rounds", 2, "rounds of the steady part")
	secs   = flag.Float64("secs", 12, "seconds of load per case")
	idle   = flag.Float64("idle", 6, "seconds without answers after the load, in the steady part")
	child  = flag.String("child", "", "internal: run as a bridge with this JSON configuration")
)

func main() {
	flag.Parse()
	if *child != "" {
		bridgeMain(*child)
		return
	}
	dir, err := os.MkdirTemp("", "settle-inbox-")
	must(err)
	scratch.Store(&dir)
	go cleanUp()
	start := time.Now()
	for _, p := range parts {
		if *part != "all" && !strings.Contains(","+*part+",", ","+p.name+",") {
			continue
		}
		at := time.Now()
		fmt.Printf("\n== %s\n", p.name)
		p.run()
		fmt.Printf("   (%s took %.0f s)\n", p.name, time.Since(at).Seconds())
	}
	must(os.RemoveAll(dir))
	fmt.Printf("\ntotal %.0f s\n", time.Since(start).Seconds())
}

var scratch atomic.Pointer[string]

// cleanUp removes the scratch folder when the program is interrupted; the
// servers and bridges end with this process.
func cleanUp() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	<-c
	os.RemoveAll(*scratch.Load())
	os.Exit(1)
}

// fresh returns a new folder in the scratch folder.
func fresh() string {
	d, err := os.MkdirTemp(*scratch.Load(), "case-")
	must(err)
	return d
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
