package remote

import (
	"sync"
	"time"
)

// ratio bounds how many submissions repeat a failed one, as a share of the first
// ones. It begins full, and fills a little by time, so that a pool with little
// traffic can repeat too.
type ratio struct {
	share float64
	now   func() time.Time

	mu   sync.Mutex
	left float64
	at   time.Time
}

const (
	ratioFull   = 10.0 // repeats that pass at once
	ratioSecond = 1.0  // repeats that time allows each second
)

func newRatio(share float64) *ratio {
	return &ratio{share: share, now: time.Now, left: ratioFull, at: time.Now()}
}

// first notes a submission that repeats nothing.
func (r *ratio) first() { r.add(r.share, false) }

// repeat reports whether one that does may be made now.
func (r *ratio) repeat() bool { return r.add(0, true) }

func (r *ratio) add(share float64, take bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	most := max(ratioFull, 100*r.share) // what a busy pool may save up
	r.left = min(r.left+share+max(now.Sub(r.at).Seconds(), 0)*ratioSecond, most)
	r.at = now
	if !take {
		return true
	}
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}
