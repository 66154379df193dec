package redisinbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redistest"
)

func TestMain(m *testing.M) {
	if config := os.Getenv("REDISINBOX_VICTIM"); config != "" {
		victim(config)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // they wait, mostly
	os.Exit(m.Run())
}

// quick is the pace of tests: everything within a second.
var quick = pace{grace: 300 * time.Millisecond, renew: 2 * time.Second, every: 200 * time.Millisecond, orphan: time.Hour, dead: time.Hour}

// at is how these tests reach a server.
func at(addrs ...string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: addrs, ConnWriteTimeout: 500 * time.Millisecond}
}

// open returns an inbox with a pace for tests. Its log is read with lines.
func open(t testing.TB, o rueidis.ClientOption, change ...func(*Config)) *Inbox {
	t.Helper()
	c := Config{Client: o, Block: 100 * time.Millisecond, TakeOver: 600 * time.Millisecond, Logger: slog.New(newLogs())}
	for _, f := range change {
		f(&c)
	}
	in, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	in.pace = quick
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s\nstatus: %+v", loggedBy(in), in.Status())
		}
	})
	return in
}

// logs keeps what is logged.
type logs struct {
	slog.Handler
	mu sync.Mutex
	b  bytes.Buffer
}

func newLogs() *logs {
	l := &logs{}
	l.Handler = slog.NewTextHandler(l, nil)
	return l
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// loggedBy is what an inbox of open has logged.
func loggedBy(in *Inbox) string { return in.log.Handler().(*logs).text() }

// run runs an inbox until the test ends or stop is called.
func run(t testing.TB, in *Inbox, deliver Deliver) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := in.Run(ctx, deliver); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

func reading(t testing.TB, in *Inbox) {
	t.Helper()
	redistest.Eventually(t, "the inbox is read", func() bool { return in.Status().Reading })
}

// store is what bridges commit to: by compare-and-set on the attempt.
type store struct {
	mu      sync.Mutex
	settled map[settle.ID]string // the document
	again   int                  // deliveries of what was settled
	notes   int                  // progress notes
	calls   int
	most    int // entries in one call
	fault   func(calls int) error
}

func newStore() *store { return &store{settled: map[settle.ID]string{}} }

func (s *store) deliver(ctx context.Context, list []Entry) ([]bool, error) {
	s.mu.Lock()
	s.calls++
	calls, fault := s.calls, s.fault
	s.mu.Unlock()
	if fault != nil {
		if err := fault(calls); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(s.most, len(list))
	done := make([]bool, len(list))
	for n, e := range list {
		_, before := s.settled[e.Attempt]
		switch {
		case e.Progress:
			s.notes++
		case before:
			s.again++
		default:
			s.settled[e.Attempt] = string(e.Doc)
		}
		done[n] = true
	}
	return done, nil
}

func (s *store) has(attempts ...settle.ID) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range attempts {
		if _, ok := s.settled[a]; ok {
			n++
		}
	}
	return n
}

func (s *store) noted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes
}

func (s *store) size() int {
	settled, _, _ := s.count()
	return settled
}

func (s *store) count() (settled, again, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.settled), s.again, s.calls
}

// nodes answer, and repeat until Redis has confirmed it.
type nodes struct {
	t      testing.TB
	in     *Inbox
	client rueidis.Client

	mu        sync.Mutex
	confirmed []settle.ID
}

func newNodes(t testing.TB, in *Inbox, o rueidis.ClientOption) *nodes {
	t.Helper()
	o.DisableCache, o.DisableRetry = true, true
	o.Sentinel.TopologyRefreshInterval = cmp.Or(o.Sentinel.TopologyRefreshInterval, time.Second)
	c, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &nodes{t: t, in: in, client: c}
}

// answer answers one attempt, and returns it.
func (n *nodes) answer(doc string) settle.ID {
	n.t.Helper()
	job, attempt := settle.NewID(), settle.NewID()
	a := n.in.Address(job, attempt)
	n.add(a.Stream, a.Ticket, doc)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.confirmed = append(n.confirmed, attempt)
	return attempt
}

func (n *nodes) add(stream, ticket, doc string) {
	n.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := n.client.Do(ctx, n.client.B().Xadd().Key(stream).Id("*").FieldValue().FieldValue("ticket", ticket).FieldValue("doc", doc).Build()).Error()
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.t.Errorf("a node cannot answer: %v", err)
			return
		}
		pause(context.Background(), 0)
	}
}

// all are the attempts whose answer Redis has confirmed.
func (n *nodes) all() []settle.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]settle.ID(nil), n.confirmed...)
}

// load answers so many attempts, from four nodes, about one each 3 ms.
func (n *nodes) load(total int) (done <-chan struct{}) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range total / 4 {
				n.answer(`{"status":"done"}`)
				sleep(context.Background(), 10*time.Millisecond)
			}
		})
	}
	go func() { all.Wait(); close(ended) }()
	return ended
}

// rest is what the streams hold, and what is pending.
func (n *nodes) rest() (entries, pending int64, err error) {
	for _, shard := range n.in.keys() {
		for _, key := range shard {
			l, err := n.client.Do(context.Background(), n.client.B().Xlen().Key(key).Build()).AsInt64()
			if err != nil {
				return 0, 0, err
			}
			p, err := n.client.Do(context.Background(), n.client.B().Xpending().Key(key).Group(group).Build()).ToArray()
			if err != nil && !noGroup(err) {
				return 0, 0, err
			}
			if len(p) > 0 {
				k, _ := p[0].AsInt64()
				pending += k
			}
			entries += l
		}
	}
	return entries, pending, nil
}

// drained waits until everything that Redis confirmed is settled, and nothing is
// left in the streams.
func (n *nodes) drained(st *store) {
	n.t.Helper()
	redistest.Eventually(n.t, "all is settled", func() bool { return st.has(n.all()...) == len(n.all()) })
	n.emptied()
}

func (n *nodes) emptied() {
	n.t.Helper()
	redistest.Eventually(n.t, "all is removed", func() bool {
		entries, pending, err := n.rest()
		return err == nil && entries == 0 && pending == 0
	})
}

func expect(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

var errStore = errors.New("the store is away")
