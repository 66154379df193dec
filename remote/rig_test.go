package remote_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

type (
	in  struct{ Text string }
	out = json.RawMessage
)

// policy has the default budgets and short times.
var policy = settle.Policy{BackoffMin: time.Second, BackoffMax: time.Second, Wait: 10 * time.Minute, Timeout: time.Minute}

// render is a job of one step, for most tests.
var render = settle.Define[in, out]("render", policy)

// secret is at least 32 bytes.
func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// setup is how a rig differs from the usual one: nodes a and b that accept
// everything and say nothing, callbacks, and a worker that runs render.
type setup struct {
	nodes  []string
	pool   remote.PoolConfig
	step   remote.Step
	hub    remote.Config
	worker worker.Config
	store  func(settle.Store) settle.Store // what hub and worker see of the store
	serve  func(r *rig, w *worker.Worker)  // in place of the handler of render
}

// rig is a process with a hub, a pool and a worker, in a bubble of time, with the
// embedded store. Its nodes are reached without sockets.
type rig struct {
	*testing.T
	*settle.Client
	set  setup
	st   *sqlite.Store
	path string // of its file
	net  *network
	logs *logs
	proc
	stops   []func() error // of all processes so far
	release chan struct{}  // for handlers that wait
}

// proc is what ends with the process.
type proc struct {
	sees settle.Store
	hub  *remote.Hub
	pool *remote.Pool
	work *worker.Worker
	stop func() error // ends the worker in good order; more than once is fine
}

// bubble runs a test in a bubble of time.
func bubble(t *testing.T, s setup, test func(r *rig)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settle.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(file, sqlite.Config{Synchronous: sqlite.Normal, KeepFree: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if s.nodes == nil {
			s.nodes = []string{"a", "b"}
		}
		r := &rig{T: t, set: s, Client: settle.NewClient(st), st: st, path: file, net: &network{nodes: map[string]*node{}}, logs: &logs{}}
		r.start()
		defer r.stopAll()
		test(r)
	})
}

// start starts the process, as after a restart.
func (r *rig) start() {
	r.Helper()
	r.build()
	r.stop = r.run(r.work)
}

// run runs a worker until the function that it returns is called.
func (r *rig) run(work *worker.Worker) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() { err = work.Run(ctx); close(done) }()
	stop = func() error { cancel(); <-done; return err }
	r.stops = append(r.stops, stop)
	synctest.Wait()
	return stop
}

// another runs a second worker of the same hub.
func (r *rig) another() (stop func() error) {
	w := worker.New(r.sees, r.workerConfig())
	remote.Handle(w, render, r.pool, r.set.step)
	return r.run(w)
}

func (r *rig) workerConfig() worker.Config {
	c := r.set.worker
	c.Logger, c.Poll = slog.New(slog.NewTextHandler(r.logs, nil)), cmp.Or(c.Poll, time.Minute)
	return c
}

// quickSweep is a worker that notices within a second what has passed.
var quickSweep = worker.Config{Sweep: time.Second}

func (r *rig) stopAll() {
	for _, stop := range r.stops {
		_ = stop()
	}
}

// build makes hub, pool and worker.
func (r *rig) build() {
	r.Helper()
	r.sees = r.st
	if r.set.store != nil {
		r.sees = r.set.store(r.st)
	}
	log := slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	hc := r.set.hub
	hc.Logger = log
	hc.Client = &http.Client{Transport: r.net}
	if hc.Callback == "" && hc.Inbox == nil {
		hc.Callback = "https://jobs.example/answers"
	}
	if hc.Secrets == nil && hc.Callback != "" {
		hc.Secrets = [][]byte{secret(7)}
	}
	var err error
	if r.hub, err = remote.New(r.sees, hc); err != nil {
		r.Fatal(err)
	}
	r.pool = r.newPool("gpu", r.set.pool, r.set.nodes...)
	r.work = worker.New(r.sees, r.workerConfig())
	if r.set.serve != nil {
		r.set.serve(r, r.work)
	} else {
		remote.Handle(r.work, render, r.pool, r.set.step)
	}
}

func (r *rig) newPool(name string, c remote.PoolConfig, nodes ...string) *remote.Pool {
	r.Helper()
	for _, n := range nodes {
		r.net.add(n)
		c.Nodes = append(c.Nodes, remote.Node{Name: n, URL: "http://" + n + ".example/run", Header: http.Header{"Authorization": {"Bearer key-of-" + n}}})
	}
	p, err := r.hub.Pool(name, c)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// nap lets time pass, and waits until everything that it brought is done.
func (r *rig) nap(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// backoff is longer than any pause between two attempts of render.
const backoff = time.Second + time.Millisecond

// enqueue stores a job of render and waits until it goes no further.
func (r *rig) enqueue(opts ...settle.EnqueueOpts) settle.ID {
	r.Helper()
	id, err := render.Enqueue(r.Context(), r.Client, in{"x"}, opts...)
	if err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	return id
}

func (r *rig) job(id settle.ID) settle.Job {
	r.Helper()
	synctest.Wait()
	j, err := r.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return j
}

// parked is the submission that the job waits for.
func (r *rig) parked(id settle.ID) sub {
	r.Helper()
	j := r.job(id)
	if j.State != settle.Awaiting {
		r.Fatalf("the job is %s (%s), want it parked: %+v", j.State, j.Reason, j.Attempts)
	}
	s, ok := r.net.find(j.Wait.Ticket)
	if !ok {
		r.Fatalf("node %s has no submission %s", j.Wait.Node, j.Wait.Ticket)
	}
	return s
}

// sub is the nth submission of the job.
func (r *rig) sub(id settle.ID, n int) sub {
	r.Helper()
	all := r.net.all(id)
	if n >= len(all) {
		r.Fatalf("%d submissions, want more than %d: %+v", len(all), n, r.job(id).Attempts)
	}
	return all[n]
}

// again waits out the backoff, and is the next submission of the job.
func (r *rig) again(id settle.ID) sub {
	r.Helper()
	r.nap(backoff)
	return r.parked(id)
}

// breaker is the breaker of a node.
func (r *rig) breaker(node string) breaker.Status {
	for _, s := range r.pool.Nodes() {
		if s.Node == node {
			return s
		}
	}
	r.Fatalf("there is no node %s", node)
	return breaker.Status{}
}

// fates are how many documents became what.
func (r *rig) fates(f remote.Fate) int { return int(r.hub.Stats().Fates[f]) }
