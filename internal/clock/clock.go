// Package clock lets tests of this module move a store's clock. Programs
// outside the module cannot name its type, so a store's clock is theirs to
// read, never to set.
package clock

import "time"

// Source is where a store takes the time from. The zero Source is the system.
type Source struct{ now func() time.Time }

// From returns a Source that asks now.
func From(now func() time.Time) Source { return Source{now} }

// Now reads the clock, in UTC, without a monotonic part.
func (s Source) Now() time.Time {
	if s.now == nil {
		return time.Now().UTC().Round(0)
	}
	return s.now().UTC().Round(0)
}
