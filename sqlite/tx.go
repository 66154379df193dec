package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	modernc "modernc.org/sqlite" // shares its copy of SQLite with our direct driver

	"github.com/settle-go/settle"
)

// userDB is the connection on which callers' transactions run.
type userDB struct {
	mu sync.Mutex
	db *sql.DB
	tx *sql.Tx // the one under way
	t  *tx
}

// InTx runs fn in a transaction of the caller's on this database, and commits
// it if fn returns nil. It takes the writer's turn: other calls of this store
// wait, and calling them inside fn waits in vain (it ends with an error).
// Inside fn use [Store.EnqueueTx] and [Store.CompleteTx], and the caller's own
// tables. Keep it short.
//
// Only such a transaction can carry jobs: one of another connection would be a
// second writer, and one of another SQLite library in the same process would
// drop the file's locks and damage it.
func (s *Store) InTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if s.closed.Load() {
		return fmt.Errorf("transaction: %w", settle.ErrClosed)
	}
	err := s.w.alone(ctx, func() error { return s.inTx(ctx, fn) })
	if err != nil {
		return fmt.Errorf("transaction: %w", s.translate(err))
	}
	return nil
}

func (s *Store) inTx(ctx context.Context, fn func(tx *sql.Tx) error) (err error) {
	begun, err := s.user.begin(ctx, s)
	if err != nil {
		return err
	}
	t := &tx{conn: foreign{ctx, begun}, s: s, now: s.now()}
	s.user.set(begun, t)
	done := false
	defer func() {
		s.user.set(nil, nil)
		if !done { // fn failed, panicked or ended its goroutine
			if back := begun.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
				err = errors.Join(err, back)
			}
		}
	}()
	if err := fn(begun); err != nil {
		return err
	}
	if err := t.lost(foreign{context.WithoutCancel(ctx), begun}); err != nil {
		return err
	}
	if err := begun.Commit(); err != nil {
		return err
	}
	done = true
	t.committed()
	return nil
}

// EnqueueTx stores jobs in the caller's transaction: they exist if it commits.
// tx must be the one that InTx gave.
func (s *Store) EnqueueTx(ctx context.Context, tx *sql.Tx, jobs ...settle.New) ([]settle.Inserted, error) {
	t, err := s.user.current(tx)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("enqueue: %w", context.Cause(ctx))
	}
	checked, err := s.check(jobs)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	var out []settle.Inserted
	err = t.whole(func() (err error) {
		out, err = t.insert(checked)
		for full := (*noSpace)(nil); errors.As(err, &full); {
			if removed, more := t.makeRoom(); more != nil || removed == 0 {
				break
			}
			out, err = t.insert(checked)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", s.translate(err))
	}
	return out, nil
}

// whole undoes what fn has written if it ends with an error, so that a caller
// who commits all the same commits no half of it. If that is impossible (a full
// disk can end the transaction by itself) nothing more may be written.
func (t *tx) whole(fn func() error) error {
	f := t.conn.(foreign)
	c := foreign{context.WithoutCancel(f.ctx), f.tx}
	if err := t.lost(c); err != nil {
		return err
	}
	if _, err := c.exec("savepoint settle_part"); err != nil {
		return err
	}
	jobs, hooks := t.jobs, len(t.after)
	err := fn()
	if err != nil {
		t.jobs, t.after = jobs, t.after[:hooks]
		_, t.broken = c.exec("rollback to settle_part")
	}
	if t.broken == nil {
		_, t.broken = c.exec("release settle_part")
	}
	if t.broken != nil {
		t.broken = fmt.Errorf("the transaction was rolled back by an earlier error: %w", errors.Join(err, t.broken))
		return t.broken
	}
	return err
}

// JobsTx lists one page of jobs as the caller's transaction sees them, its own
// enqueues included.
func (s *Store) JobsTx(ctx context.Context, tx *sql.Tx, f settle.Filter) (jobs []settle.Job, next settle.Cursor, err error) {
	t, err := s.user.current(tx)
	if err == nil {
		jobs, next, err = s.list(t, f, t.now)
	}
	if err != nil {
		return nil, next, fmt.Errorf("list jobs: %w", s.translate(err))
	}
	return jobs, next, ctx.Err()
}

// lost finds out whether SQLite has ended the transaction by itself: a statement
// that is interrupted does that, and what follows would be committed alone.
// Only then can one be begun.
func (t *tx) lost(c foreign) error {
	if t.broken != nil {
		return t.broken
	}
	if _, err := c.exec("begin"); err == nil {
		_, err = c.exec("rollback")
		t.broken = errors.Join(errors.New("the transaction was rolled back when one of its statements was interrupted: return such an error from InTx"), err)
	}
	return t.broken
}

// CompleteTx ends a job as succeeded in the caller's transaction: the effect
// and the end commit together. job is the one that the handler got; out is
// encoded as its output (raw bytes are taken as they are). If the attempt no
// longer holds the job, it returns a [settle.StaleError]: return it from InTx,
// so that the effect is undone. The handler then returns as usual.
func (s *Store) CompleteTx(ctx context.Context, tx *sql.Tx, job settle.ClaimedJob, out any) error {
	t, err := s.user.current(tx)
	if err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("complete: %w", context.Cause(ctx))
	}
	raw, ok := out.([]byte)
	if !ok {
		if raw, err = json.Marshal(out); err != nil {
			return &settle.InvalidError{Field: "output", Problem: err.Error()}
		}
	}
	if len(raw) > settle.MaxPayload {
		return &settle.InvalidError{Field: "output", Problem: fmt.Sprintf("is %d bytes, the limit is %d", len(raw), settle.MaxPayload)}
	}
	m := settle.Decide(job.Snapshot, settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: raw}}, job.Policy, 0)
	m.Fence.Handle = job.Handle
	var said settle.Applied
	err = t.whole(func() (err error) {
		said, err = t.apply(&m)
		return err
	})
	if err != nil {
		return fmt.Errorf("complete: %w", s.translate(err))
	}
	if said == settle.Done || said == settle.Already {
		return nil
	}
	stale := &settle.StaleError{Job: job.ID, Attempt: job.Attempt}
	if in, err := t.existing(job.ID); err == nil {
		stale.State = in.State
	}
	return stale
}

// current finds our side of the caller's transaction.
func (u *userDB) current(tx *sql.Tx) (*tx, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if tx == nil || u.tx != tx {
		return nil, &settle.InvalidError{Field: "transaction", Problem: "was not opened by InTx of this store, or is over; " +
			"a transaction of another connection or SQLite library on this file could damage it: use store.InTx(ctx, func(tx *sql.Tx) error { … })"}
	}
	return u.t, nil
}

// busy: the caller's transaction has the turn, and may be the one that asks.
func (u *userDB) busy() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tx != nil
}

func (u *userDB) set(begun *sql.Tx, t *tx) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tx, u.t = begun, t
}

// begin opens the caller's transaction. Other processes are waited for like in
// [writer.begin]. It does not end with ctx: the driver would then roll back
// while fn believes that it is inside. Statements still see ctx.
func (u *userDB) begin(ctx context.Context, s *Store) (*sql.Tx, error) {
	db, err := u.open(s)
	if err != nil {
		return nil, err
	}
	for waited := time.Duration(0); ; waited += busyRetry {
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		switch {
		case !busy(err):
			return tx, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case waited > busyLimit:
			return nil, fmt.Errorf("another process has locked the database for %s: %w", busyLimit, err)
		}
		time.Sleep(busyRetry)
	}
}

// privateDriver is ours alone: programs register what they like under "sqlite".
var privateDriver modernc.Driver

func (u *userDB) open(s *Store) (*sql.DB, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.db != nil {
		return u.db, nil
	}
	level := "full"
	if s.cfg.Synchronous == Normal {
		level = "normal"
	}
	c := connector{fileURI(s.path) + "?_txlock=immediate&_pragma=busy_timeout(0)&_pragma=foreign_keys(1)&_pragma=synchronous(" + level + ")"}
	u.db = sql.OpenDB(c)
	u.db.SetMaxOpenConns(1)
	return u.db, nil
}

func (u *userDB) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.db == nil {
		return nil
	}
	return u.db.Close()
}
