// Command node-go is a node of contract v1 (docs/contract.md): it takes
// submissions by HTTP (main.go), works (work.go), and answers by callback, or by
// Redis if it was given one (answer.go). Copy it, and replace work.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// submission is what a node is asked to do. Fields that are not here are ignored.
type submission struct {
	V                  int
	Job, Step, Attempt string
	DeadlineMS         int64 `json:"deadline_ms"`
	SilenceMS          int64 `json:"silence_ms"`
	Answer             struct {
		URL, Key string
		Redis    struct{ Stream, Progress, Ticket string }
	}
	Input json.RawMessage
}

// node takes submissions. A slot is held until the answer is recorded: when its
// consumer is away, a node gets busy, and does not fill its memory.
type node struct {
	name  string
	slots int
	redis rueidis.Client // nil: answers by callback alone

	mu      sync.Mutex
	running map[string]context.CancelFunc // by attempt
}

func main() {
	n := &node{running: map[string]context.CancelFunc{}}
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	redis := flag.String("redis", "", "redis://host:port, to answer by Redis where a submission offers it")
	flag.StringVar(&n.name, "name", "node-go", "the node's name for itself")
	flag.IntVar(&n.slots, "slots", 2, "submissions at once: with so many it is busy")
	flag.Parse()
	if *redis != "" {
		options, err := rueidis.ParseURL(*redis)
		options.DisableRetry, options.DisableCache = true, true // the node itself repeats
		if err == nil {
			n.redis, err = rueidis.NewClient(options)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /", n.submit)
	routes.HandleFunc("DELETE /", n.cancel)
	fmt.Printf("listening on http://%s\n", l.Addr())
	log.Fatal((&http.Server{Handler: routes, ReadTimeout: 30 * time.Second}).Serve(l))
}

// submit accepts with 202, is busy with 429, and refuses for good with 422.
func (n *node) submit(w http.ResponseWriter, r *http.Request) {
	var s submission
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(&s)
	byRedis := n.redis != nil && s.Answer.Redis.Stream != ""
	if err != nil || s.V != 1 || s.Job == "" || s.Step == "" || s.Attempt == "" || s.DeadlineMS <= 0 {
		refuse(w, "malformed", "this is no submission of contract v1")
		return
	}
	if !byRedis && (!strings.HasPrefix(s.Answer.URL, "http") || s.Answer.Key == "") {
		refuse(w, "no_way_to_answer", "this node cannot answer in any way that is offered")
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.running[s.Attempt]; !known { // sent twice: once is enough
		if len(n.running) >= n.slots {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		// After the deadline nobody waits.
		ctx, stop := context.WithTimeout(context.Background(), time.Duration(s.DeadlineMS)*time.Millisecond)
		n.running[s.Attempt] = stop
		a := &attempt{submission: s, node: n, byRedis: byRedis, ctx: ctx, stop: stop, told: time.Now()}
		go func() {
			defer n.leave(s.Attempt)
			a.run()
		}()
	}
	w.WriteHeader(http.StatusAccepted)
}

func refuse(w http.ResponseWriter, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": failure{Reason: reason, Message: message}})
}

// cancel stops an attempt for which nobody waits any more.
func (n *node) cancel(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	stop, known := n.running[path.Base(r.URL.Path)]
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	stop()
	w.WriteHeader(http.StatusNoContent)
}

func (n *node) leave(attempt string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running[attempt]()
	delete(n.running, attempt)
}
