package sim

import "github.com/settle-go/settle"

// Faults that the simulation has found and that are not mended yet: what it does
// not insist on meanwhile. A fault that is mended is set to false and its place
// taken out.
const (
	// A small jump back lifts the guard of a large jump forward.
	knownSmallJumpBack = false
	// Filter.Unacked with live states alone is a syntax error.
	knownUnackedLive = false
	// What was decided on a pending job holds after the job was cancelled and
	// redriven meanwhile: neither the attempt nor the state tells them apart.
	knownCancelAcrossRedrive = false
	// A progress note moves the ceiling of the wait by the time between look and
	// act.
	knownCeilingDrifts = false
)

// outlived tells a wish that knownCancelAcrossRedrive would carry out.
func (w *world) outlived(d deed) bool {
	j := w.m.find(d.t.Job, d.t.Fence.Handle)
	return knownCancelAcrossRedrive && j != nil && d.t.Fence.State == settle.Pending && j.Redrives != d.t.Redrives
}
