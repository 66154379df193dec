package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// maxHold is the longest hold.
const maxHold = 30 * 24 * time.Hour

// Hold keeps a lane or a queue from being claimed until a time that passes.
func (s *Store) Hold(ctx context.Context, h settle.Hold) error {
	if h.For <= 0 || h.For > maxHold {
		return &settle.InvalidError{Field: "hold", Problem: fmt.Sprintf("for %s: want more than 0, at most %s", h.For, maxHold)}
	}
	if h.Whole {
		h.Tenant = ""
	}
	return s.write(ctx, "hold", func(t *tx) error {
		queue, err := t.queue(h.Queue)
		if err != nil {
			return err
		}
		_, err = t.exec(`insert into hold (queue, whole, tenant, lane, began, until, tries, reason, error) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
			on conflict do update set began = iif(until > excluded.began, began, excluded.began), until = excluded.until, tries = excluded.tries, reason = excluded.reason, error = excluded.error`,
			queue, h.Whole, h.Tenant, laneOf(queue, h.Tenant), t.now, t.now+ceilMicro(h.For), h.Tries, h.Reason, h.Text)
		return err
	})
}

// Release removes a hold.
func (s *Store) Release(ctx context.Context, queue, tenant string, whole bool) (was bool, err error) {
	if whole {
		tenant = ""
	}
	err = s.write(ctx, "release", func(t *tx) error {
		id, err := s.queueID(t, queue)
		if err != nil {
			return err
		}
		live, err := number(t, `select 1 from hold where queue = ? and whole = ? and tenant = ? and until > ?`, id, whole, tenant, t.now)
		if err != nil {
			return err
		}
		was = live == 1
		_, err = t.exec(`delete from hold where queue = ? and whole = ? and tenant = ?`, id, whole, tenant)
		t.nudge.lane(queue, laneOf(id, tenant))
		return err
	})
	return was, err
}

// Holds lists the holds that have not passed.
func (s *Store) Holds(ctx context.Context) (out []settle.Hold, err error) {
	err = s.read(ctx, "holds", func(c conn, now int64) error {
		out = nil
		return c.query(`select queue, whole, tenant, began, until, tries, reason, error from hold where until > ? order by queue, whole desc, tenant`,
			func(r row) error {
				name, err := s.queueName(c, r.int(0))
				out = append(out, settle.Hold{Queue: name, Whole: r.int(1) == 1, Tenant: r.text(2),
					Began: fromMicro(r.int(3)), Until: fromMicro(r.int(4)), For: micro(r.int(4) - now),
					Tries: int(r.int(5)), Reason: r.text(6), Text: r.text(7)})
				return err
			}, now)
	})
	return out, err
}

// Note reads what a program keeps about a queue.
func (s *Store) Note(ctx context.Context, queue string) (n settle.Note, err error) {
	n.Queue = queue
	err = s.read(ctx, "note", func(c conn, now int64) error {
		_, err := one(c, `select note, keep_until from queue where name = ?`, func(r row) error {
			n.Text = r.blob(0)
			n.Keep = max(0, micro(r.int(1)-now))
			return nil
		}, queue)
		return err
	})
	return n, err
}

// SetNote stores what a program keeps about a queue.
func (s *Store) SetNote(ctx context.Context, n settle.Note) error {
	if n.Keep < 0 || n.Keep > settle.MaxAhead || len(n.Text) > settle.MaxPayload {
		return &settle.InvalidError{Field: "note", Problem: fmt.Sprintf("of %d bytes kept for %s: want at most %d and 0 to %s",
			len(n.Text), n.Keep, settle.MaxPayload, settle.MaxAhead)}
	}
	return s.write(ctx, "note", func(t *tx) error {
		id, err := t.queue(n.Queue)
		if err != nil {
			return err
		}
		_, err = t.exec(`update queue set note = ?, keep_until = ? where id = ?`, n.Text, t.now+ceilMicro(n.Keep), id)
		return err
	})
}
