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
	jobs    int       // live jobs at the last count, and this process's since
	counted time.Time // zero = never
	cost    time.Duration
	looked  time.Time // when the volume was looked at
	free    int64     // what it had free then, less what was granted since
	keep    int64     // what must stay free
}

// check refuses jobs that do not fit, before anything of them is written.
func (r *room) check(t *tx, jobs int, bytes int64) error {
	if err := r.checkJobs(t, jobs); err != nil {
		return err
	}
	if err := r.checkBytes(t, bytes); err != nil {
		return err
	}
	return r.checkDisk(t.s, bytes)
}

// checkJobs holds the number of live jobs to the limit. Counting costs, so the
// count is kept for 20 times what it cost, and this process's own jobs are
// added meanwhile: other processes may exceed the limit by what they bring in
// that time.
func (r *room) checkJobs(t *tx, jobs int) error {
	limit := t.s.cfg.MaxJobs
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := time.Since(r.counted); r.counted.IsZero() || age > max(time.Second, 20*r.cost) {
		began := time.Now()
		n, err := number(t, `select count(*) from live`)
		if err != nil {
			return err
		}
		r.jobs, r.counted, r.cost = int(n)-t.jobs, time.Now(), time.Since(began)
	}
	if have := r.jobs + t.jobs; have+jobs > limit {
		return fmt.Errorf("%w: %d live jobs, the limit is %d; wait until some have ended, or raise the limit", settle.ErrFull, have, limit)
	}
	return nil
}

// added keeps the count: the transaction's own, and ours once it is committed.
func (r *room) added(t *tx, n int) {
	t.jobs += n
	t.after = append(t.after, func() {
		r.mu.Lock()
		r.jobs += n
		r.mu.Unlock()
	})
}

// noBytes says that the file is at its limit of bytes: an ErrFull that removing
// ended jobs may cure.
type noBytes struct{ used, limit int64 }

func (e *noBytes) Error() string {
	return fmt.Sprintf("%v: %d bytes in use, the limit for new jobs is %d; wait until some have ended, remove dead ones (settle dead drop), or raise the limit",
		settle.ErrFull, e.used, e.limit)
}

// Unwrap makes it an ErrFull.
func (e *noBytes) Unwrap() error { return settle.ErrFull }

// checkBytes holds the file to MaxBytes less the reserve.
func (r *room) checkBytes(t *tx, bytes int64) error {
	limit := t.s.cfg.forNew()
	if limit == 0 {
		return nil
	}
	if used, err := t.used(); err != nil || used+bytes <= limit {
		return err
	} else {
		return &noBytes{used, limit}
	}
}

// forNew is how many bytes new jobs may fill; 0 = no bound.
func (c Config) forNew() int64 { return c.MaxBytes - min(c.MaxBytes/10, 64<<20) }

// overBytes: what has ended fills the reserve.
func (t *tx) overBytes() (bool, error) {
	limit := t.s.cfg.forNew()
	if limit == 0 {
		return false, nil
	}
	used, err := t.used()
	return used > limit, err
}

// makeRoom removes succeeded and cancelled jobs before their time, oldest end
// first, counted; dead ones and those of an unfinished run never.
func (t *tx) makeRoom() (removed int, err error) {
	const step = 500
	rows, err := t.prunable(`e.state <> 4 and e.at <= ?`, t.now, step)
	if err != nil {
		return 0, err
	}
	return len(rows), t.remove(rows)
}

// used is how many bytes of the file hold data.
func (t *tx) used() (int64, error) {
	pages, err := number(t, `pragma page_count`)
	if err != nil {
		return 0, err
	}
	free, err := number(t, `pragma freelist_count`)
	if err != nil {
		return 0, err
	}
	size, err := number(t, `pragma page_size`)
	return (pages - free) * size, err
}

// checkDisk keeps a part of the volume free, after these bytes have been written
// twice: to the log, and to the file. It looks once a second and counts what it
// has granted meanwhile.
func (r *room) checkDisk(s *Store, bytes int64) error {
	if s.cfg.KeepFree < 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) > time.Second {
		total, free, err := volume(s.path)
		if err != nil || total == 0 {
			return nil // the volume does not say: SQLite's own "full" remains
		}
		keep := s.cfg.KeepFree
		if keep == 0 {
			keep = min(total/10, 2<<30)
		}
		r.looked, r.free, r.keep = time.Now(), free, keep
	}
	if r.free-2*bytes < r.keep {
		return fmt.Errorf("%w: %d MiB free on the volume of %s, %d MiB are kept for draining; free some space", settle.ErrFull, r.free>>20, s.path, r.keep>>20)
	}
	r.free -= 2 * bytes
	return nil
}
