package worker

import "sync"

// quota counts the attempts that Config.Limit allows.
type quota struct {
	onSpent func()

	mu      sync.Mutex
	bounded bool
	left    int
	lent    int // taken for claims whose reply is open
}

// take reserves up to n attempts for a claim.
func (q *quota) take(n int) int {
	if !q.bounded {
		return n
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, q.left)
	q.left -= n
	q.lent += n
	return n
}

// giveBack ends a reservation of which unused were not needed.
func (q *quota) giveBack(taken, unused int) {
	if !q.bounded || taken == 0 {
		return
	}
	q.mu.Lock()
	q.lent -= taken
	q.left += unused
	spent := q.left == 0 && q.lent == 0
	q.mu.Unlock()
	if spent {
		q.onSpent()
	}
}
