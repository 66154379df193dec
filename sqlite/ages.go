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
	due, err := number(c, `select due from live where state = 0 and suspect = 0 and stream = ? order by due limit 1`, stream)
	if err != nil {
		return a, err
	}
	alone, err := number(c, `select due from live where state = 0 and suspect = 1 and stream = ? order by due limit 1`, stream)
	if err != nil {
		return a, err
	}
	if alone > 0 && (due == 0 || alone < due) {
		due = alone
	}
	if due > 0 && due < now {
		a.Waiting = micro(now - due)
	}
	a.Queue, err = s.queueName(c, queue)
	return a, err
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
	for i := range out {
		out[i].More = total >= limit
	}
	return out, err
}

// Removed lists how many jobs were ever removed.
func (s *Store) Removed(ctx context.Context) (out []settle.Removal, err error) {
	err = s.read(ctx, "removed", func(c conn, _ int64) error {
		out = nil
		return c.query(`select queue, state, sum(n) from tally group by queue, state order by queue, state`, func(r row) error {
			name, err := s.queueName(c, r.int(0))
			out = append(out, settle.Removal{Queue: name, State: states[r.int(1)], N: r.int(2)})
			return err
		})
	})
	return out, err
}
