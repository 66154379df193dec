package sqlite

import (
	"context"
	"time"

	"github.com/settle-go/settle"
)

// Renew extends the leases of running attempts, in one transaction. What is no
// longer held is returned and left alone.
func (s *Store) Renew(ctx context.Context, worker int64, held []settle.Held, lease time.Duration) (lost []settle.ID, err error) {
	if len(held) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "renew", func(t *tx) error {
		lost = nil
		until := t.now + ceilMicro(lease)
		for _, h := range held {
			n, err := t.row(h.Job, h.Handle)
			if err != nil {
				return err
			}
			r, err := t.exec(`update live set alarm = min(?, deadline)
				where n = ? and state = 1 and attempt = ? and worker = ? and deadline > ?`, until, n, h.Attempt, worker, t.now)
			if err != nil {
				return err
			}
			if r.changes == 0 {
				lost = append(lost, h.Job)
			}
		}
		return nil
	})
	return lost, err
}

// row finds a job's row; 0 if there is none.
func (t *tx) row(id settle.ID, handle int64) (int64, error) {
	if handle != 0 {
		return handle, nil
	}
	return number(t, `select n from body where id = ?`, id[:])
}
