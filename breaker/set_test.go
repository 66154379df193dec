package breaker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// setBench is a set with a clock that only the test moves. One failure opens a
// node, for 10 s.
type setBench struct {
	*Set
	now time.Time
}

func newSetBench(c SetConfig) *setBench {
	s := &setBench{now: start}
	c.Breaker = Config{Failures: 1, OpenMin: 10 * time.Second, OpenMax: time.Minute, ProbeLease: 30 * time.Second,
		Now: func() time.Time { return s.now }, Rand: func() float64 { return 0 }}
	s.Set = NewSet(c)
	return s
}

func (s *setBench) fail(t *testing.T, node string) {
	t.Helper()
	tok, err := s.Node(node).Admit()
	if err != nil {
		t.Fatal(err)
	}
	tok.Settle(Failure)
}

func (s *setBench) names() (list []string) {
	for _, st := range s.Snapshot() {
		list = append(list, st.Node)
	}
	return list
}

func TestNodesOfASetAreJudgedApart(t *testing.T) {
	s := newSetBench(SetConfig{})
	s.fail(t, "b")
	s.Node("a").Admit()
	if a, b := s.Node("a").State(), s.Node("b").State(); a != Closed || b != Open {
		t.Errorf("a is %s, b is %s", a, b)
	}
	if first := s.Node("b"); s.Node("b") != first {
		t.Error("a node has two breakers")
	}
	want := []Status{
		{Node: "a", State: Closed, Since: start, Generation: 1},
		{Node: "b", State: Open, Since: start, Next: start.Add(10 * time.Second), Openings: 1, Generation: 2},
	}
	if got := s.Snapshot(); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestAdmitFirstTakesTheFirstThatAdmits(t *testing.T) {
	s := newSetBench(SetConfig{})
	s.fail(t, "a")
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"b", "c"}, "b"},
		{[]string{"a", "c", "b"}, "c"},
	} {
		tok, err := s.AdmitFirst(c.names...)
		if err != nil || tok.Node() != c.want {
			t.Errorf("of %v: %v, %v", c.names, tok.Node(), err)
		}
	}
	if _, err := s.AdmitFirst(); !errors.Is(err, ErrNoNodes) {
		t.Errorf("of none: %v", err)
	}
}

func TestAdmitFirstSaysWhenTheFirstProbeCanBeMade(t *testing.T) {
	s := newSetBench(SetConfig{})
	s.fail(t, "a")
	s.now = s.now.Add(3 * time.Second)
	s.fail(t, "b")
	s.now = s.now.Add(3 * time.Second)
	check := func(node string, state State, wait time.Duration, names ...string) {
		t.Helper()
		tok, err := s.AdmitFirst(names...)
		var open *OpenError
		if tok != nil || !errors.As(err, &open) || !errors.Is(err, ErrOpen) {
			t.Fatalf("%v, %v", tok, err)
		}
		if open.Node != node || open.State != state || open.Wait != wait {
			t.Errorf("%v: %+v", err, *open)
		}
	}
	check("a", Open, 4*time.Second, "b", "a")
	check("a", Open, 4*time.Second, "a", "b")
	s.now = s.now.Add(4 * time.Second)
	probe, err := s.AdmitFirst("b", "a")
	if err != nil || probe.Node() != "a" || !probe.Probe() {
		t.Fatalf("%v", err)
	}
	check("b", Open, 3*time.Second, "a", "b")
	check("a", HalfOpen, 30*time.Second, "a")
	want := `none of 2 nodes can be called: the breaker of node "b" is open, next probe in 3s`
	if _, err := s.AdmitFirst("a", "b"); err.Error() != want {
		t.Errorf("%q", err)
	}
}

func TestASetForgetsWhoIsIdle(t *testing.T) {
	s := newSetBench(SetConfig{Idle: time.Hour})
	s.fail(t, "a")
	kept := s.Node("a")
	s.now = s.now.Add(time.Hour - 1)
	if s.Node("a") != kept {
		t.Error("forgotten too early")
	}
	s.Node("b")
	s.now = s.now.Add(time.Hour - 1)
	s.Node("b")
	s.Snapshot() // keeps nobody
	s.now = s.now.Add(1)
	if got := s.names(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("remembered: %v, want b", got)
	}
	if b := s.Node("a"); b == kept || b.State() != Closed {
		t.Errorf("a is %s", b.State())
	}
}

func TestASetIsBounded(t *testing.T) {
	s := newSetBench(SetConfig{Nodes: 3, Idle: time.Hour})
	ask := func(names ...string) {
		for _, name := range names {
			s.now = s.now.Add(time.Second)
			s.Node(name)
		}
	}
	s.fail(t, "open")
	ask("a", "b", "a", "c")
	if got := s.names(); !slices.Equal(got, []string{"a", "c", "open"}) {
		t.Errorf("%v: want the closed one gone that was asked for longest ago", got)
	}
	s.fail(t, "a")
	s.fail(t, "c")
	ask("d")
	if got := s.names(); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("%v: want the one gone that was asked for longest ago", got)
	}
	for i := range 1000 {
		ask(fmt.Sprint("flood", i), "a")
	}
	if got := s.names(); len(got) != 3 || !slices.Contains(got, "a") {
		t.Errorf("%v: want three, a among them", got)
	}
	s.now = s.now.Add(time.Hour)
	ask("e")
	if len(s.nodes) != 1 {
		t.Errorf("%d nodes are kept, want the idle ones gone", len(s.nodes))
	}
}

func TestP11ATicketOutlivesItsBreakerAsThatOfAnotherLife(t *testing.T) {
	s := newSetBench(SetConfig{Idle: time.Hour})
	tok, err := s.AdmitFirst("a")
	if err != nil {
		t.Fatal(err)
	}
	ticket := tok.Ticket()
	s.now = s.now.Add(time.Hour)
	if s.Node("a").Observe(ticket, Answered) {
		t.Error("an answer from before is heard")
	}
	if !s.Node("a").Observe(ticket, Failure) || s.Node("a").State() != Open {
		t.Error("a failure from before is not counted")
	}
}
