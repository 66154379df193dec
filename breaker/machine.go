package breaker

import (
	"slices"
	"time"
)

// machine is a breaker without clock, lock and chance: the instant and a number
// of [0, 1) come in as arguments.
//
// An open and a half-open breaker are the same to it, tripped, and differ by the
// time only. Nobody is admitted between an opening and its end, so they can
// share a generation.
type machine struct {
	rules Config // ready

	generation uint64 // from 1; grows when tripped changes, and when it is tripped anew
	tripped    bool
	since      time.Time // of this generation
	failures   int       // closed: in a row
	openings   int       // in a row
	until      time.Time // tripped: the end of the open time
	probes     []probe   // in flight, oldest first; some may have lost their place
	lastProbe  uint64
}

// probe is a place that is taken.
type probe struct {
	number uint64 // from 1
	ends   time.Time
}

// pass is what an admitted call is known by.
type pass struct {
	generation uint64
	probe      uint64 // 0 = admitted while closed
}

func newMachine(rules Config, now time.Time) machine {
	return machine{rules: rules, generation: 1, since: now}
}

func (m *machine) state(now time.Time) State {
	switch {
	case !m.tripped:
		return Closed
	case now.Before(m.until):
		return Open
	}
	return HalfOpen
}

// admit lets a call pass, or not.
func (m *machine) admit(now time.Time) (p pass, ok bool) {
	if !m.next(now).IsZero() {
		return pass{}, false
	}
	p.generation = m.generation
	if m.tripped {
		m.probes = slices.DeleteFunc(m.probes, func(pr probe) bool { return !now.Before(pr.ends) })
		m.lastProbe++
		p.probe = m.lastProbe
		m.probes = append(m.probes, probe{p.probe, now.Add(m.rules.ProbeLease)})
	}
	return p, true
}

// next is when a call can be admitted; zero = now.
func (m *machine) next(now time.Time) time.Time {
	switch m.state(now) {
	case Open:
		return m.until
	case HalfOpen:
		if taken := m.taken(now); len(taken) >= m.rules.Probes {
			return slices.MinFunc(taken, func(a, b probe) int { return a.ends.Compare(b.ends) }).ends
		}
	}
	return time.Time{}
}

// taken are the probes whose leases have not ended.
func (m *machine) taken(now time.Time) (list []probe) {
	for _, p := range m.probes {
		if now.Before(p.ends) {
			list = append(list, p)
		}
	}
	return list
}

// settle takes the outcome of the call that has the pass, or of its delivery.
// It reports false when the outcome comes too late to mean anything.
func (m *machine) settle(now time.Time, p pass, o Outcome, luck float64) (heard bool) {
	m.probes = slices.DeleteFunc(m.probes, func(pr probe) bool { return pr.number == p.probe })
	if p.generation != m.generation {
		return false
	}
	switch o {
	case Success:
		m.close(now)
		m.failures, m.openings = 0, 0
	case Answered:
		m.close(now)
	case Failure:
		m.fail(now, luck)
	}
	return true
}

// foreign takes the outcome of a call of which nobody here knows when it began.
// Good news may be from before all that went wrong since, and only probes decide
// a tripped breaker.
func (m *machine) foreign(now time.Time, o Outcome, luck float64) (heard bool) {
	if o != Failure || m.tripped {
		return false
	}
	m.fail(now, luck)
	return true
}

func (m *machine) close(now time.Time) {
	if m.tripped {
		m.begin(now, false)
	}
}

func (m *machine) fail(now time.Time, luck float64) {
	m.failures++
	if m.tripped || m.failures >= m.rules.Failures {
		m.openings++
		m.begin(now, true)
		m.until = now.Add(openFor(m.rules.OpenMin, m.rules.OpenMax, m.openings, luck))
	}
}

// begin begins a generation: whoever is in flight belongs to the last one.
func (m *machine) begin(now time.Time, tripped bool) {
	m.generation++
	m.tripped, m.since, m.failures = tripped, now, 0
	m.probes = m.probes[:0]
}

// openFor is how long the nth opening in a row lasts.
func openFor(least, most time.Duration, n int, luck float64) time.Duration {
	whole := least
	for range n {
		if whole >= most-whole {
			whole = most
			break
		}
		whole *= 2
	}
	half := whole / 2
	return min(max(half+time.Duration(luck*float64(whole-half)), least), whole)
}

func (m *machine) status(now time.Time) Status {
	s := Status{
		Node: m.rules.Node, State: m.state(now), Since: m.since, Next: m.next(now),
		Failures: m.failures, Openings: m.openings, Probes: len(m.taken(now)), Generation: m.generation,
	}
	if s.State == HalfOpen {
		s.Since = m.until
	}
	return s
}
