// Package jump tells when a store's clock and a process's own clock disagree
// about how much time has passed, and what a sweep must not do yet because of
// it. Source: promise P13. It is pure and not safe for concurrent use.
package jump

import "time"

const (
	// Slack is how far the two clocks may part between two looks: more is a jump.
	Slack = 5 * time.Second
	// Stand is how long, monotonically, a time that was jumped to must have
	// stood before anything expires or is removed by it.
	Stand = 10 * time.Minute
)

// Detector compares the store's clock with a monotonic one, look by look. The
// zero Detector has not looked yet.
type Detector struct {
	// Renew is how long living workers need to renew their leases.
	Renew time.Duration

	looked bool
	out    bool
	store  time.Time     // at the last look
	mono   time.Duration // at the last look
	lived  time.Duration // store time lived since the last jump
	leases time.Duration // monotonic time from which leases may be ended
	ends   time.Duration // … from which deadlines, waits and retention count
	ahead  time.Duration // before ends: how far the clock is ahead of the last trusted time
}

// May says what a sweep may do now.
type May struct {
	EndLeases bool // living workers had their chance to renew
	Expire    bool // deadlines, waits and retention: the time is trusted
	// Back is above zero when the clock has jumped back: rows that are due
	// within this time from now were due before, as far as this process knows.
	Back time.Duration
}

// Out notes that the store was out of reach: no worker could renew.
func (d *Detector) Out() { d.out = true }

// Steady says whether the clocks have gone alike since the last look, to which
// its answer then still applies. It is no look.
func (d *Detector) Steady(store time.Time, mono time.Duration) bool {
	drift := store.Sub(d.store) - (mono - d.mono)
	return d.looked && -Slack <= drift && drift <= Slack
}

// Look compares the clocks: store is the store's, mono the time that the
// process has counted since some moment of its own. The first look counts as a
// jump for leases.
func (d *Detector) Look(store time.Time, mono time.Duration) May {
	var back time.Duration
	if !d.looked {
		d.leases = mono + d.Renew
	} else {
		back = d.compare(store.Sub(d.store), mono-d.mono, mono)
	}
	if d.out {
		d.leases = mono + d.Renew
	}
	d.looked, d.out, d.store, d.mono = true, false, store, mono
	return May{EndLeases: mono >= d.leases, Expire: mono >= d.ends, Back: back}
}

// compare takes the time that passed by either clock; it returns by how much
// rows were stranded in the future.
func (d *Detector) compare(store, own, mono time.Duration) (back time.Duration) {
	drift := store - own
	if mono >= d.ends {
		d.ahead = 0 // the time was trusted until now
	}
	d.ahead += drift
	switch {
	case drift > Slack:
		d.leases, d.ends = mono+d.Renew, mono+Stand
		d.lived = 0
	case drift < -Slack:
		back = min(-drift, d.lived+own)
		d.leases = mono + d.Renew
		d.lived = 0
	default:
		d.lived += max(store, 0)
	}
	if d.ahead <= Slack {
		d.ends = min(d.ends, mono) // put right: it is not ahead any more
	}
	return back
}
