package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/remote/redisinbox"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// Three processes read the answers to a thousand waits from one Redis, to which
// everything happens meanwhile. Nodes keep an answer until Redis has confirmed it.
func TestP1P3P9P10AThousandWaitsWhileRedisIsInTrouble(t *testing.T) {
	t.Parallel()
	const jobs = 1000
	s := redistest.Start(t)
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "settle.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	field := newField(t, s)
	kind := settle.Define[int, int]("chaos", settle.Policy{Wait: 15 * time.Second, BackoffMin: 50 * time.Millisecond, BackoffMax: 200 * time.Millisecond})

	ends := &tally{of: map[settle.ID]int{}}
	var procs []*process
	for range 3 {
		procs = append(procs, startProcess(t, st, s, kind, field, ends))
	}
	q := settle.NewClient(st)
	var ids []settle.ID
	for i := range jobs {
		id, err := kind.Enqueue(t.Context(), q, i)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"restarted", s.Restart},
		{"paused", func() { s.Pause(); rest(t.Context(), 2*time.Second); s.Resume() }},
		{"made read-only", func() {
			s.Do("REPLICAOF", "127.0.0.1", "1")
			rest(t.Context(), 2*time.Second)
			s.Do("REPLICAOF", "NO", "ONE")
		}},
		{"replies dropped", func() {
			for _, p := range procs {
				p.proxy.CutReply("XDEL", 1)
				p.proxy.CutReply("XREADGROUP", 2)
			}
		}},
		{"half-open", func() { procs[0].proxy.Silence(); rest(t.Context(), time.Second); procs[0].proxy.Pass() }},
		{"a bridge killed", func() { procs[1].kill(); procs[1] = startProcess(t, st, s, kind, field, ends) }},
		{"cut off", func() {
			for _, p := range procs {
				p.proxy.Cut()
			}
		}},
	} {
		t.Log(fault.name)
		fault.do()
		rest(t.Context(), 500*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	done, err := q.AwaitMany(ctx, ids...)
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "nothing is left in the inbox", func() bool {
		n := 0
		for shard := range redisinbox.Shards {
			n += s.Int("XLEN", fmt.Sprintf("settle:{%d}:inbox", shard))
		}
		return n == 0
	})
	for _, p := range procs {
		p.kill()
	}
	field.stop()
	var succeeded, lost int
	for _, j := range done {
		if j.State == settle.Succeeded {
			succeeded++
		}
		real := field.submitted(j.ID)
		counted := len(j.Steps)
		for _, a := range j.Attempts {
			if !a.Ticket.IsZero() {
				counted++
			}
			if a.Reason == settle.AttemptNoResult {
				lost++
			}
			if a.Reason == settle.AttemptSubmitFailed || a.Reason == settle.AttemptWorkerLost {
				t.Errorf("job %s: attempt %d ended as %s", j.ID, a.N, a.Reason)
			}
		}
		if counted != real {
			t.Errorf("P10 budgets equal real attempts: job %s counted %d of %d submissions: %+v", j.ID, counted, real, j.Attempts)
		}
		if n := ends.count(j.ID); n != 1 {
			t.Errorf("P3 none is settled twice: job %s was ended %d times", j.ID, n)
		}
		if j.State == settle.Dead && j.Reason != settle.EndExhausted {
			t.Errorf("job %s died of %s", j.ID, j.Reason)
		}
	}
	t.Logf("%d succeeded, %d exhausted, %d waits without a result", succeeded, jobs-succeeded, lost)
	if succeeded < jobs*3/4 {
		t.Errorf("only %d of %d jobs succeeded", succeeded, jobs)
	}
}

// tally counts ends by job.
type tally struct {
	mu sync.Mutex
	of map[settle.ID]int
}

func (c *tally) end(s worker.Settled) {
	if s.Applied == settle.Done && s.Transition.To.Ended() {
		c.mu.Lock()
		c.of[s.Job]++
		c.mu.Unlock()
	}
}

func (c *tally) count(id settle.ID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[id]
}

// process is one worker with its bridge, behind a proxy of its own.
type process struct {
	proxy *faultproxy.Proxy
	kill  func()
}

// mortal is an inbox whose process can die: what it has read stays pending.
type mortal struct {
	remote.Inbox
	dead atomic.Bool
}

func (m *mortal) Run(ctx context.Context, deliver remote.Deliver) error {
	return m.Inbox.Run(ctx, func(ctx context.Context, in []remote.Incoming) ([]bool, error) {
		if m.dead.Load() {
			return nil, errors.New("killed")
		}
		return deliver(ctx, in)
	})
}

func startProcess(t *testing.T, st settle.Store, s *redistest.Server, kind settle.Kind[int, int], f *field, ends *tally) *process {
	t.Helper()
	p := &process{proxy: faultproxy.New(t, s.Addr())}
	in, err := redisinbox.New(redisinbox.Config{Client: rueidis.ClientOption{InitAddress: []string{p.proxy.Addr()}}, TakeOver: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{Inbox: in.Way()}
	hub, err := remote.New(st, remote.Config{Inbox: m})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := hub.Pool("field", remote.PoolConfig{Nodes: []remote.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Submit: f.submit, Retries: 10})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(st, worker.Config{Sweep: 200 * time.Millisecond, Drain: time.Second, Events: worker.Events{Settled: ends.end}})
	remote.Handle(w, kind, pool, remote.Step{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	p.kill = sync.OnceFunc(func() {
		m.dead.Store(true)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.kill)
	return p
}

// field is all nodes: each submission is answered once, after a while, and the
// answer kept until Redis has confirmed it.
type field struct {
	client rueidis.Client
	ctx    context.Context
	cancel context.CancelFunc
	busy   sync.WaitGroup

	mu  sync.Mutex
	got map[settle.ID]int
}

func newField(t *testing.T, s *redistest.Server) *field {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, DisableRetry: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &field{client: client, got: map[settle.ID]int{}}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { f.stop(); client.Close() })
	return f
}

func (f *field) stop() { f.cancel(); f.busy.Wait() }

func (f *field) submitted(id settle.ID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.got[id]
}

func (f *field) submit(_ context.Context, s remote.Submission) error {
	f.mu.Lock()
	f.got[s.Job]++
	f.mu.Unlock()
	f.busy.Go(func() { f.answer(s) })
	return nil
}

func (f *field) answer(s remote.Submission) {
	at := s.Answer["redis"].(redisinbox.Address)
	doc := fmt.Appendf(nil, `{"v":1,"job":%q,"step":%q,"attempt":%q,"node":%q,`, s.Job, s.Step, s.Attempt, s.Node)
	switch n := rand.IntN(20); {
	case n == 0:
		doc = []byte(`<html>502</html>`)
	case n < 3:
		doc = append(doc, `"status":"error","error":{"reason":"oom","message":"out of memory","retryable":true}}`...)
	default:
		doc = append(bytes.Clone(doc), fmt.Sprintf(`"status":"done","output":%s}`, s.Input)...)
	}
	rest(f.ctx, rand.N(8*time.Second))
	for f.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(f.ctx, time.Second)
		err := f.client.Do(ctx, f.client.B().Xadd().Key(at.Stream).Id("*").FieldValue().FieldValue("ticket", at.Ticket).FieldValue("doc", string(doc)).Build()).Error()
		cancel()
		if err == nil {
			return
		}
		rest(f.ctx, 100*time.Millisecond)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
