package redisbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

var ticket = mailbox.Ticket{Job: "video-7", Step: "render", Attempt: "a1b2c3", Node: "gpu-3"}

// mine waits long enough for a fault of a test to show.
var mine = mailbox.AwaitOpts{Ticket: ticket, Ceiling: 20 * time.Second}

// document is an answer to the ticket; what is its status and what goes with it.
func document(what string) string {
	return `{"v":1,"job":"video-7","step":"render","attempt":"a1b2c3","node":"gpu-3","status":` + what + `}`
}

func done(output string) string { return document(`"done","output":` + output) }

const failure = `"error","error":{"reason":"gpu_oom","message":"CUDA out of memory"}`

// at is the configuration of a box at an address.
func at(addrs ...string) Config {
	return Config{Redis: rueidis.ClientOption{InitAddress: addrs}}
}

// quick is one whose heartbeats and polls a test can wait for.
func quick(addrs ...string) Config {
	c := at(addrs...)
	c.Redis.Dialer.KeepAlive = 200 * time.Millisecond
	c.Timeout, c.Heartbeat, c.Wait.Poll = time.Second, 200*time.Millisecond, 300*time.Millisecond
	return c
}

// box is one whose Run is under way until the test ends.
type box struct {
	*Box
	log  *lines
	quit func() error  // ends Run, and returns its error
	ran  chan struct{} // closed when Run has returned
}

func open(t testing.TB, c Config) *box {
	t.Helper()
	log := &lines{}
	c.Wait.Logger = slog.New(slog.NewTextHandler(log, nil))
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	var refusal error
	go func() { defer close(ran); refusal = b.Run(ctx) }()
	quit := sync.OnceValue(func() error { cancel(); <-ran; return refusal })
	t.Cleanup(func() { _ = quit(); b.Close() })
	return &box{b, log, quit, ran}
}

// subscribed waits until nudges are heard.
func (b *box) subscribed(t testing.TB) {
	t.Helper()
	redistest.Eventually(t, "the box is subscribed", func() bool { return b.Stats().Subscribed })
}

// put writes an answer and nudges.
func put(s *redistest.Server, key, doc string) {
	s.Do("SET", key, doc, "EX", "7200")
	s.Do("PUBLISH", DefaultChannel, key)
}

// wait is what one Await came to.
type wait struct {
	key string
	d   mailbox.Delivery
	err error
}

// await starts waits, of which each sends what it came to.
func (b *box) await(ctx context.Context, n int, o mailbox.AwaitOpts) <-chan wait {
	ended := make(chan wait, n)
	for i := range n {
		go func() {
			d, err := b.Await(ctx, key(i), o)
			ended <- wait{key(i), d, err}
		}()
	}
	return ended
}

func key(i int) string { return fmt.Sprintf("settle:answer:%d", i) }

// waiting waits until there are so many waits.
func (b *box) waiting(t testing.TB, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("there are %d waits", n), func() bool { return b.Stats().Waits == n })
}

func took(fn func()) time.Duration {
	at := time.Now()
	fn()
	return time.Since(at)
}

// clients is how many connections of boxes a server has; subs how many of these
// are subscribed.
func clients(s *redistest.Server) (all, subs int) {
	for line := range strings.Lines(s.Text("CLIENT", "LIST")) {
		if strings.Contains(line, " name=settle-mailbox ") {
			all++
			if !strings.Contains(line, " sub=0 ") {
				subs++
			}
		}
	}
	return all, subs
}

// goroutines waits until there are no more goroutines than before.
func goroutines(t testing.TB, before int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("there are %d goroutines again", before), func() bool { return runtime.NumGoroutine() <= before })
}

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(b))
	return len(b), nil
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// is asks an error for its type.
func is[E error](err error) (e E, ok bool) { return e, errors.As(err, &e) }

// client is a connection of the test's own.
func client(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true,
		PipelineMultiplex: -1, BlockingPipeline: -1, AlwaysPipelining: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
