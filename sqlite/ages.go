package sqlite

import (
	"context"

	"github.com/settle-go/settle"
)

// Ages reads both ages of every (queue, kind), with a few seeks each.
func (s *Store) Ages(ctx context.Context) (out []settle.Age, err error) {
	err = s.read(ctx, "ages", func(c conn, now int64) error {
		out = nil
		for stream := int64(-1); ; {
			next, err := number(c, `select stream from live where stream > ? order by stream limit 1`, stream)
			if err != nil || next == 0 {
				return err
			}
			stream = next
			a, err := s.age(c, stream, now)
			if err != nil {
				return err
			}
			out = append(out, a)
		}
	})
	return out, err
}

func (s *Store) age(c conn, stream, now int64) (a settle.Age, err error) {
	var queue int64
	if _, err = one(c, `select b.queue, b.kind, b.id, l.since from live l join body b using (n) where l.stream = ? order by l.since limit 1`,
		func(r row) error {
			queue, a.Kind = r.int(0), r.text(1)
			if since := r.int(3); since <= now {
				a.Unfinished, a.Oldest = micro(now-since), idAt(r, 2)
			}
			return nil
		}, stream); err != nil {
		return a, err
	}
	for _, suspect := range []int{0, 1} {
		due, err := oldestDue(c, queue, stream, suspect, now)
		if err != nil {
			return a, err
		}
		if due > 0 {
			a.Waiting = max(a.Waiting, micro(now-due))
		}
	}
	a.Queue, err = s.queueName(c, queue)
	return a, err
}

// heldLook bounds how many held rows the waiting age looks past.
const heldLook = 10_000

// oldestDue is since when the oldest claimable row is due; 0 = there is none,
// or it stands behind more held rows than are looked at.
func oldestDue(c conn, queue, stream int64, suspect int, now int64) (due int64, err error) {
	held := map[int64]bool{}
	whole := false
	if err := c.query(`select whole, lane from hold where queue = ? and until > ?`, func(r row) error {
		whole = whole || r.int(0) == 1
		held[r.int(1)] = true
		return nil
	}, queue, now); err != nil || whole {
		return 0, err
	}
	err = c.query(oldestRows[suspect], func(r row) error {
		if held[r.int(1)] {
			return nil
		}
		due = r.int(0)
		return errStop
	}, stream, now, now, heldLook)
	return due, err
}

var oldestRows = [2]string{
	`select due, lane from live where state = 0 and suspect = 0 and stream = ? and due <= ? and alarm > ? order by due limit ?`,
	`select due, lane from live where state = 0 and suspect = 1 and stream = ? and due <= ? and alarm > ? order by due limit ?`,
}

// Lanes lists lanes of a queue that have pending rows: one seek each.
func (s *Store) Lanes(ctx context.Context, queue string, after settle.Lane, limit int) (out []settle.Lane, err error) {
	err = s.read(ctx, "lanes", func(c conn, _ int64) error {
		out = nil
		id, err := s.queueID(c, queue)
		if err != nil || id == 0 {
			return err
		}
		lo, hi := span(id)
		at := max(int64(after), lo-1)
		for len(out) < limit {
			at, err = number(c, `select lane from live where state = 0 and suspect = 0 and lane > ? and lane <= ? order by lane limit 1`, at, hi)
			if err != nil || at == 0 {
				return err
			}
			out = append(out, settle.Lane(at))
		}
		return nil
	})
	return out, err
}

const defaultCount = 100_000

// Counts counts per queue and state, each up to limit.
func (s *Store) Counts(ctx context.Context, limit int) (out []settle.Count, err error) {
	if limit < 1 {
		limit = defaultCount
	}
	err = s.read(ctx, "counts", func(c conn, _ int64) error {
		out = nil
		for st := range states {
			part, err := s.count(c, int64(st), limit)
			if err != nil {
				return err
			}
			out = append(out, part...)
		}
		return nil
	})
	return out, err
}

// count looks at up to limit rows of one state, newest first: the sum over
// queues is exact below the limit.
func (s *Store) count(c conn, st int64, limit int) (out []settle.Count, err error) {
	table, acked, state := "live", "0", "l.state = ?"
	if !states[st].Live() {
		table, acked = "ended", "l.acked"
	}
	if st == dead {
		state = "l.state = 4 and ? = 4" // lets the partial index serve
	}
	total := 0
	err = c.query(`select queue, count(*), sum(acked) from (select b.queue as queue, `+acked+` as acked from `+table+` l join body b using (n)
		where `+state+` order by n desc limit ?) group by queue`, func(r row) error {
		name, err := s.queueName(c, r.int(0))
		total += int(r.int(1))
		out = append(out, settle.Count{Queue: name, State: states[st], N: int(r.int(1)), Acked: int(r.int(2))})
		return err
	}, st, limit)
	if err != nil || total < limit {
		return out, err
	}
	// Older rows were not looked at: every queue may have more.
	counted := map[string]bool{}
	for i := range out {
		out[i].More, counted[out[i].Queue] = true, true
	}
	err = c.query(`select name from queue order by name`, func(r row) error {
		if name := r.text(0); !counted[name] {
			out = append(out, settle.Count{Queue: name, State: states[st], More: true})
		}
		return nil
	})
	return out, err
}

// Removed lists how many jobs were ever removed.
func (s *Store) Removed(ctx context.Context) (out []settle.Removal, err error) {
	err = s.read(ctx, "removed", func(c conn, _ int64) error {
		out = nil
		return c.query(`select queue, state, sum(n) from tally where state < 6 group by queue, state order by queue, state`, func(r row) error {
			name, err := s.queueName(c, r.int(0))
			out = append(out, settle.Removal{Queue: name, State: stateAt(r.int(1)), N: r.int(2)})
			return err
		})
	})
	return out, err
}
