//go:build linux

package kill

import (
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// bar is one case of the bound: how a killed worker and the one beside it are
// set, and what the product promises then.
type bar struct {
	name         string
	shift        shift // of both
	backoff      time.Duration
	lease, sweep time.Duration
}

var (
	shortBar = bar{"short times", shift{Slots: 64, Lease: 2 * time.Second, Sweep: 250 * time.Millisecond}, 200 * time.Millisecond, 2 * time.Second, 250 * time.Millisecond}
	// The product's own times.
	usualBar = bar{"the usual times", shift{Slots: 64}, time.Second, 30 * time.Second, settle.SweepInterval}
)

// The jobs of a killed worker start again within lease + sweep + first backoff
// + 1 s, all of them together: with another worker alive, and in real time.
func TestP1AKilledWorkersJobsStartAgainTogetherAndSoon(t *testing.T) {
	first := shortBar.begin(t, 0) // its ten seconds of waiting begin before all other tests
	t.Parallel()
	for _, b := range []bar{shortBar, usualBar}[:size(1, 2)] {
		met := false
		for i := uint64(0); i < 4 && !met; i++ {
			r := first
			if first = nil; r == nil {
				r = b.begin(t, i)
			}
			met = r.measure(t)
		}
		if !met {
			t.Errorf("%s: each time the machine stood still for most of a lease: nothing was measured", b.name)
		}
	}
}

// barRun is a case under way: two workers live, one of which holds all jobs.
type barRun struct {
	bar
	f      *file
	killed *process
	jobs   int
	ready  time.Time // from then on the other ends leases
}

func (b bar) begin(t *testing.T, i uint64) *barRun {
	t.Helper()
	_, what := seeded("bar, "+b.name, i)
	f := newFile(t, what)
	r := &barRun{bar: b, f: f, killed: start(t, f.order(order{Do: "work", Shift: b.shift, Hang: true})), jobs: b.shift.Slots}
	until(t, 30*time.Second, "the first worker is up", func() bool { return countOf(f.lines(), up, 0) == 1 })
	jobs := fresh(r.jobs)
	policy := settle.Policy{BackoffMin: b.backoff, BackoffMax: b.backoff}
	for n := range jobs {
		jobs[n].Policy = &policy
	}
	f.enqueue(jobs...)
	until(t, 30*time.Second, "it runs all jobs", func() bool { return countOf(f.lines(), started, 1) == r.jobs })
	start(t, f.order(order{Do: "work", Shift: b.shift}))
	until(t, 30*time.Second, "the second worker is up", func() bool { return countOf(f.lines(), up, 0) == 2 })
	r.ready = time.Now().Add(settle.RenewInterval + b.sweep + 500*time.Millisecond)
	return r
}

// measure is false when the machine stood still for so long that a lease ran
// out: then there is nothing to judge.
func (r *barRun) measure(t *testing.T) bool {
	t.Helper()
	f := r.f
	pause(time.Until(r.ready)) // until then it ends nobody's lease, by design
	if n := countOf(f.lines(), started, 2); n > 0 {
		gap := longestGap(f.lines())
		t.Logf("%s: %d jobs of the living began again; it could not renew for %s", f.what, n, gap)
		f.check(gap > r.lease/2, "nobody ends the leases of the living")
		r.killed.kill(t)
		kills.add("bar")
		return false
	}
	r.killed.kill(t)
	kills.add("bar")
	at, bound := time.Now(), r.lease+r.sweep+r.backoff+time.Second
	until(t, bound+30*time.Second, "all jobs begin again", func() bool { return countOf(f.lines(), started, 2) == r.jobs })
	first, last := time.Time{}, time.Time{}
	for _, l := range f.lines() {
		if l.word == started && l.n == 2 {
			if last = l.at; first.IsZero() {
				first = l.at
			}
		}
	}
	t.Logf("%s: %d jobs began again %s to %s after the kill, the bound is %s", f.what, r.jobs, first.Sub(at).Round(time.Millisecond), last.Sub(at).Round(time.Millisecond), bound)
	f.check(last.Sub(at) <= bound, "all begin again within %s: the last after %s", bound, last.Sub(at))
	f.check(last.Sub(first) <= r.lease/3+r.backoff+time.Second, "they begin together: within %s", last.Sub(first))
	until(t, 30*time.Second, "all end", func() bool { return countOf(f.lines(), ended, 2) == r.jobs })
	f.judgeLive()
	return true
}

// longestGap is the longest time between two renewals.
func longestGap(lines []line) (gap time.Duration) {
	var last time.Time
	for _, l := range lines {
		if l.word != did+opRenew && (l.word != started || l.n != 1) {
			continue
		}
		if !last.IsZero() {
			gap = max(gap, l.at.Sub(last))
		}
		last = l.at
	}
	return gap
}

func countOf(lines []line, word string, n int) (found int) {
	for _, l := range lines {
		if l.word == word && l.n == n {
			found++
		}
	}
	return found
}

// A worker's own sweep, killed: all children wait ten seconds together.
func TestP1P2P14KilledInAWorkersOwnSweep(t *testing.T) {
	if !long {
		t.Skip("ten seconds in which nothing happens: with SETTLE_LONG=1")
	}
	t.Parallel()
	for round := range 3 {
		var files []*file
		var children []*process
		for i := range 8 {
			when := []string{during, before, after}[max(0, i-5)]
			rng, what := seeded(when+" a worker's sweep", uint64(round*8+i))
			f := newFile(t, what)
			f.enqueue(fresh(100)...)
			f.abandon(100)
			files = append(files, f)
			children = append(children, start(t, f.order(order{Do: "work", Op: opSweep, When: when, Nth: 1, Part: rng.Float64() * 2, Shift: shift{Slots: 8}})))
		}
		for i, p := range children {
			f := files[i]
			p.died(t)
			done, whole := each(opSweep, swept)(f, f.judge(), f.lines())
			f.check(whole, "a page is swept whole or not at all")
			f.check(p.what.When == during || done == (p.what.When == after), "what returned is done, what was not made is not")
			kills.addAsked("worker's sweep", done, p.what.When == during)
			f.finish()
		}
	}
}
