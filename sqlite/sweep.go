package sqlite

import (
	"context"
	"time"

	"github.com/settle-go/settle"
)

// Overdue lists live jobs whose alarm has passed, by (alarm, row).
func (s *Store) Overdue(ctx context.Context, after settle.Cursor, limit int) (out settle.Overdue, err error) {
	err = s.read(ctx, "overdue", func(c conn, now int64) error {
		out = settle.Overdue{Now: fromMicro(now)}
		last := settle.Cursor{}
		err := c.query(selectLive+` where (l.alarm, l.n) > (?, ?) and l.alarm <= ? order by l.alarm, l.n limit ?`,
			func(r row) error {
				j, err := s.liveJob(c, r, now)
				out.Jobs = append(out.Jobs, j)
				last = settle.Cursor{At: j.Fence.Seen, Row: j.Fence.Handle}
				return err
			}, after.At, after.Row, now, limit)
		if len(out.Jobs) == limit {
			out.Next = last
		}
		return err
	})
	return out, err
}

// Pull makes due what a clock that jumped back has stranded, and cuts leases
// that reach too far.
func (s *Store) Pull(ctx context.Context, within, lease time.Duration, limit int) (moved int, err error) {
	err = s.write(ctx, "pull", func(t *tx) error {
		r, err := t.exec(`update live set due = ?1, ord = ?1 where n in (
			select n from live where state = 0 and due > ?1 and due <= ?2 limit ?3)`,
			t.now, t.now+ceilMicro(within), limit)
		if err != nil {
			return err
		}
		moved = r.changes
		far := t.now + ceilMicro(lease)
		r, err = t.exec(`update live set alarm = min(?1, deadline) where n in (
			select n from live where state = 1 and alarm > ?1 limit ?2)`, far, limit-moved)
		moved += r.changes
		t.nudge.anywhere()
		return err
	})
	return moved, err
}
