package demo

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// told gathers what is said, and lets a test wait for it.
type told struct {
	mu    sync.Mutex
	lines string
	heard chan struct{}
}

func (s *told) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines += text + "\n"
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

func (s *told) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

// wait waits until the text has been said.
func (s *told) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !strings.Contains(s.text(), text) {
		select {
		case <-s.heard:
		case <-limit:
			t.Fatalf("not in 20 s: %q in:\n%s", text, s.text())
		}
	}
}

// naiveBeside runs a naive consumer against a node with so much memory.
func naiveBeside(t *testing.T, memory int) (n *Naive, box *Memory, s *told, end func() (Film, error)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	box, s = &Memory{}, &told{heard: make(chan struct{}, 1)}
	n = &Naive{Box: box, Key: "k", Tick: 5 * time.Millisecond, Say: s.say}
	node := &Node{Name: "a", Memory: memory, Takes: time.Millisecond, Box: box, Say: s.say}
	var all sync.WaitGroup
	var film Film
	var failed error
	all.Go(func() { node.Run(ctx, l) })
	all.Go(func() {
		film, failed = n.Run(ctx, "http://"+l.Addr().String(), "a", []byte(`{"frames":7,"needs_gib":11}`))
	})
	end = func() (Film, error) {
		stop()
		all.Wait()
		return film, failed
	}
	t.Cleanup(func() { _, _ = end() })
	return n, box, s, end
}

func TestTheNaiveConsumerHangsOnAFailure(t *testing.T) {
	n, box, s, end := naiveBeside(t, 8)
	s.wait(t, `reads an answer, which deletes it: status "error": so there is no result yet, waits on`)
	s.wait(t, "looks: nothing is there: so there is no result yet, waits on")
	if held, _ := box.Holds(t.Context(), "k"); held || !n.Hangs() {
		t.Errorf("the notice lies there: %v; it hangs: %v", held, n.Hangs())
	}
	if film, err := end(); !errors.Is(err, context.Canceled) || n.Hangs() {
		t.Errorf("%v, %v", film, err)
	}
}

func TestTheNaiveConsumerTakesASuccess(t *testing.T) {
	n, _, s, end := naiveBeside(t, 11)
	s.wait(t, "the film is there")
	if film, err := end(); err != nil || film.Frames != 7 || n.Hangs() {
		t.Errorf("%v, %v", film, err)
	}
}
