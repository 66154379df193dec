package examples

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/remote/redisinbox"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// count is a job whose work is one step: the toy.
var count = settle.Define[any, json.RawMessage](step, settle.Policy{BackoffMin: 10 * time.Millisecond, BackoffMax: 10 * time.Millisecond, Wait: time.Minute})

// setup says what a rig has.
type setup struct {
	callback bool              // offers answers by callback
	inbox    *redistest.Server // offers answers by Redis; nil = not
	knows    bool              // the nodes know that Redis
	nodes    []string          // their names; nil = one
	slots    int               // of each; 0 = 4, so that the next job finds one free
	silence  time.Duration     // of the step
}

// rig is a process that has jobs of count: the embedded store, a worker, a hub
// that listens, and a pool of nodes of one make.
type rig struct {
	*testing.T
	*settle.Client
	hub      *remote.Hub
	nodes    map[string]node // by name
	slots    int             // of each
	sent     atomic.Int32    // submissions
	recalled chan recalled   // attempts that were called off
	posts    atomic.Int32    // answers that came by callback
	broken   atomic.Int32    // the status that a proxy before the hub replies; 0 = there is none
}

// recalled is what a node replied to a DELETE.
type recalled struct {
	attempt string
	status  int
}

// open makes a rig that lives as long as the test.
func open(t *testing.T, start starter, s setup) *rig {
	t.Helper()
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "settle.db"), sqlite.Config{Synchronous: sqlite.Normal, KeepFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	r := &rig{T: t, Client: settle.NewClient(st), nodes: map[string]node{}, slots: cmp.Or(s.slots, 4), recalled: make(chan recalled, 100)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	c := remote.Config{Client: &http.Client{Transport: r}}
	if s.callback {
		c.Callback, c.Secrets = server.URL+"/answers", [][]byte{bytes.Repeat([]byte{7}, 32)}
	}
	if s.inbox != nil {
		c.Inbox = r.inbox(s.inbox)
	}
	if r.hub, err = remote.New(st, c); err != nil {
		t.Fatal(err)
	}
	pool, err := r.hub.Pool("counters", r.pool(start, s))
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(st, worker.Config{Sweep: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	remote.Handle(w, count, pool, remote.Step{Silence: s.silence})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("the worker: %v", err)
		}
	})
	return r
}

// inbox has a name of its own: nodes use the names that come.
func (r *rig) inbox(s *redistest.Server) remote.Inbox {
	r.Helper()
	in, err := redisinbox.New(redisinbox.Config{Client: rueidis.ClientOption{InitAddress: []string{s.Addr()}}, Prefix: "ours", Block: 100 * time.Millisecond})
	if err != nil {
		r.Fatal(err)
	}
	if err := in.Check(r.Context()); err != nil {
		r.Fatal(err)
	}
	return in.Way()
}

// pool starts the nodes. Those that are no servers are started for each submission.
func (r *rig) pool(start starter, s setup) (c remote.PoolConfig) {
	r.Helper()
	redis := ""
	if s.inbox != nil && s.knows {
		redis = s.inbox.Addr()
	}
	if s.nodes == nil {
		s.nodes = []string{"a"}
	}
	for _, name := range s.nodes {
		n := start(r.T, redis, "--slots", strconv.Itoa(r.slots))
		r.nodes[name] = n
		if server, ok := n.(*server); ok {
			c.Nodes = append(c.Nodes, remote.Node{Name: name, URL: server.url + "/run"})
			continue
		}
		c.Nodes = append(c.Nodes, remote.Node{Name: name})
		c.Submit, c.Recall = r.begin, r.end
	}
	return c
}

// begin submits to a script.
func (r *rig) begin(_ context.Context, s remote.Submission) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	r.submitted(body)
	n := r.nodes[s.To.Name].(*script)
	if n.working() >= r.slots {
		return remote.Busy(5 * time.Second)
	}
	n.run(r.T, s.Attempt.String(), body)
	return nil
}

// end calls one off.
func (r *rig) end(_ context.Context, n remote.Node, c settle.Recall) error {
	p := r.nodes[n.Name].(*script).process(c.Attempt.String())
	r.recalled <- recalled{c.Attempt.String(), http.StatusNoContent}
	return p.end()
}

// RoundTrip sends to a node, and sees that it is what the contract says.
func (r *rig) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case http.MethodPost:
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		attempt := r.submitted(body)
		if h := req.Header; h.Get("Content-Type") != "application/json" || h.Get("Idempotency-Key") != attempt || req.ContentLength != int64(len(body)) {
			r.Errorf("submitted with %v, Content-Length %d of %d", h, req.ContentLength, len(body))
		}
		return http.DefaultTransport.RoundTrip(req)
	case http.MethodDelete:
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			r.recalled <- recalled{filepath.Base(req.URL.Path), resp.StatusCode}
		}
		return resp, err
	default:
		r.Errorf("%s %s", req.Method, req.URL)
		return nil, http.ErrNotSupported
	}
}

// submitted sees that a submission is valid, and returns its attempt.
func (r *rig) submitted(body []byte) (attempt string) {
	if err := submissionSchema(r.T).Validate(decoded(r.T, body)); err != nil {
		r.Errorf("%s: %v", body, err)
	}
	var s struct{ Attempt settle.ID }
	if err := json.Unmarshal(body, &s); err != nil {
		r.Error(err)
	}
	r.sent.Add(1)
	return s.Attempt.String()
}

// ServeHTTP is where nodes post.
func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.posts.Add(1)
	if status := r.broken.Load(); status != 0 {
		http.Error(w, "<html>no such service", int(status))
		return
	}
	r.hub.ServeHTTP(w, req)
}

// kill kills the node that a job waits for.
func (r *rig) kill(j settle.Job) {
	r.Helper()
	switch n := r.nodes[j.Wait.Node].(type) {
	case *server:
		n.kill()
	case *script:
		n.process(j.Wait.Ticket.String()).kill()
	}
}

func (r *rig) enqueue(in input) settle.ID {
	r.Helper()
	id, err := count.Enqueue(r.Context(), r.Client, in)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// await waits for a job's end.
func (r *rig) await(id settle.ID) settle.Job {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	j, err := r.Client.Await(ctx, id)
	if err != nil {
		r.Fatalf("%v: %+v", err, r.job(id))
	}
	return j
}

func (r *rig) job(id settle.ID) settle.Job {
	r.Helper()
	j, err := r.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return j
}

// parked waits until a job waits for its node.
func (r *rig) parked(id settle.ID) (j settle.Job) {
	r.Helper()
	until(r.T, "the job waits for its node", func() bool { j = r.job(id); return j.State == settle.Awaiting })
	return j
}

// ended wants a job to have ended so, after attempts that failed so.
func (r *rig) ended(id settle.ID, state settle.State, why settle.EndReason, attempts ...settle.AttemptReason) settle.Job {
	r.Helper()
	j := r.await(id)
	var got []settle.AttemptReason
	for _, a := range j.Attempts {
		got = append(got, a.Reason)
	}
	if j.State != state || j.Reason != why || !slices.Equal(got, attempts) {
		r.Fatalf("the job is %s (%s) after %v, want %s (%s) after %v: %+v", j.State, j.Reason, got, state, why, attempts, j.Attempts)
	}
	return j
}

// counted wants a job to have succeeded with the right output.
func (r *rig) counted(id settle.ID, attempts ...settle.AttemptReason) settle.Job {
	r.Helper()
	j := r.ended(id, settle.Succeeded, settle.EndOK, attempts...)
	isCounted(r.T, j.Output, text)
	return j
}
