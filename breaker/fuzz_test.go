package breaker

import (
	"strings"
	"testing"
	"time"
)

// FuzzOrders plays any order of moves of eight calls beside the oracle, with any
// rules and any luck.
func FuzzOrders(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, []byte{0, 0x21, 0, 0x21, 0xf0, 0, 0x22})
	f.Add([]byte{1, 1, 3, 9}, []byte{0, 0x10, 0x23, 0x13, 0xf3, 0x10, 0xf9, 0x10, 0x20, 0x31})
	f.Fuzz(func(t *testing.T, rules, moves []byte) {
		if len(rules) != 4 || len(moves) > 400 {
			return
		}
		failures, probes, lease := 1+int(rules[0]%5), 1+int(rules[1]%4), 1+int(rules[2]%6)
		most := 1 + int(rules[3]%20)
		c := Config{Failures: failures, Probes: probes, ProbeLease: time.Duration(lease) * tick, OpenMin: tick, OpenMax: time.Duration(most) * tick}.ready()
		m, now := newMachine(c, start), 0
		o := oracle{failures: failures, probes: probes, lease: lease, state: Closed}
		calls := make([]began, 8)
		passes := make([]pass, 8)
		for i := range calls {
			calls[i].period = -1 // has not begun
		}
		for _, move := range moves {
			i, what, luck := int(move)%8, move>>4, float64(move)/256
			// The oracle takes an open time as it is, if it is within bounds.
			open := func(nth int) int {
				d, upper := m.until.Sub(at(now)), min(tick<<min(nth, 10), c.OpenMax)
				if d < max(upper/2, tick) || d > upper {
					t.Fatalf("the opening %d lasts %v, bounds %v and %v", nth, d, upper/2, upper)
				}
				m.until = m.until.Truncate(tick) // the oracle knows whole ticks only
				if !m.until.After(at(now)) {
					m.until = at(now + 1)
				}
				return int(m.until.Sub(at(now)) / tick)
			}
			outcome := []Outcome{Success, Answered, Failure, Neutral, "odd"}[int(move>>4)%5]
			switch {
			case what < 5: // a call begins, in the place of an older one
				p, ok := m.admit(at(now))
				how, should := o.admit(now, calls)
				if ok != should {
					t.Fatalf("admitted: %v, by the oracle %v", ok, should)
				}
				if ok && calls[i].period < 0 {
					calls[i], passes[i] = how, p
				} else if ok { // no place: it ends at once
					m.settle(at(now), p, Neutral, 0)
				}
			case what < 12:
				if calls[i].period < 0 {
					continue
				}
				heard := m.settle(at(now), passes[i], outcome, luck)
				if should := o.hear(now, calls[i], outcome, open); heard != should {
					t.Fatalf("heard: %v, by the oracle %v", heard, should)
				}
				calls[i].period = -1
			case what < 13:
				heard := m.foreign(at(now), outcome, luck)
				if should := o.hearFrom(now, outcome, open); heard != should {
					t.Fatalf("heard: %v, by the oracle %v", heard, should)
				}
			default:
				now += int(move % 16)
				o.pass(now)
			}
			got := m.status(at(now))
			want := Status{State: o.state, Failures: o.row, Openings: o.opened, Probes: o.inFlight(now, calls)}
			if next := o.next(now, calls); next != 0 {
				want.Next = at(next)
			}
			got.Since, got.Generation = time.Time{}, 0
			if got != want {
				t.Fatalf("the breaker is %+v, by the oracle %+v", got, want)
			}
		}
	})
}

// FuzzTicket: whatever comes back from a store, it is one failure at most, and
// good news of others is none.
func FuzzTicket(f *testing.F) {
	f.Add("", "failure")
	f.Add("1a2b3c.1", "success")
	f.Add("self.", "failure")
	f.Add("self.1", "answered")
	f.Add("self.2", "failure")
	f.Add("self.18446744073709551617", "failure")
	f.Fuzz(func(t *testing.T, ticket, outcome string) {
		b := newBench(Config{})
		b.id = "self."
		b.pass(t).Settle(Failure)
		heard := b.Observe(Ticket(ticket), Outcome(outcome))
		s := b.Status()
		if s.State != Closed || s.Failures > 2 || s.Generation != 1 {
			t.Errorf("%+v", s)
		}
		ours := strings.HasPrefix(ticket, b.id)
		if !ours && (s.Failures < 1 || heard != (outcome == "failure")) {
			t.Errorf("a ticket of others: %+v, heard: %v", s, heard)
		}
		b.now = b.now.Add(time.Hour)
		b.halfOpen(t)
		if b.Observe(Ticket(ticket), Outcome(outcome)) && ticket != "self.2" && !(ours && len(ticket) > 6) {
			t.Errorf("heard half-open: %+v", b.Status())
		}
	})
}
