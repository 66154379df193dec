package breaker

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// bench is one breaker with a clock that only the test moves, open times
// without chance, and a note of each opening and closing.
type bench struct {
	*Breaker
	now     time.Time
	luck    float64
	changes []string
}

// newBench has small numbers: 3 failures, 1 probe, its lease 30 s, open times
// that begin at 10 s and end at 40 s.
func newBench(c Config) *bench {
	b := &bench{now: start}
	usual := Config{Failures: 3, ProbeLease: 30 * time.Second, OpenMin: 10 * time.Second, OpenMax: 40 * time.Second}
	if c.Failures == 0 {
		c.Failures = usual.Failures
	}
	if c.OpenMin == 0 {
		c.OpenMin, c.OpenMax = usual.OpenMin, usual.OpenMax
	}
	c.ProbeLease = usual.ProbeLease
	c.Now = func() time.Time { return b.now }
	c.Rand = func() float64 { return b.luck }
	c.OnChange = func(from State, now Status) { b.changes = append(b.changes, string(from)+" → "+string(now.State)) }
	b.Breaker = New(c)
	return b
}

// pass returns a token, which the breaker must give.
func (b *bench) pass(t *testing.T) *Token {
	t.Helper()
	tok, err := b.Admit()
	if err != nil {
		t.Fatalf("a call is refused: %v", err)
	}
	return tok
}

// halfOpen opens the breaker by failures and lets the open time pass.
func (b *bench) halfOpen(t *testing.T) {
	t.Helper()
	for b.State() == Closed {
		b.pass(t).Settle(Failure)
	}
	b.now = b.Status().Next
	if b.State() != HalfOpen {
		t.Fatalf("the breaker is %s", b.State())
	}
}

// play carries out a script and checks what it claims:
//
//	a? a!          a call begins and is known as a from now on; it is refused
//	a=failure      a is settled, and heard; with ~ at the end, ignored
//	a>failure      a's delivery is observed, and heard; with ~ at the end, ignored
//	else>failure   the same with the ticket of another process
//	10s            time passes
//	[open]         the state; [closed 2] with failures in a row; [half-open 1] with probes in flight
func (b *bench) play(t *testing.T, script string) {
	t.Helper()
	calls := map[string]*Token{}
	tickets := map[string]Ticket{"else": "1a2b3c.1", "none": ""}
	for at, step := range words(script) {
		fault := func(format string, args ...any) {
			t.Helper()
			t.Errorf("step %d of %q, %s: "+format, append([]any{at + 1, script, step}, args...)...)
		}
		act, ignored := strings.CutSuffix(step, "~")
		name, outcome, settled := strings.Cut(act, "=")
		who, delivery, delivered := strings.Cut(act, ">")
		switch d, err := time.ParseDuration(step); {
		case err == nil:
			b.now = b.now.Add(d)
		case step[0] == '[':
			if got := b.brief(strings.Contains(step, " ")); got != step {
				fault("the breaker is %s", got)
			}
		case strings.HasSuffix(step, "?"):
			name = strings.TrimSuffix(step, "?")
			if calls[name], err = b.Admit(); err != nil {
				fault("%v", err)
				return
			}
			tickets[name] = calls[name].Ticket()
		case strings.HasSuffix(step, "!"):
			if _, err := b.Admit(); err == nil {
				fault("it is admitted")
			}
		case settled:
			if heard := calls[name].Settle(Outcome(outcome)); heard == ignored {
				fault("heard: %v", heard)
			}
		case delivered:
			if heard := b.Observe(tickets[who], Outcome(delivery)); heard == ignored {
				fault("heard: %v", heard)
			}
		default:
			fault("what is this?")
		}
	}
}

// words splits a script; what stands in brackets is one word.
func words(script string) (list []string) {
	for i, part := range strings.Split(script, "[") {
		if inside, after, ok := strings.Cut(part, "]"); ok && i > 0 {
			list = append(list, "["+inside+"]")
			part = after
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

func (b *bench) brief(count bool) string {
	s := b.Status()
	n := s.Failures
	if s.State == HalfOpen {
		n = s.Probes
	}
	if !count {
		return "[" + string(s.State) + "]"
	}
	return "[" + string(s.State) + " " + strconv.Itoa(n) + "]"
}
