// Package turn decides whose turn it is: lanes that may have work take turns,
// so that no tenant waits behind another's flood. A ring is a hint, never a
// truth: one that is empty or wrong makes claims slower or less even, and what
// it does not know is still served by age. It is pure and not safe for
// concurrent use.
package turn

// Ring holds lanes in the order of their turns, each at most once. Lanes enter
// at the back, by a nudge or by discovery, and leave when they give less than
// their share.
type Ring[L comparable] struct {
	order []L         // a circular buffer of the capacity
	first int         // place of the lane whose turn it is
	n     int         // lanes in order
	in    map[L]place // those, and the lanes that are being asked
}

// place is where a lane of the ring is.
type place byte

const (
	waiting place = 1 + iota // in order
	asked                    // between Next and Learn
	nudged                   // asked, and something came since
)

// New returns an empty ring of at most size lanes, at least one.
func New[L comparable](size int) *Ring[L] {
	return &Ring[L]{order: make([]L, max(size, 1)), in: map[L]place{}}
}

// Len is how many lanes are in the ring, those that are being asked included.
func (r *Ring[L]) Len() int { return len(r.in) }

// Add puts a lane that may have work at the back. It reports false when the
// lane is in the ring already, or the ring is full: discovery comes by again.
func (r *Ring[L]) Add(lane L) bool {
	at := r.in[lane]
	if at == asked {
		r.in[lane] = nudged
	}
	if at != 0 || len(r.in) == len(r.order) {
		return false
	}
	r.push(lane)
	return true
}

// Next returns the lanes to claim n jobs from, at most limit of them, in order,
// and how many jobs each may give: with fewer lanes than jobs an even split,
// whose rest is the caller's to fill by age. Every Next wants its Learn.
func (r *Ring[L]) Next(n, limit int) (lanes []L, share int) {
	k := min(n, limit, r.n)
	if k < 1 {
		return nil, 0
	}
	lanes = make([]L, k)
	for i := range lanes {
		lanes[i] = r.order[r.first]
		r.in[lanes[i]] = asked
		r.first = (r.first + 1) % len(r.order)
		r.n--
	}
	return lanes, n / k
}

// Learn takes the answer to a claim: gave says how many jobs each lane brought.
// A lane that was asked goes to the back. One that gave less than its share has
// no more that is due: it leaves until it is nudged or discovered again. A lane
// that was not asked and yet gave, because it was the oldest, enters. A claim
// that failed teaches nothing: its share is 0.
func (r *Ring[L]) Learn(lanes []L, share int, gave map[L]int) {
	for _, lane := range lanes {
		if r.in[lane] == nudged || gave[lane] >= share {
			r.push(lane)
		} else {
			delete(r.in, lane)
			delete(gave, lane)
		}
	}
	for lane := range gave {
		r.Add(lane)
	}
}

func (r *Ring[L]) push(lane L) {
	r.order[(r.first+r.n)%len(r.order)] = lane
	r.n++
	r.in[lane] = waiting
}
