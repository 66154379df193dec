package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/demo"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/remote/redisinbox"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// places are where the answers lie, for both consumers.
type places struct {
	box    demo.Mailbox // the naive consumer's
	key    string       // in it
	stream demo.Stream  // for the nodes; nil = they call back
	inbox  remote.Inbox // settle's; nil = callbacks
	ways   string       // in words
	clean  func() error
}

// places makes them, in memory or in Redis.
func (h *hang) places(ctx context.Context) (*places, error) {
	if h.url == "" {
		return &places{box: &demo.Memory{}, key: "answer", clean: func() error { return nil },
			ways: "Answers come to settle by HTTP callbacks, to the other by a mailbox in memory."}, nil
	}
	option, err := redisOption(h.url)
	if err != nil {
		return nil, err
	}
	p, err := within(ctx, 10*time.Second, func() (*places, error) { return openRedis(ctx, option) })
	switch {
	case err == nil:
		return p, nil
	case ctx.Err() != nil: // a wish to stop
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("--redis: the server does not answer")
	default:
		return nil, fmt.Errorf("--redis: %s", redact.Error(err))
	}
}

func redisOption(s string) (rueidis.ClientOption, error) {
	u, err := url.Parse(s)
	option, err2 := rueidis.ParseURL(s)
	if err != nil || err2 != nil || u.Host == "" && u.Path == "" { // their texts would show the password
		return option, usagef("--redis: want an address such as redis://127.0.0.1:6379 or rediss://user:password@host:6379/0")
	}
	return option, nil
}

// within bounds f. What f makes after that is never used.
func within[T any](ctx context.Context, d time.Duration, f func() (T, error)) (v T, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	done := make(chan struct{})
	var got T
	var failed error
	go func() {
		got, failed = f()
		close(done)
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

func openRedis(ctx context.Context, option rueidis.ClientOption) (*places, error) {
	prefix := "settle-demo-" + word()
	in, err := redisinbox.New(redisinbox.Config{Client: option, Prefix: prefix, Block: time.Second})
	if err != nil {
		return nil, err
	}
	if err := in.Check(ctx); err != nil {
		return nil, err
	}
	r, err := demo.OpenRedis(option, prefix)
	if err != nil {
		return nil, err
	}
	var streams []string
	for s := range redisinbox.Shards {
		streams = append(streams, fmt.Sprintf("%s:{%d}:inbox", prefix, s), fmt.Sprintf("%s:{%d}:progress", prefix, s))
	}
	key := r.Name("answer")
	p := &places{box: r, key: key, stream: r, inbox: in.Way(),
		ways:  "Answers come to settle by Redis streams, to the other by SET, PUBLISH and GETDEL (names: " + prefix + ":…).",
		clean: func() error { return r.Clean(append(streams, key)) }}
	if err := r.Streams(ctx, "settle", streams); err != nil {
		return nil, errors.Join(err, p.clean())
	}
	return p, nil
}

var renderFilm = settle.Define[demo.Task, demo.Film]("film.render", settle.Policy{})

// settle does the work as a program with settle does it, and returns the job when
// it has ended.
func (h *hang) settle(ctx context.Context, st *sqlite.Store, p *places, nodes map[string]string) (j settle.Job, took time.Duration, err error) {
	config := remote.Config{Inbox: p.inbox}
	var answers net.Listener
	if p.inbox == nil {
		if answers, err = loopback(); err != nil {
			return j, 0, err
		}
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		config = remote.Config{Callback: "http://" + answers.Addr().String() + "/answers", Secrets: [][]byte{secret}}
	}
	hub, err := remote.New(st, config)
	if err != nil {
		return j, 0, err
	}
	if answers != nil {
		defer serve(hub, answers)()
	}
	pool, err := hub.Pool("gpu", remote.PoolConfig{Judge: h.judge, Nodes: []remote.Node{ // nodes take turns: the second begins
		{Name: largeNode, URL: nodes[largeNode]}, {Name: smallNode, URL: nodes[smallNode]}}})
	if err != nil {
		return j, 0, err
	}
	w := worker.New(st, worker.Config{Drain: time.Second, Logger: slog.New(slog.DiscardHandler), Events: worker.Events{Settled: h.settled}})
	remote.Handle(w, renderFilm, pool, remote.Step{Name: "render"})
	return h.follow(ctx, st, w)
}

// serve takes the answers of nodes until the returned function is called.
func serve(hub *remote.Hub, l net.Listener) (shut func()) {
	srv := &http.Server{Handler: hub, ReadHeaderTimeout: 10 * time.Second}
	over := make(chan struct{})
	go func() {
		_ = srv.Serve(l) // ends with Close
		close(over)
	}()
	return func() { _ = srv.Close(); <-over }
}

// follow runs the worker until its one job has ended.
func (h *hang) follow(ctx context.Context, st *sqlite.Store, w *worker.Worker) (j settle.Job, took time.Duration, err error) {
	client := settle.NewClient(st)
	began := time.Now()
	id, err := renderFilm.Enqueue(ctx, client, film)
	if err != nil {
		return j, 0, err
	}
	h.tell.line("settle", "stores the job")
	ctx, stop := context.WithTimeout(ctx, h.limit)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	_, late := client.Await(ctx, id)
	took = time.Since(began)
	reading := context.WithoutCancel(ctx)
	j, err = client.Get(reading, id)
	why := ""
	if err == nil && late != nil {
		at, _ := lookAround(reading, st, j) // the reason is worth less without it
		why = explain(j, at)
	}
	stop()
	err = errors.Join(err, <-done)
	switch {
	case err != nil || late == nil:
	case context.Cause(ctx) == context.DeadlineExceeded && !j.State.Ended():
		err = fmt.Errorf("promised: %s\nnot kept: the job has not ended within %s: %s", promise, span(h.limit), why)
	case !j.State.Ended():
		err = late
	}
	return j, took, err
}

// settled tells what settle did.
func (h *hang) settled(s worker.Settled) {
	t := s.Transition
	if s.Applied != settle.Done {
		return
	}
	switch {
	case t.To == settle.Awaiting && t.Wait != nil && s.By != worker.ByAnswer:
		h.tell.line("settle", fmt.Sprintf("hands the film to node %s; the job is parked", cell(t.Wait.Node)))
	case t.Record != nil && t.To == settle.Pending:
		h.tell.line("settle", fmt.Sprintf("records %s; tries again in %s, elsewhere",
			clipped(settle.EndText(settle.EndReason(t.Record.Reason), "", t.Record.Node, t.Record.Error), 300), span(t.After)))
	case t.Step != nil:
		h.tell.line("settle", fmt.Sprintf("records the output of node %s", cell(t.Step.Node)))
	case t.To.Ended():
		h.tell.line("settle", "ends the job: "+string(t.To))
	}
}
