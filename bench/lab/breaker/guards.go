package main

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// guard is one rule and a case that shows whether a breaker keeps it.
type guard struct {
	name string
	try  func(*trial) bool
}

// trial runs one case against one library.
type trial struct {
	library
	held []func(result) // calls that are still in flight
}

// patience is how long a case may take: one that blocks has failed.
const patience = 5 * time.Second

func (g guard) verdict(l library) string {
	said := make(chan bool, 1)
	go func() { said <- g.try(&trial{library: l}) }()
	select {
	case ok := <-said:
		if ok {
			return "yes"
		}
		return "no"
	case <-time.After(patience):
		return "no: deadlock"
	}
}

var guards = []guard{
	// Places of probes come back.
	{"a hung probe does not wedge it", func(t *trial) bool {
		p := t.halfOpen(rules{})
		t.hold(p)
		time.Sleep(2 * lease)
		return now(p, success) && p.state() == "closed"
	}},
	{"a permit that is never used does not wedge it", func(t *trial) bool {
		p := t.make(rules{failures: 2, probes: 1})
		for range 2 {
			settle, _ := p.permit()
			settle(failure)
		}
		time.Sleep(openTime + openTime/4)
		_, first := p.permit()
		time.Sleep(2 * lease)
		_, second := p.permit()
		return first && second
	}},
	{"a probe's panic decides nothing and frees its place", func(t *trial) bool { return t.neutral(panics) }},
	{"a probe's Goexit decides nothing and frees its place", func(t *trial) bool { return t.neutral(goexits) }},
	{"a probe's cancellation decides nothing and frees its place", func(t *trial) bool { return t.neutral(cancelled) }},
	{"reading the state 1000 times takes no probe", func(t *trial) bool {
		p := t.halfOpen(rules{})
		for range 1000 {
			p.state()
		}
		return now(p, success) && p.state() == "closed"
	}},
	{"at most 3 probes in flight, when 3 are allowed", func(t *trial) bool {
		p, admitted := t.halfOpen(rules{probes: 3}), 0
		for range 10 {
			if t.hold(p) {
				admitted++
			}
		}
		return admitted == 3
	}},

	// What says nothing changes nothing.
	{"a cancellation while closed leaves the count alone", func(t *trial) bool { return t.leavesAlone(cancelled) }},
	{"a panic while closed leaves the count alone", func(t *trial) bool { return t.leavesAlone(panics) }},
	{"50 explicit failures leave it closed", func(t *trial) bool {
		p := t.make(rules{failures: 2, probes: 1})
		for range 50 {
			now(p, answered)
		}
		return p.state() == "closed"
	}},
	{"an explicit failure leaves the count alone", func(t *trial) bool { return t.leavesAlone(answered) }},
	{"a probe's explicit failure closes it", func(t *trial) bool {
		p := t.halfOpen(rules{})
		return now(p, answered) && p.state() == "closed"
	}},

	// What comes too late changes nothing.
	{"a success begun while closed does not close a half-open", func(t *trial) bool { return t.late(success) }},
	{"a failure begun while closed does not open a half-open", func(t *trial) bool { return t.late(failure) }},
	{"who comes too late is told", func(t *trial) bool {
		p := t.make(rules{failures: 2, probes: 1})
		tells, ok := p.(teller)
		if !ok {
			return false
		}
		settle, _ := tells.permitThatTells()
		t.trip(p)
		return !settle(success)
	}},
	{"a call settled twice counts once", func(t *trial) bool {
		p := t.make(rules{failures: 2, probes: 1})
		settle, _ := p.permit()
		settle(failure)
		settle(failure)
		return p.state() == "closed"
	}},
	{"a delivery counts, and not after a change of state", func(t *trial) bool {
		return t.delivery(1) == "open" && t.delivery(3) == "half-open"
	}},
	{"a delivery in another process: a failure is one, good news is none", func(t *trial) bool {
		from, to := t.make(rules{failures: 3, probes: 1}), t.make(rules{failures: 3, probes: 1})
		here, ok := from.(restorer)
		if !ok {
			return false
		}
		ticket, _ := here.submitAndStore()
		there := to.(restorer)
		there.restored(ticket, failure)
		one := there.count()
		there.restored(ticket, success)
		there.restored(ticket, answered)
		return one == 1 && there.count() == 1
	}},

	// Open times.
	{"open times grow, capped, and a success resets them", func(t *trial) bool {
		p := t.make(rules{failures: 1, probes: 1, openMax: 4 * openTime})
		var spans []time.Duration
		now(p, failure)
		for range 4 {
			spans = append(spans, until(p, failure))
		}
		until(p, success)
		now(p, success)
		now(p, failure)
		again := until(p, success)
		grew, capped := spans[2] > spans[0]*3/2, slices.Max(spans) < 5*openTime
		return grew && capped && again < spans[2]*3/4
	}},
	{"open times are jittered", func(t *trial) bool {
		spans := make([]time.Duration, 16)
		var all sync.WaitGroup
		for i := range spans {
			all.Go(func() {
				p := t.make(rules{failures: 1, probes: 1, openMax: 4 * openTime, jitter: true})
				now(p, failure)
				spans[i] = until(p, success)
			})
		}
		all.Wait()
		return slices.Max(spans)-slices.Min(spans) > openTime/4
	}},
	{"says when a probe can be made: open", func(t *trial) bool {
		p := t.make(rules{failures: 2, probes: 1})
		t.trip(p)
		f, ok := p.(forecaster)
		return ok && f.next() > 0 && f.next() <= openTime
	}},
	{"says when a probe can be made: all places taken", func(t *trial) bool {
		p := t.halfOpen(rules{})
		t.hold(p)
		f, ok := p.(forecaster)
		return ok && f.next() > 0 && f.next() <= lease
	}},
	{"who is told of a change may ask the breaker", func(t *trial) bool {
		asked := ""
		p := t.make(rules{failures: 2, probes: 1, onChange: func(p peer) { asked = p.state() }})
		t.trip(p)
		return asked == "open"
	}},
}

// now makes a call that ends at once.
func now(p peer, r result) (admitted bool) {
	return enter(p, func() result { return r })
}

// enter runs do in a goroutine of its own, for what ends panics and Goexits.
func enter(p peer, end func() result) (admitted bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		admitted = p.do(func() result {
			admitted = true
			return leave(end())
		})
	}()
	<-done
	return admitted
}

func leave(r result) result {
	switch r {
	case panics:
		panic("out")
	case goexits:
		runtime.Goexit()
	}
	return r
}

// hold begins a call that stays in flight until its function is called.
func (t *trial) hold(p peer) (admitted bool) {
	begun, end, ended := make(chan bool, 1), make(chan result), make(chan struct{})
	go func() {
		defer close(ended)
		ok := p.do(func() result { begun <- true; return <-end })
		if !ok {
			begun <- false
		}
	}()
	admitted = <-begun
	if admitted {
		t.held = append(t.held, func(r result) { end <- r; <-ended })
	}
	return admitted
}

func (t *trial) trip(p peer) {
	for range 2 {
		now(p, failure)
	}
}

// halfOpen makes a breaker of two failures and lets its open time pass.
func (t *trial) halfOpen(r rules) peer {
	r.failures, r.probes = 2, max(r.probes, 1)
	p := t.make(r)
	t.trip(p)
	time.Sleep(openTime + openTime/4)
	return p
}

// neutral: a probe that ends so leaves the breaker half-open, and the next one is
// admitted and decides.
func (t *trial) neutral(r result) bool {
	p := t.halfOpen(rules{})
	if !now(p, r) || p.state() != "half-open" {
		return false
	}
	return now(p, success) && p.state() == "closed"
}

// leavesAlone: between two failures it neither counts nor ends the row.
func (t *trial) leavesAlone(r result) bool {
	p := t.make(rules{failures: 3, probes: 1})
	now(p, failure)
	now(p, r)
	now(p, failure)
	if p.state() != "closed" {
		return false
	}
	now(p, failure)
	return p.state() == "open"
}

// late: a call from before the opening ends while a probe is in flight.
func (t *trial) late(r result) bool {
	p := t.make(rules{failures: 2, probes: 1})
	t.hold(p)
	t.trip(p)
	time.Sleep(openTime + openTime/4)
	t.hold(p)
	t.held[0](r)
	return p.state() == "half-open"
}

// delivery: a submission is settled, then so many other failures come, then its
// delivery says failure; two open the breaker.
func (t *trial) delivery(failures int) (state string) {
	p := t.make(rules{failures: 2, probes: 1})
	d, ok := p.(deliverer)
	if !ok {
		return "cannot"
	}
	deliver, _ := d.submit()
	for range failures {
		if settle, ok := p.permit(); ok {
			settle(failure)
		}
	}
	if failures > 1 {
		time.Sleep(openTime + openTime/4)
		p.permit() // a probe, in flight
	}
	deliver(failure)
	return p.state()
}

// until calls until it is admitted, with this result, and returns how long that
// took.
func until(p peer, r result) time.Duration {
	for began := time.Now(); ; time.Sleep(openTime / 30) {
		if now(p, r) {
			return time.Since(began)
		}
	}
}
