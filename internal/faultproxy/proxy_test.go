package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echo answers each line with itself, and remembers all lines.
type echo struct {
	listener net.Listener
	mu       sync.Mutex
	lines    []string
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: l}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewScanner(c); in.Scan(); {
		e.mu.Lock()
		e.lines = append(e.lines, in.Text())
		e.mu.Unlock()
		if _, err := io.WriteString(c, in.Text()+"\n"); err != nil {
			return
		}
	}
}

func (e *echo) heard() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, " ")
}

func setup(t *testing.T) (*echo, *Proxy) {
	e := newEcho(t)
	return e, New(t, e.listener.Addr().String()) // ends before the server does
}

type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

// say sends a line and returns what comes back within 200 ms, or a word for it.
func (c *client) say(line string) string {
	c.t.Helper()
	return c.ask(line, 200*time.Millisecond)
}

func (c *client) ask(line string, limit time.Duration) string {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "cut"
	}
	c.SetReadDeadline(time.Now().Add(limit))
	switch got, err := c.in.ReadString('\n'); {
	case err == nil:
		return strings.TrimSpace(got)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	default:
		return "cut"
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestSilenceIsNeverForgiven(t *testing.T) {
	e, p := setup(t)
	old := dial(t, p)
	expect(t, "passes", old.say("a"), "a")
	p.Silence()
	expect(t, "an old link", old.say("b"), "silence")
	young := dial(t, p)
	expect(t, "a new link", young.say("c"), "silence")
	p.Pass()
	expect(t, "the old link later", old.say("d"), "silence")
	expect(t, "the young link later", young.say("e"), "silence")
	expect(t, "a link after it", dial(t, p).say("f"), "f")
	p.Abandon()
	expect(t, "a link after Abandon", dial(t, p).say("g"), "g")
	expect(t, "the server heard", e.heard(), "a f g")
	if p.Links() != 4 || p.Accepted() != 4 {
		t.Errorf("%d links of %d", p.Links(), p.Accepted())
	}
}

func TestCutRefuseAndDelay(t *testing.T) {
	_, p := setup(t)
	c := dial(t, p)
	expect(t, "passes", c.say("a"), "a")
	p.Cut()
	expect(t, "cut", c.say("b"), "cut")
	c = dial(t, p)
	expect(t, "a new link", c.say("c"), "c")
	p.Refuse()
	expect(t, "refused", c.say("d"), "cut")
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection while it refuses: %v", err)
	}
	p.Pass()
	c = dial(t, p)
	expect(t, "passes again", c.say("e"), "e")
	p.Delay(150 * time.Millisecond)
	at := time.Now()
	expect(t, "delayed", c.ask("f", time.Minute), "f")
	if d := time.Since(at); d < 300*time.Millisecond {
		t.Errorf("an answer after %v, want twice 150 ms", d)
	}
	p.SetTarget(newEcho(t).listener.Addr().String())
	p.Pass()
	expect(t, "another target", dial(t, p).say("g"), "g")
}

func TestTheReplyToTheNthRequestIsLost(t *testing.T) {
	e, p := setup(t)
	a, b := dial(t, p), dial(t, p)
	expect(t, "before", a.say("take"), "take")
	done := p.CutReply("take", 3)
	expect(t, "another request", a.say("look"), "look")
	expect(t, "the first", a.say("take 1"), "take 1")
	io.WriteString(b, "a long line that ends in ta")
	expect(t, "the second, in two pieces", b.say("ke 2"), "a long line that ends in take 2")
	expect(t, "the third", b.say("take 3"), "cut")
	<-done
	expect(t, "the other link", a.say("take 4"), "take 4")
	if !strings.Contains(e.heard(), "take 3") {
		t.Errorf("the server heard %q, not the request whose reply was dropped", e.heard())
	}
	done = p.CutRequest("", 1)
	expect(t, "cut before", a.say("never"), "cut")
	<-done
	if strings.Contains(e.heard(), "never") {
		t.Error("the server heard what was cut before")
	}
}
