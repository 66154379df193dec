package sqlite

import (
	"context"

	"github.com/settle-go/settle"
)

// anchors finds the oldest unreported event, of a lane or of a queue: among the
// live ones, and among those that ended without a verdict of the far end.
var anchors = map[bool][2]string{
	false: {
		`select n, since from live where gated = 1 and lane = ? order by since limit 1`,
		`select n, since from ended where lane is not null and lane = ? order by since limit 1`,
	},
	true: {
		`select n, since from live where gated = 1 and lane >> 44 = ? order by since limit 1`,
		`select n, since from ended where lane is not null and lane >> 44 = ? order by since limit 1`,
	},
}

// Anchor reads the oldest event that has not been reported.
func (s *Store) Anchor(ctx context.Context, queue, tenant string, all bool) (a settle.Anchor, err error) {
	err = s.read(ctx, "anchor", func(c conn, now int64) error {
		a = settle.Anchor{}
		id, err := s.queueID(c, queue)
		if err != nil || id == 0 {
			return err
		}
		key := laneOf(id, tenant)
		if all {
			key = id
		}
		var n, since int64
		for _, q := range anchors[all] {
			if _, err := one(c, q, func(r row) error {
				if n == 0 || r.int(1) < since {
					n, since = r.int(0), r.int(1)
				}
				return nil
			}, key); err != nil {
				return err
			}
		}
		if n == 0 {
			return nil
		}
		a.Age = max(micro(now-since), 0)
		if a.State, err = s.anchored(c, n, &a); err != nil {
			return err
		}
		_, err = one(c, `select error from attempt where n = ? order by k desc limit 1`, func(r row) error { a.Error = r.text(0); return nil }, n)
		return err
	})
	return a, err
}

// anchored says which event a row is, and where it stands.
func (s *Store) anchored(c conn, n int64, a *settle.Anchor) (state settle.State, err error) {
	if _, err = one(c, `select id, tenant from body where n = ?`, func(r row) error {
		a.Job, a.Tenant = idAt(r, 0), r.text(1)
		return nil
	}, n); err != nil {
		return "", err
	}
	at, err := number(c, `select coalesce((select state from live where n = ?1), (select state from ended where n = ?1))`, n)
	return stateAt(at), err
}
