package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/settle-go/settle"
)

// maxLog is the size above which the write-ahead log is emptied to the file.
const maxLog = 64 << 20

// Prune removes ended jobs that are past their time, oldest end first, at the
// limit of bytes also before it, and empties the write-ahead log when a long reader has let it grow.
func (s *Store) Prune(ctx context.Context, k settle.Keep, limit int) (p settle.Pruned, err error) {
	k = k.WithDefaults()
	err = s.write(ctx, "prune", func(t *tx) error {
		p = settle.Pruned{}
		if err := t.forget(); err != nil {
			return err
		}
		for _, part := range []struct {
			where string
			until int64
			on    bool
		}{
			{`e.state = 3 and e.state <> 4 and e.at <= ?`, t.now - ceilMicro(k.Succeeded), true},
			{`e.state = 5 and e.state <> 4 and e.at <= ?`, t.now - ceilMicro(k.Cancelled), true},
			{`e.state = 4 and e.at <= ?`, t.now - ceilMicro(k.Dead), k.Dead > 0},
		} {
			if !part.on || p.Removed >= limit {
				continue
			}
			rows, err := t.prunable(part.where, part.until, limit-p.Removed)
			if err == nil {
				err = t.remove(rows)
			}
			if err != nil {
				return err
			}
			p.Removed += len(rows)
		}
		for over := true; over && p.Removed < limit; { // what ends needs room too
			var err error
			if over, err = t.crowded(); err != nil || !over {
				return err
			}
			n, err := t.makeRoom()
			if p.Removed += n; err != nil || n == 0 {
				return err
			}
		}
		p.More = p.Removed >= limit
		return nil
	})
	if err != nil {
		return p, err
	}
	p.Log, err = s.trimLog(ctx)
	return p, err
}

// forget removes what nobody will read any more: answers to tickets that no
// attempt holds, and what processes said of their nodes long ago.
func (t *tx) forget() error {
	var over []settle.ID
	err := t.query(`select ticket, wait from inbox left join live on live.n = inbox.n and state = 1`, func(r row) error {
		if w, err := readWait(r.blob(1)); err != nil || w.Ticket != idAt(r, 0) {
			over = append(over, idAt(r, 0))
		}
		return nil
	})
	for _, ticket := range over {
		if err == nil {
			_, err = t.exec(`delete from inbox where ticket = ?`, ticket[:])
		}
	}
	if err == nil {
		_, err = t.exec(`delete from node where until <= ?`, t.now)
	}
	return err
}

// prunable lists rows past their time whose queue does not keep them longer.
func (t *tx) prunable(where string, until int64, limit int) (rows []int64, err error) {
	kept, err := number(t, `select count(*) from queue where keep_until > ?`, t.now)
	if err != nil {
		return nil, err
	}
	query := `select e.n from ended e where ` + where + ` order by e.at limit ?`
	args := []any{until, limit}
	if kept > 0 { // only then the body is read
		query = `select e.n from ended e join body b using (n) join queue q on q.id = b.queue
			where ` + where + ` and q.keep_until <= ? order by e.at limit ?`
		args = []any{until, t.now, limit}
	}
	err = t.query(query, func(r row) error { rows = append(rows, r.int(0)); return nil }, args...)
	return rows, err
}

// remove deletes ended jobs with all that belongs to them and counts them.
func (t *tx) remove(rows []int64) error {
	const day = 24 * 60 * 60 * 1_000_000
	for _, n := range rows {
		_, err := t.exec(`insert into tally (queue, day, state, n) select b.queue, ?, e.state, 1 from ended e join body b using (n) where n = ?
			on conflict do update set n = n + 1`, t.now/day, n)
		for _, q := range []string{`delete from ended where n = ?`, `delete from attempt where n = ?`,
			`delete from step where n = ?`, `delete from inbox where n = ?`, `delete from body where n = ?`} {
			if err == nil {
				_, err = t.exec(q, n)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Remove removes ended jobs by id.
func (s *Store) Remove(ctx context.Context, ids []settle.ID) (removed int, err error) {
	err = s.write(ctx, "remove", func(t *tx) error {
		rows, seen := []int64(nil), map[int64]bool{0: true}
		for _, id := range ids {
			n, err := number(t, `select e.n from ended e join body b using (n) where b.id = ?`, id[:])
			if err != nil {
				return err
			}
			if !seen[n] {
				seen[n] = true
				rows = append(rows, n)
			}
		}
		removed = len(rows)
		return t.remove(rows)
	})
	return removed, err
}

// Ack marks dead jobs as seen.
func (s *Store) Ack(ctx context.Context, ids []settle.ID, acked bool) (changed int, err error) {
	err = s.write(ctx, "ack", func(t *tx) error {
		changed = 0
		for _, id := range ids {
			r, err := t.exec(`update ended set acked = ?1 where n = (select n from body where id = ?2) and state = 4 and acked <> ?1`, acked, id[:])
			if err != nil {
				return err
			}
			changed += r.changes
		}
		return nil
	})
	return changed, err
}

// Limits of emptying the log: for the readers under way to end, and for the
// writer's turn.
const (
	readersEnd = 5 * time.Second
	turnSoon   = time.Second
)

// trimLog empties a large write-ahead log into the file, and returns its size.
// Readers that always overlap would keep the log from ever beginning anew, so
// ours are held back meanwhile; writers only wait for the copying. Another
// program's reader can be in the way; then it is tried again later.
func (s *Store) trimLog(ctx context.Context) (int64, error) {
	if size := s.logSize(); size <= maxLog || s.user.busy() {
		return size, nil
	}
	resume := s.reads.pause(ctx, readersEnd)
	defer resume()
	soon, cancel := context.WithTimeout(ctx, turnSoon)
	defer cancel()
	err := s.w.alone(soon, func() error {
		return s.w.c.query(`pragma wal_checkpoint(truncate)`, func(row) error { return nil })
	})
	if busy(err) || soon.Err() != nil {
		err = nil
	}
	return s.logSize(), err
}

func (s *Store) logSize() int64 {
	info, err := os.Stat(s.path + "-wal")
	if errors.Is(err, os.ErrNotExist) || err != nil {
		return 0
	}
	return info.Size()
}
