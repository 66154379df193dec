package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// bridges is how many of them run.
const bridges = 3

// config is all that a bridge process is told.
type config struct {
	Form     string // stream or keys
	Number   int
	Name     string // consumer name, unique per start
	Redis    []string
	Sentinel bool
	Store    string
	PerShard bool          // stream: a blocking read per shard, needed on Cluster
	PollAll  bool          // keys: poll all waits, not a third of them
	MinIdle  time.Duration // stream: when to take over
	Every    time.Duration // stream: how often to look
	Lag      time.Duration // before each commit
}

// stats is what a bridge says when it is told to end.
type stats struct {
	Claimed, Swept, Reconnects int
	Sweeps                     int
	SweepMS                    float64
	Errors                     map[string]int
}

type bridge struct {
	config
	redis rueidis.Client
	store *rpc.Client
	mu    sync.Mutex
	stats stats
}

func bridgeMain(text string) {
	b := &bridge{stats: stats{Errors: map[string]int{}}}
	must(json.Unmarshal([]byte(text), &b.config))
	var err error
	b.store, err = rpc.Dial("unix", b.Store)
	must(err)
	for b.redis, err = connect(b.Redis, b.Sentinel); err != nil; b.redis, err = connect(b.Redis, b.Sentinel) {
		b.failed(err)
		time.Sleep(100 * time.Millisecond)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	if b.Form == "stream" {
		b.runStream(ctx)
	} else {
		b.runKeys(ctx)
	}
	must(json.NewEncoder(os.Stdout).Encode(b.stats))
}

// connect speaks to a single server, through Sentinel, or to a Cluster.
func connect(addrs []string, sentinel bool) (rueidis.Client, error) {
	o := rueidis.ClientOption{
		InitAddress: addrs, DisableCache: true, DisableRetry: true,
		Dialer: net.Dialer{Timeout: 2 * time.Second}, ConnWriteTimeout: 3 * time.Second,
	}
	if sentinel {
		o.Sentinel.MasterSet = "inbox"
	}
	return rueidis.NewClient(o)
}

func (b *bridge) ready() { fmt.Println("ready") }

// failed counts an error by its text and waits a little, so that no loop spins.
func (b *bridge) failed(err error) {
	b.mu.Lock()
	text := err.Error()
	b.stats.Errors[text[:min(len(text), 60)]]++
	b.mu.Unlock()
	time.Sleep(time.Duration(50+rand.IntN(100)) * time.Millisecond)
}

func (b *bridge) add(n *int, d int) {
	b.mu.Lock()
	*n += d
	b.mu.Unlock()
}

// apply is the commit. Bridges stay alive when the store does.
func (b *bridge) apply(judged []ticket) error {
	time.Sleep(b.Lag)
	var out []verdict
	return b.store.Call("Store.Apply", judged, &out)
}
