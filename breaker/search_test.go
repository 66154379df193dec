package breaker

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestP11EveryOrderOfFourCallsKeepsTheRules searches, depth first, every order
// in which up to four calls can begin, end in every way, hang, come late, and
// be delivered, beside the news of another process and the passing of time.
// Calls are alike, so orders that differ only by which of them does something
// are one. Each distinct state is visited once. The counts stand here: one that
// changes is a change of behaviour to explain.
func TestP11EveryOrderOfFourCallsKeepsTheRules(t *testing.T) {
	for _, c := range []struct {
		failures, probes int
		want             tally
	}{
		{1, 1, tally{states: 5286, moves: 97383, begun: 1152, refused: 624,
			success: 9564, answered: 9564, failure: 9564, neutral: 9564, panics: 9564, goexits: 9564,
			delivered: 31680, elsewhere: 4817, ticks: 1726, hung: 492, late: 53280, opened: 4188, reopened: 4956, closed: 9912}},
		{2, 1, tally{states: 4968, moves: 82820, begun: 1020, refused: 412,
			success: 8206, answered: 8206, failure: 8206, neutral: 8206, panics: 8206, goexits: 8206,
			delivered: 26340, elsewhere: 4524, ticks: 1288, hung: 328, late: 45378, opened: 2202, reopened: 3034, closed: 6068}},
		{1, 2, tally{states: 5706, moves: 109071, begun: 1432, refused: 422,
			success: 10740, answered: 10740, failure: 10740, neutral: 10740, panics: 10740, goexits: 10740,
			delivered: 35460, elsewhere: 5171, ticks: 2146, hung: 912, late: 55548, opened: 4188, reopened: 6888, closed: 13776}},
		{2, 2, tally{states: 5190, moves: 88673, begun: 1168, refused: 288,
			success: 8800, answered: 8800, failure: 8800, neutral: 8800, panics: 8800, goexits: 8800,
			delivered: 28194, elsewhere: 4713, ticks: 1510, hung: 550, late: 46512, opened: 2202, reopened: 3994, closed: 7988}},
	} {
		t.Run(fmt.Sprintf("%d failures, %d probes", c.failures, c.probes), func(t *testing.T) {
			t.Parallel()
			x := search{t: t, seen: map[string]bool{}, rules: Config{
				Failures: c.failures, Probes: c.probes, ProbeLease: leaseTicks * tick, OpenMin: tick, OpenMax: 4 * tick,
			}.ready()}
			x.visit(world{
				m: newMachine(x.rules, start),
				o: oracle{failures: c.failures, probes: c.probes, lease: leaseTicks, state: Closed},
			})
			if x.tally != c.want {
				t.Errorf("got  %#v\nwant %#v", x.tally, c.want)
			}
		})
	}
}

const (
	tick       = time.Second
	leaseTicks = 2
	ticksMost  = 2 // of an open time, without luck
	callsMost  = 4
)

// tally is how often what happened.
type tally struct {
	states, moves                       int
	begun, refused                      int
	success, answered, failure, neutral int // calls that ended so
	panics, goexits                     int
	delivered, elsewhere                int
	ticks                               int
	hung                                int // probes that lost their place in flight
	late                                int // outcomes that came in a later generation
	opened, reopened, closed            int
}

// world is one state of the search: the breaker, what the oracle holds of it,
// and where the calls are.
type world struct {
	m     machine
	o     oracle
	now   int
	calls [callsMost]caller
	news  [2]bool // of another process: a failure, an answer
}

type caller struct {
	stage     stage
	delivered bool
	pass      pass
	began     began
}

type stage byte

const (
	waiting stage = iota
	flying
	ended
)

type search struct {
	t     *testing.T
	rules Config
	seen  map[string]bool
	path  []step

	was, is, want Status // around the last move: the breaker before and after, the oracle after
	tally         tally
}

// step is one move, for people.
type step struct{ who, does, what string }

var callNames = [callsMost]string{"call 0", "call 1", "call 2", "call 3"}

// check takes no arguments to print: it is called some millions of times.
func (x *search) check(ok bool, rule string) {
	if !ok {
		x.t.Helper()
		x.t.Fatalf("broken: %s\nthe moves:  %v\nbefore:     %+v\nafter:      %+v\nthe oracle: %+v", rule, x.path, x.was, x.is, x.want)
	}
}

// ways out of a call that has been admitted.
var ways = []struct {
	name  string
	says  Outcome
	leave func(*Token) bool
	count func(*tally) *int
}{
	{"success", Success, func(t *Token) bool { return t.Settle(Success) }, func(n *tally) *int { return &n.success }},
	{"answered", Answered, func(t *Token) bool { return t.Settle(Answered) }, func(n *tally) *int { return &n.answered }},
	{"failure", Failure, func(t *Token) bool { return t.Settle(Failure) }, func(n *tally) *int { return &n.failure }},
	{"neutral", Neutral, func(t *Token) bool { return t.Settle(Neutral) }, func(n *tally) *int { return &n.neutral }},
	{"panic", Neutral, func(t *Token) bool { return out(t, func() { panic("out") }) }, func(n *tally) *int { return &n.panics }},
	{"Goexit", Neutral, func(t *Token) bool { return out(t, runtime.Goexit) }, func(n *tally) *int { return &n.goexits }},
}

// out leaves a call as Do does when its function does not return.
func out(t *Token, leave func()) bool {
	current := t.pass.generation == t.b.m.generation
	inGoroutine(func() {
		defer func() { _ = recover() }()
		_ = t.run(context.Background(), func(context.Context, *Token) error { leave(); return nil })
	})
	return t.settled.Load() && current
}

// visit goes on from a state that has not been seen before.
func (x *search) visit(w world) {
	key := w.key()
	if x.seen[key] {
		return
	}
	x.seen[key] = true
	x.tally.states++
	x.comesBack(w)
	for i := range w.calls {
		c := &w.calls[i]
		if c.stage == waiting {
			x.begin(w, i)
			break // the others that wait are like it
		}
	}
	for i, c := range w.calls {
		if c.stage == flying {
			for _, way := range ways {
				x.end(w, i, way.name, way.says, way.leave, way.count)
			}
		}
		if c.stage != waiting && !c.delivered {
			for _, says := range []Outcome{Success, Answered, Failure} {
				x.deliver(w, i, says)
			}
		}
	}
	for i, says := range []Outcome{Failure, Answered} {
		if !w.news[i] {
			x.hear(w, i, says)
		}
	}
	if w.timeMatters() {
		x.tick(w)
	}
}

func (x *search) begin(w world, i int) {
	x.act(w, step{callNames[i], "begins", ""}, nothing, func(w *world, b *Breaker) {
		t, err := b.Admit()
		how, ok := w.o.admit(w.now, w.begans())
		x.check(ok == (err == nil), "a call is admitted if the oracle admits it")
		if !ok {
			x.tally.refused++
			x.refusal(*w, b, err)
			return
		}
		x.tally.begun++
		w.calls[i] = caller{stage: flying, pass: t.pass, began: how}
	})
}

func (x *search) end(w world, i int, name string, says Outcome, leave func(*Token) bool, count func(*tally) *int) {
	c := w.calls[i]
	x.act(w, step{callNames[i], "ends by", name}, change{says, c.current(w), c.pass.probe != 0}, func(w *world, b *Breaker) {
		*count(&x.tally)++
		heard := leave(&Token{b: b, pass: c.pass})
		x.heard(heard, w.o.hear(w.now, c.began, says, openTicks))
		w.calls[i].stage, w.calls[i].began.gone = ended, true
	})
}

func (x *search) deliver(w world, i int, says Outcome) {
	c := w.calls[i]
	x.act(w, step{callNames[i], "delivers", string(says)}, change{says, c.current(w), c.pass.probe != 0}, func(w *world, b *Breaker) {
		x.tally.delivered++
		heard := b.Observe((&Token{b: b, pass: c.pass}).Ticket(), says)
		x.heard(heard, w.o.hear(w.now, c.began, says, openTicks))
		w.calls[i].delivered = true
	})
}

func (x *search) hear(w world, i int, says Outcome) {
	alone := w.m.state(w.time()) == Closed && says == Failure
	x.act(w, step{"another process", "tells of", string(says)}, change{says, alone, false}, func(w *world, b *Breaker) {
		x.tally.elsewhere++
		heard := b.Observe("other.1", says)
		x.check(heard == w.o.hearFrom(w.now, says, openTicks), "another process is heard if the oracle hears it")
		w.news[i] = true
	})
}

func (x *search) tick(w world) {
	x.path = append(x.path, step{"time", "passes", ""})
	x.tally.moves++
	x.tally.ticks++
	before := x.shell(w)
	w.now++
	w.o.pass(w.now)
	x.agree(w)
	x.check(equal(before.m, w.m), "time alone changes nothing")
	for _, c := range w.calls {
		if c.stage == flying && c.current(w) && c.began.probe && c.began.lease == w.now {
			x.tally.hung++
		}
	}
	x.visit(w)
	x.path = x.path[:len(x.path)-1]
}

func (x *search) heard(is, should bool) {
	x.check(is == should, "an outcome is heard if the oracle hears it")
	if !is {
		x.tally.late++
	}
}

// change is what a move may change: what is said, whether it is said in the
// generation in which its call began, and whether by a probe.
type change struct {
	says    Outcome
	current bool
	probe   bool
}

var nothing = change{says: Neutral, current: true}

// act carries out one move on a breaker of its own and checks every rule.
func (x *search) act(w world, s step, may change, move func(*world, *Breaker)) {
	x.path = append(x.path, s)
	x.tally.moves++
	b := x.shell(w)
	var told []State
	b.config.OnChange = func(from State, now Status) { told = append(told, from, now.State) }
	was := b.Status()
	x.was = was
	move(&w, b)
	w.m = b.m
	is := b.Status()
	x.agree(w)
	x.lawful(may, was, is, told)
	x.visit(w)
	x.path = x.path[:len(x.path)-1]
}

// lawful are the rules about one move, said without oracle and without machine.
func (x *search) lawful(may change, was, is Status, told []State) {
	x.check(is.Probes <= x.rules.Probes, "no more probes in flight than allowed")
	bare := func(s Status) Status { s.Probes, s.Next = 0, time.Time{}; return s }
	same := bare(was) == bare(is)
	x.check(may.current || was == is, "an outcome from before changes nothing")
	x.check(may.says != Neutral || same, "neutral changes nothing")
	x.check(may.says != Answered || was.State == HalfOpen || was == is, "an answer changes nothing but a half-open")
	x.check(was.State != Open || same, "an open breaker changes by time only")
	x.check(was.State != HalfOpen || same || may.probe, "half-open is left by a probe's outcome only")
	x.check(is.Generation-was.Generation <= 1, "one move is one change at most")
	if is.Generation == was.Generation {
		x.check(told == nil && was.State == is.State, "no change, and nobody is told of one")
		return
	}
	x.check(slices.Equal(told, []State{was.State, is.State}), "each change is told once")
	switch (edge{was.State, is.State}) {
	case edge{Closed, Open}:
		x.tally.opened++
	case edge{HalfOpen, Open}:
		x.tally.reopened++
	case edge{HalfOpen, Closed}:
		x.tally.closed++
	default:
		x.check(false, "only closed → open, half-open → open, half-open → closed")
	}
	x.check(is.State == Closed || is.Openings == was.Openings+1 && is.Next.Sub(is.Since) <= x.rules.OpenMax, "openings are counted, and last no longer than OpenMax")
}

type edge struct{ from, to State }

// shell makes a breaker that stands where w does.
func (x *search) shell(w world) *Breaker {
	m := w.m
	m.probes = slices.Clone(m.probes)
	c := x.rules
	c.Now = w.time
	c.Rand = func() float64 { return 0 }
	return &Breaker{config: c, id: "self.", m: m}
}

// agree checks that machine and oracle see the same, and that asking changes
// nothing.
func (x *search) agree(w world) {
	b := x.shell(w)
	got := b.Status()
	x.check(b.State() == got.State && b.Status() == got && equal(b.m, x.shell(w).m), "asking changes nothing")
	want := Status{State: w.o.state, Failures: w.o.row, Openings: w.o.opened, Probes: w.o.inFlight(w.now, w.begans())}
	if next := w.o.next(w.now, w.begans()); next != 0 {
		want.Next = at(next)
	}
	x.is, x.want = got, want
	got.Since, got.Generation = time.Time{}, 0
	x.check(got == want, "the breaker stands where the oracle stands")
	for _, c := range w.calls {
		x.check(c.stage == waiting || c.current(w) == w.o.current(c.began), "a call is of this generation if it is of the oracle's period")
	}
}

// refusal checks that the time that a refusal names is the earliest.
func (x *search) refusal(w world, b *Breaker, err error) {
	open, ok := err.(*OpenError)
	x.check(ok && open.State == w.o.state && open.Wait == open.Next.Sub(w.time()), "a refusal says where the breaker stands")
	early := x.shell(w)
	early.config.Now = func() time.Time { return open.Next.Add(-1) }
	_, err = early.Admit()
	x.check(err != nil, "no call is admitted before the time that a refusal names")
	early.config.Now = func() time.Time { return open.Next }
	_, err = early.Admit()
	x.check(err == nil, "a call is admitted at the time that a refusal names")
}

// comesBack checks that no order can wedge the breaker: when all open times and
// leases are over, one good call closes it, whatever hangs.
func (x *search) comesBack(w world) {
	w.now += leaseTicks + ticksMost
	b := x.shell(w)
	t, err := b.Admit()
	x.check(err == nil, "when every open time and lease is over, a call is admitted")
	x.check(t.Settle(Success), "its success is heard")
	s := b.Status()
	x.check(s.State == Closed && s.Failures == 0 && s.Openings == 0 && s.Probes == 0, "its success closes")
}

// equal compares machines of the same rules.
func equal(a, b machine) bool {
	a.rules, b.rules = Config{}, Config{}
	return reflect.DeepEqual(a, b)
}

func (c caller) current(w world) bool { return c.pass.generation == w.m.generation }

func (w world) time() time.Time { return at(w.now) }

func at(ticks int) time.Time { return start.Add(time.Duration(ticks) * tick) }

// openTicks is how long the nth opening in a row lasts: OpenMin is a tick, the
// upper bound four, and there is no luck.
func openTicks(nth int) int { return min(nth, ticksMost) }

func (w world) begans() (list []began) {
	for _, c := range w.calls {
		if c.stage != waiting {
			list = append(list, c.began)
		}
	}
	return list
}

// timeMatters reports whether an open time or a lease is still to end.
func (w world) timeMatters() bool {
	return w.m.state(w.time()) == Open || len(w.m.taken(w.time())) > 0
}

// key is the same for states from which the same can follow: times are relative,
// generations are this one or an earlier one, calls have no names.
func (w world) key() string {
	left := func(t time.Time) byte { return byte(max(t.Sub(w.time())/tick, 0)) }
	calls := make([]string, 0, callsMost)
	for _, c := range w.calls {
		k := []byte{byte(c.stage), flag(c.delivered), 0, 0, 0}
		if c.stage == flying || c.stage == ended && !c.delivered {
			k[2] = flag(c.current(w))
			k[3] = flag(c.pass.probe != 0 && c.current(w))
		}
		for _, p := range w.m.probes {
			if c.stage == flying && p.number == c.pass.probe {
				k[4] = left(p.ends)
			}
		}
		calls = append(calls, string(k))
	}
	slices.Sort(calls)
	m := []byte{flag(w.m.tripped), byte(w.m.failures), byte(min(w.m.openings, ticksMost)), 0, flag(w.news[0]), flag(w.news[1])}
	if w.m.tripped {
		m[3] = left(w.m.until)
	}
	return string(m) + strings.Join(calls, "")
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
