package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/demo"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/sqlite"
)

// hang is one showing of "settle demo hang".
type hang struct {
	a     *app
	url   string        // --redis
	show  time.Duration // how long the naive consumer is watched, at least
	limit time.Duration // how long settle may take; beyond that its promise is broken
	judge mailbox.Judge // of settle; nil = the contract's. A test gives it a wrong one
	tell  *telling
}

func newHang(a *app) *hang { return &hang{a: a, show: 9 * time.Second, limit: 25 * time.Second} }

// The film, and the nodes: the first has too little memory for it.
var film = demo.Task{Film: "harbour at dawn", Frames: 240, Needs: 11}

const (
	smallNode, smallMemory = "gpu-1", 8
	largeNode, largeMemory = "gpu-2", 24
	nodeTakes              = 1500 * time.Millisecond
)

// promise is what this demo is about.
const promise = "a failure that a node reports ends the wait, its words are kept, and every job ends"

// run shows it from the first line to the last.
func (h *hang) run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer catchPipe()()
	signals := make(chan os.Signal, 2)
	defer catch(signals)()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case s := <-signals:
			stop(fmt.Errorf("stopped by a signal: %s", s))
		case <-over:
		}
	}()
	h.tell = &telling{w: h.a.out, colour: colourful(terminal(h.a.out), h.a.env), began: time.Now(),
		broken: func() { stop(errors.New("standard output was closed by its reader")) }}

	places, err := h.places(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, places.clean()) }()
	dir, err := os.MkdirTemp("", "settle-demo-")
	if err != nil {
		return fmt.Errorf("a folder for the demo's database: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	st, err := sqlite.Open(filepath.Join(dir, defaultDB))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	err = h.perform(ctx, st, places)
	if ctx.Err() != nil {
		return fmt.Errorf("%w; what the demo made is removed", context.Cause(ctx))
	}
	return err
}

// perform runs the nodes and both consumers, and says what came of it.
func (h *hang) perform(ctx context.Context, st *sqlite.Store, p *places) error {
	task, err := json.Marshal(film)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	nodes := map[string]string{} // addresses
	for name, memory := range map[string]int{smallNode: smallMemory, largeNode: largeMemory} {
		l, err := loopback()
		if err != nil {
			return err
		}
		n := &demo.Node{Name: name, Memory: memory, Takes: nodeTakes, Box: p.box, Stream: p.stream,
			Say: func(text string) { h.tell.line(name, text) }}
		all.Go(func() { n.Run(ctx, l) })
		nodes[name] = "http://" + l.Addr().String()
	}
	h.introduce(p)
	naive := &demo.Naive{Box: p.box, Key: p.key, Tick: 2 * time.Second, Say: func(text string) { h.tell.line("naive", text) }}
	all.Go(func() {
		if _, err := naive.Run(ctx, nodes[smallNode], smallNode, task); err != nil && ctx.Err() == nil {
			h.tell.line("naive", "ends: "+redact.Error(err))
		}
	})
	job, took, err := h.settle(ctx, st, p, nodes)
	if err != nil {
		return err
	}
	rest(ctx, h.show-time.Since(h.tell.began))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	held, err := p.box.Holds(ctx, p.key)
	if err != nil {
		return fmt.Errorf("look for the naive consumer's answer: %w", err)
	}
	var faults []string
	if !naive.Hangs() || held {
		faults = append(faults, "the naive consumer does not hang: there is nothing to compare with")
	}
	stop()
	all.Wait()
	return h.conclude(st, job, took, faults)
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (h *hang) introduce(p *places) {
	fmt.Fprintf(h.tell, "Node %s runs out of memory while it renders a film, and says so in its answer.\n"+
		"A naive consumer and settle wait for that answer, side by side.\n%s\n\n", smallNode, p.ways)
}

func loopback() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return l, nil
}

// conclude shows how both ended, and compares that with what was promised.
func (h *hang) conclude(st *sqlite.Store, j settle.Job, took time.Duration, faults []string) error {
	ctx := context.Background()
	books, err := st.Audit(ctx, 10)
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		fmt.Fprintln(h.tell, "\nnaive   still waiting, the notice was read and is gone")
	}
	faults = append(faults, broken(j, books)...)
	fmt.Fprintf(h.tell, "settle  %s after %s: %s\n\n", stateLine(j), span(took), onNodes(j))
	if err := showSubmissions(h.tell, j); err != nil {
		return err
	}
	fmt.Fprintln(h.tell)
	if err := showBooks(h.tell, books); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("promised: %s\nnot kept: %s", promise, strings.Join(faults, "\nnot kept: "))
	}
	fmt.Fprintf(h.tell, "\npromised and kept: %s\n", promise)
	return h.tell.err
}

// tried lists the submissions of a job, in their order, as if the one that
// succeeded had left a record, too.
func tried(j settle.Job) (list []settle.Attempt) {
	for _, a := range j.Attempts {
		if a.Step != "" {
			list = append(list, a)
		}
	}
	for _, s := range j.Steps {
		list = append(list, settle.Attempt{Reason: settle.AttemptOK, Step: s.Step, Node: s.Node})
	}
	return list
}

// onNodes is "2 attempts on 2 nodes".
func onNodes(j settle.Job) string {
	names := map[string]bool{}
	for _, a := range tried(j) {
		names[a.Node] = true
	}
	return plural(len(tried(j)), "attempt") + " on " + plural(len(names), "node")
}

func showSubmissions(w *telling, j settle.Job) error {
	t := newTable(w, "ATTEMPT", "STEP", "NODE", "REASON", "ERROR")
	for i, a := range tried(j) {
		t.row(fmt.Sprint(i+1), cell(a.Step), cell(a.Node), string(a.Reason), clipped(a.Error, 300))
	}
	return t.flush()
}

// broken compares what became of the job with what was promised.
func broken(j settle.Job, books settle.Books) (faults []string) {
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	list := tried(j)
	fault(j.State != settle.Succeeded, "the job is %s", stateLine(j))
	fault(len(list) != 2, "it took %s, not 2 on 2 nodes", onNodes(j))
	if len(list) > 0 {
		first := list[0]
		fault(first.Reason != settle.AttemptStepError || first.Node != smallNode || !strings.Contains(first.Error, "CUDA out of memory"),
			"the first attempt is recorded as %s, not with the words of node %s", settle.EndText(settle.EndReason(first.Reason), "", first.Node, first.Error), smallNode)
		last := list[len(list)-1]
		fault(last.Reason != settle.AttemptOK || last.Node != largeNode, "the last attempt is recorded as %s on node %s", last.Reason, cell(last.Node))
	}
	fault(!books.Balanced() || books.Accepted != 1 || books.Succeeded != 1 || len(books.Overdue) > 0, "the books do not show one job that succeeded")
	return faults
}

// word is a random word.
func word() string { return strings.ToLower(rand.Text()[:10]) }
