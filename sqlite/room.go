package sqlite

import (
	"fmt"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

// rowBytes is what a job takes beside its input, roughly.
const rowBytes = 400

// room decides whether new jobs fit. Only inserts ask: what drains the store
// always has the reserve.
type room struct {
	mu      sync.Mutex
	jobs    int       // live jobs at the last look, at most, and this process's since
	exact   bool      // they were counted, not only bounded
	counted time.Time // zero = never
	cost    time.Duration
	looked  time.Time // when the volume was looked at
	free    int64     // what it had free then, less what was granted since
	keep    int64     // what must stay free
	drained time.Time // when ended jobs were last asked to make room
}

// check refuses jobs that do not fit, before anything of them is written.
func (r *room) check(t *tx, jobs int, bytes int64) error {
	if err := r.checkJobs(t, jobs); err != nil {
		return err
	}
	return r.checkSpace(t, bytes)
}

// checkJobs holds the number of live jobs to the limit. A bound is enough while
// it is below the limit. Counting costs, and everybody waits for it: a count is
// kept for 20 times what it cost, and this process's own jobs are added
// meanwhile. Other processes may exceed the limit by what they bring in that
// time.
func (r *room) checkJobs(t *tx, jobs int) error {
	limit := t.s.cfg.MaxJobs
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := time.Since(r.counted); r.counted.IsZero() || age > max(time.Second, 20*r.cost) {
		// Rows that have ended leave gaps between the first number and the last.
		if err := r.learn(t, `select coalesce((select max(n) from live) - (select min(n) from live) + 1, 0)`, false); err != nil {
			return err
		}
	}
	if !r.exact && r.jobs+t.jobs+jobs > limit {
		if err := r.learn(t, `select count(*) from live`, true); err != nil {
			return err
		}
	}
	if have := r.jobs + t.jobs; have+jobs > limit {
		return fmt.Errorf("%w: %d live jobs, the limit is %d; wait until some have ended, or raise the limit", settle.ErrFull, have, limit)
	}
	return nil
}

func (r *room) learn(t *tx, query string, exact bool) error {
	began := time.Now()
	n, err := number(t, query)
	if err != nil {
		return err
	}
	r.jobs, r.exact, r.counted, r.cost = int(n)-t.jobs, exact, time.Now(), time.Since(began)
	return nil
}

// added keeps the count, once a transaction is committed.
func (r *room) added(n int) {
	r.mu.Lock()
	r.jobs += n
	r.mu.Unlock()
}
