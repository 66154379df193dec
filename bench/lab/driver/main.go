// Command driver is the experiment behind docs/decisions/001-embedded-driver.md:
// which SQLite driver carries the embedded store, and what the store must do
// around it. It runs the full data model on three drivers and prints ratios.
//
//	go build -o driver . && ./driver            # all parts, about five minutes
//	./driver -part rates,turn                   # some of them
//
// Every rate is also printed as a multiple of a floor that was measured just
// before it (append 4 KiB + fdatasync), because a shared machine drifts; runs
// are interleaved and medians are shown. Everything is local: no network. cgo
// and a C compiler are needed, for the driver that settle does not use.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// parts in the order in which they run.
var parts = []struct {
	name string
	run  func(dir string)
}{
	{"rates", rates},         // group commit, cycle, raw transactions on each driver
	{"turn", turn},           // writer goroutine against a leader among the callers
	{"bind", bind},           // boxed arguments, kept statements, savepoints, large blobs
	{"processes", processes}, // a second process beside a saturated writer
	{"version", version},     // PRAGMA data_version: meaning, cost, latency
	{"tx", userTx},           // the caller's *sql.Tx on the same file
	{"locks", locks},         // a second SQLite library in the process
	{"wal", walGrowth},       // checkpoints, pinned readers
	{"kill", kill},           // kill -9, copies with a damaged tail
}

var (
	part   = flag.String("part", "all", "comma-separated parts to run")
	rounds = flag.Int("rounds", 3, "interleaved rounds per measurement")
	secs   = flag.Float64("secs", 0.5, "seconds per measurement")
	child  = flag.String("child", "", "internal: run as a child process of this kind")
	file   = flag.String("file", "", "internal: database file of a child")
	mode   = flag.String("mode", "", "internal: variation of a child")
)

func main() {
	flag.Parse()
	if *child != "" {
		runChild(*child, *file, *mode)
		return
	}
	go cleanUp()
	start := time.Now()
	for _, p := range parts {
		if *part != "all" && !strings.Contains(","+*part+",", ","+p.name+",") {
			continue
		}
		dir, err := os.MkdirTemp("", "settle-driver-")
		must(err)
		scratchDir.Store(&dir)
		at := time.Now()
		fmt.Printf("\n== %s\n", p.name)
		p.run(dir)
		fmt.Printf("   (%s took %.0f s)\n", p.name, time.Since(at).Seconds())
		must(os.RemoveAll(dir))
	}
	fmt.Printf("\ntotal %.0f s\n", time.Since(start).Seconds())
}

var scratchDir atomic.Pointer[string]

// cleanUp removes the scratch folder when the program is interrupted.
func cleanUp() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	<-c
	if dir := scratchDir.Load(); dir != nil {
		os.RemoveAll(*dir)
	}
	os.Exit(1)
}

func duration() time.Duration { return time.Duration(*secs * float64(time.Second)) }

// fresh returns the path of a database that does not exist yet.
func fresh(dir string) string {
	d, err := os.MkdirTemp(dir, "db-")
	must(err)
	return filepath.Join(d, "settle.db")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
