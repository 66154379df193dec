package redisinbox

import (
	"slices"
	"time"
)

// Status is what a person should know of an inbox. Counts are of this process,
// since New.
type Status struct {
	Reading bool // all of it is being read
	// Version, Policy (maxmemory-policy) and AppendOnly ("yes", "no") are what
	// the servers say, of several the worst; "unknown" where they do not tell, ""
	// before they were asked.
	Version, Policy, AppendOnly string
	Warning                     string // what is wrong with these; "" = nothing

	Waiting, Progress int64 // answers and progress notes in the streams, when last looked

	Read       int64     // entries that came by themselves
	TakenOver  int64     // entries that somebody had held for too long
	Looked     int64     // entries that a last look, or one for orphans, has offered
	Removed    int64     // entries
	Unreadable int64     // entries without a ticket that can be read
	Poisoned   int64     // entries offered as such
	Strange    []Strange // the last 100 of the unreadable, newest last

	Connects     int64         // clients made
	Gaps         int64         // times that reading failed, or was held up, after it had worked
	LastError    string        // safe to show; "" = none
	LastErrorAge time.Duration // since then
}

// Status returns what is known at this moment. It asks nobody.
func (i *Inbox) Status() Status {
	now := time.Now()
	reading := i.sound(now, 0)
	b := &i.book
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counts
	st := Status{
		Reading: reading, Version: b.facts.version, Policy: b.facts.policy, AppendOnly: b.facts.appendOnly, Warning: b.facts.warning(),
		Read: c.read, TakenOver: c.taken, Looked: c.looked, Removed: c.removed, Unreadable: c.unreadable, Poisoned: c.poisoned,
		Strange: slices.Clone(b.strange), Connects: c.connects, Gaps: c.gaps, LastError: b.lastErr,
	}
	for key, n := range b.length {
		if isProgress(key) {
			st.Progress += n
		} else {
			st.Waiting += n
		}
	}
	if !b.lastAt.IsZero() {
		st.LastErrorAge = now.Sub(b.lastAt)
	}
	return st
}
