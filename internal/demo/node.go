// Package demo is the world around "settle demo": simulated nodes, mailboxes in
// memory and in Redis, and a consumer that waits as the one of the incident did.
// All of it lives in one process, speaks on loopback, and knows nothing of settle:
// the nodes keep to docs/contract.md as a program on another machine would.
package demo

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Task is what a node is asked to do.
type Task struct {
	Film   string `json:"film"`
	Frames int    `json:"frames"`
	Needs  int    `json:"needs_gib"` // memory, in GiB
}

// Film is what comes of it.
type Film struct {
	Frames int `json:"frames"`
}

// Node renders films, if they fit into its memory.
type Node struct {
	Name   string
	Memory int           // GiB
	Takes  time.Duration // for a film, and to find out that there is no room for it
	Box    Mailbox       // of the consumers that want their answer under a key
	Stream Stream        // of those that want it in a stream; nil = there are none
	Say    func(text string)
}

// submission is what the node reads of one: the contract's, or the naive one's.
type submission struct {
	Job     string `json:"job"`
	Step    string `json:"step"`
	Attempt string `json:"attempt"`
	Node    string `json:"node"`
	Answer  struct {
		URL   string `json:"url"`
		Key   string `json:"key"`
		Redis *struct {
			Stream string `json:"stream"`
			Ticket string `json:"ticket"`
		} `json:"redis"`
		Mailbox string `json:"mailbox"`
	} `json:"answer"`
	Input Task `json:"input"`
}

// way is how it is answered.
func (s submission) way() string {
	switch {
	case s.Answer.Mailbox != "":
		return "answers by mailbox"
	case s.Answer.Redis != nil:
		return "answers by stream"
	}
	return "answers by callback"
}

// Run takes submissions at a listener, which it closes, and works until ctx ends.
// Nothing of it is left when it returns.
func (n *Node) Run(ctx context.Context, l net.Listener) {
	var work sync.WaitGroup
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var s submission
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&s) != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			work.Go(func() { n.work(ctx, s) })
			w.WriteHeader(http.StatusAccepted)
		}
	})}
	serving := make(chan struct{})
	go func() {
		_ = srv.Serve(l) // ends with Shutdown
		close(serving)
	}()
	<-ctx.Done()
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if srv.Shutdown(short) != nil { // it lets handlers end, so that no work begins behind our back
		_ = srv.Close()
	}
	<-serving
	work.Wait()
}

// work does what was asked, and answers, however it went.
func (n *Node) work(ctx context.Context, s submission) {
	if !pause(ctx, n.Takes) {
		return
	}
	doc := map[string]any{"v": 1, "job": s.Job, "step": s.Step, "attempt": s.Attempt, "node": n.Name}
	if s.Input.Needs > n.Memory {
		words := fmt.Sprintf("CUDA out of memory: %d GiB needed, %d GiB there", s.Input.Needs, n.Memory)
		doc["status"], doc["error"] = "error", map[string]any{"reason": "gpu_oom", "message": words}
		n.Say(s.way() + `: status "error", gpu_oom: ` + words)
	} else {
		doc["status"], doc["output"] = "done", Film{s.Input.Frames}
		n.Say(fmt.Sprintf(`%s: status "done", %d frames`, s.way(), s.Input.Frames))
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err) // texts and numbers only
	}
	// An answer is the node's to keep until it is recorded.
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		if err := n.answer(ctx, s, b); err == nil || !pause(ctx, wait) {
			return
		}
	}
}

// answer makes one try by the way that was asked for.
func (n *Node) answer(ctx context.Context, s submission, doc []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	switch a := s.Answer; {
	case a.Mailbox != "":
		return n.Box.Put(ctx, a.Mailbox, doc)
	case a.Redis != nil && n.Stream != nil:
		return n.Stream.Add(ctx, a.Redis.Stream, a.Redis.Ticket, doc)
	default:
		return post(ctx, a.URL, a.Key, doc)
	}
}

// post makes a callback. nil = it need not be made again.
func post(ctx context.Context, url, key string, doc []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(doc))
	if err != nil {
		return nil
	}
	m := hmac.New(sha256.New, []byte(key))
	m.Write(doc)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Settle-Signature", "v1="+hex.EncodeToString(m.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity:
		return nil
	}
	return fmt.Errorf("HTTP %s", resp.Status)
}

// pause waits for d; false = ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
