package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// How long the writer gathers and works before it commits, and when it lets
// others in.
const (
	batchWork  = 5 * time.Millisecond   // work in one transaction, then commit
	yieldAfter = 50 * time.Millisecond  // of back-to-back commits …
	yieldFor   = time.Millisecond       // … other processes get the file
	idleGap    = time.Millisecond       // a pause that lets others in by itself
	gatherMost = 1000                   // calls; more bring nothing
	slowYield  = 500 * time.Microsecond // then the processors are busy with something else
	busyRetry  = 500 * time.Microsecond // between tries for the file's lock
	busyLimit  = 20 * time.Second       // then the file counts as locked for good
	turnLimit  = 30 * time.Second       // wait for our own turn
)

// writer commits the concurrent calls of this process together, without a
// timer and without a goroutine of its own: whoever gets the turn runs all
// calls that have gathered in one transaction and answers them. What gathers
// while a commit is on its way to the disk is the next transaction.
type writer struct {
	s      *Store
	c      direct
	turn   chan struct{} // one token: who has it may use c
	gone   chan struct{} // closed when the store is
	mu     sync.Mutex
	todo   []*call
	busy   time.Time   // since when commits follow each other without a pause
	last   time.Time   // end of the last commit
	look   time.Time   // when the log was looked at
	hurry  time.Time   // until then gather does not yield
	bigLog atomic.Bool // a reader should have the log emptied
}

// tx is one transaction under way, on our connection or the caller's.
type tx struct {
	conn
	s      *Store
	now    int64    // µs; one reading a transaction
	writes int      // rows changed so far
	jobs   int      // live jobs that it adds so far; negative = takes away
	broken error    // the caller's transaction is lost
	after  []func() // once it is committed
	nudge  hints    // told once it is committed
}

func (t *tx) exec(query string, args ...any) (result, error) {
	r, err := t.conn.exec(query, args...)
	t.writes += r.changes
	return r, err
}

// lead runs what has gathered, until the leader's own call is among it, and
// passes the turn on.
func (w *writer) lead(own *call) {
	defer func() { <-w.turn }()
	for {
		select {
		case a := <-own.done:
			own.done <- a
			return
		default:
		}
		if rest := w.commit(w.gather()); len(rest) > 0 {
			w.mu.Lock()
			w.todo = append(rest, w.todo...)
			w.mu.Unlock()
		}
	}
}

// gather takes all calls that wait, after letting those who are about to call
// do so: a transaction costs as much as several calls, and on a busy machine
// the callers answered last are just on their way back. Where nobody else has
// work to do a yield takes no time; where others compute at length it is not
// worth its wait, and is left out for a while.
func (w *writer) gather() (batch []*call) {
	for before := -1; ; {
		w.mu.Lock()
		n := len(w.todo)
		enough := n == before || n >= gatherMost || time.Now().Before(w.hurry)
		if enough {
			batch, w.todo = w.todo, nil
		}
		w.mu.Unlock()
		if enough {
			return batch
		}
		before = n
		began := time.Now()
		runtime.Gosched()
		if took := time.Since(began); took > slowYield {
			w.hurry = time.Now().Add(20 * took)
		}
	}
}

// commit runs calls in one transaction and answers them; it returns those that
// did not fit. If the transaction as a whole fails, each call is tried alone,
// so that nobody pays for a neighbour.
func (w *writer) commit(batch []*call) (rest []*call) {
	w.yield()
	n, err := w.attempt(batch)
	switch {
	case err == nil:
	case n == 1:
		batch[0].answer(err)
	default:
		for _, c := range batch[:n] {
			if _, err := w.attempt([]*call{c}); err != nil {
				c.answer(err)
			}
		}
	}
	w.last = time.Now()
	w.watchLog()
	return batch[n:]
}

// logLook is how often the size of the write-ahead log is looked at.
const logLook = 100 * time.Millisecond

// watchLog asks the next reader to have a large log emptied: it is readers that
// let it grow.
func (w *writer) watchLog() {
	if w.last.Sub(w.look) > logLook {
		w.look = w.last
		w.bigLog.Store(w.s.logSize() > maxLog)
	}
}

// attempt is one transaction over the first n calls. On success they have been
// answered; on error none has, and nothing was changed.
func (w *writer) attempt(batch []*call) (n int, err error) {
	if err := w.begin(); err != nil {
		for _, c := range batch {
			c.answer(err)
		}
		return len(batch), nil
	}
	t := &tx{conn: w.c, s: w.s, now: w.s.now()}
	answers := make([]error, 0, len(batch))
	began := time.Now()
	for _, c := range batch {
		n++
		before, hooks := t.writes, len(t.after)
		err := c.try(t)
		if err != nil && (t.writes > before || w.c.c.AutocommitEnabled()) {
			return n, errors.Join(err, w.rollback())
		}
		if err != nil {
			t.after = t.after[:hooks]
		}
		if answers = append(answers, err); time.Since(began) > batchWork {
			break
		}
	}
	if _, err := w.c.exec("commit"); err != nil {
		return n, errors.Join(w.s.translate(err), w.rollback())
	}
	defer func() { // also if a hook panics
		for i, err := range answers {
			batch[i].answer(err)
		}
	}()
	t.committed()
	return n, nil
}

// committed runs what had to wait for the commit.
func (t *tx) committed() {
	t.s.room.added(t.jobs)
	for _, f := range t.after {
		f()
	}
	t.s.tell(&t.nudge)
}

// begin takes the file's lock. Other processes are waited for, in short steps
// of our own: SQLite's grow to 100 ms and starve.
func (w *writer) begin() error {
	for waited := time.Duration(0); ; waited += busyRetry {
		_, err := w.c.exec("begin immediate")
		if err == nil {
			return nil
		}
		if !w.c.c.AutocommitEnabled() { // a transaction was left open: never keep it
			err = errors.Join(err, w.rollback())
		}
		if code := zs.ErrCode(err).ToPrimary(); code != zs.ResultBusy && code != zs.ResultLocked {
			return w.s.translate(err)
		}
		if waited > busyLimit {
			return fmt.Errorf("another process has locked the database for %s: %w", busyLimit, err)
		}
		time.Sleep(busyRetry)
	}
}

// patiently tries again what others are in the way of. It does so by itself and
// in short steps: processes that open a new file at the same moment hold what
// the others wait for until they let go of it and begin anew.
func patiently(fn func() error) error {
	for began := time.Now(); ; time.Sleep(busyRetry + rand.N(20*busyRetry)) {
		if err := fn(); !busy(err) || time.Since(began) > busyLimit {
			return err
		}
	}
}

func (w *writer) rollback() error {
	if w.c.c.AutocommitEnabled() {
		return nil
	}
	_, err := w.c.exec("rollback")
	return err
}

// yield lets other processes have the file now and then: without a pause, one
// process that commits back to back would keep it for ever.
func (w *writer) yield() {
	now := time.Now()
	if now.Sub(w.last) > idleGap {
		w.busy = now
	} else if now.Sub(w.busy) > yieldAfter {
		time.Sleep(yieldFor)
		w.busy = time.Now()
	}
}

// alone runs fn while this process has the turn and nothing is under way.
func (w *writer) alone(ctx context.Context, fn func() error) error {
	limit := time.NewTimer(turnLimit)
	defer limit.Stop()
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		return fn()
	case <-w.gone:
		return settle.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return held()
	}
}

// write runs fn in a shared transaction, if the store is open.
func (s *Store) write(ctx context.Context, what string, fn func(*tx) error) error {
	if err := s.w.do(ctx, fn); err != nil {
		return fmt.Errorf("%s: %w", what, s.translate(err))
	}
	return nil
}
