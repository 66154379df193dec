package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/settle-go/settle"
)

// Claim takes due jobs: first from the lanes whose turn it is, then by age.
// The attempt is counted by the same statement that takes the row.
func (s *Store) Claim(ctx context.Context, r settle.ClaimReq) (out settle.ClaimedJobs, err error) {
	err = s.write(ctx, "claim", func(t *tx) (err error) {
		out = settle.ClaimedJobs{}
		queue, err := s.queueID(t, r.Queue)
		if err != nil || queue == 0 || r.Limit < 1 || len(r.Kinds) == 0 {
			return err
		}
		c := claim{tx: t, req: r, queue: queue}
		err = c.run()
		out = c.out
		return err
	})
	if err != nil {
		return settle.ClaimedJobs{}, err
	}
	return out, nil
}

// claim is one claim under way.
type claim struct {
	*tx
	req     settle.ClaimReq
	queue   int64
	streams []int64
	held    map[int64]bool // lanes that are held
	free    time.Duration  // until the first hold has passed; 0 = none
	chosen  []candidate    // in order
	out     settle.ClaimedJobs
}

func (c *claim) run() error {
	for _, k := range c.req.Kinds {
		c.streams = append(c.streams, streamOf(c.queue, k))
	}
	whole, err := c.holds()
	if err != nil {
		return err
	}
	if whole {
		c.out.Next = c.free
		return nil
	}
	switch {
	case c.req.Suspects:
		err = c.byAge(`suspect = 1`, 1)
	case !c.req.Batch.IsZero():
		err = c.batch()
	default:
		err = c.turns()
		if err == nil && len(c.chosen) < c.req.Limit {
			err = c.byAge(`suspect = 0`, c.req.Limit)
		}
	}
	if err != nil {
		return err
	}
	for i := range c.chosen {
		if err := c.take(&c.chosen[i]); err != nil {
			return err
		}
	}
	return c.lookAhead()
}

// holds learns which lanes are held; whole = the queue is.
func (c *claim) holds() (whole bool, err error) {
	err = c.query(`select whole, lane, until from hold where queue = ? and until > ?`, func(r row) error {
		left := micro(r.int(2) - c.now)
		if r.int(0) == 1 {
			whole = true
		} else {
			if c.held == nil {
				c.held = map[int64]bool{}
			}
			c.held[r.int(1)] = true
		}
		if c.free == 0 || left < c.free {
			c.free = left
		}
		return nil
	}, c.queue, c.now)
	return whole, err
}

func micro(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// candidate is a pending row as the choice has read it. The choice and the
// claim are one transaction: nobody moves the row in between.
type candidate struct {
	at       int64 // its place in the walk
	n        int64
	lane     int64
	stream   int64
	deadline int64
	since    int64
	batch    settle.ID
	settle.Counters
}

const (
	candidateCols = `l.n, l.lane, l.stream, l.deadline, l.since, l.batch, ` + counterCols
	candidateEnd  = 13 // the first column behind them
)

func candidateAt(r row) candidate {
	x := candidate{n: r.int(0), lane: r.int(1), stream: r.int(2), deadline: r.int(3), since: r.int(4), Counters: countersAt(r, 6)}
	if !r.null(5) {
		x.batch = idAt(r, 5)
	}
	return x
}

// take moves one row to running and reads the rest of what the worker needs.
// It does not join: SQLite plans a join anew whenever its key is bound.
func (c *claim) take(x *candidate) error {
	r, err := c.exec(`update live set state = 1, attempt = attempt + 1, alarm = min(?, deadline), worker = ?
		where n = ? and state = 0`, c.now+ceilMicro(c.req.Lease), c.req.Worker, x.n)
	if err != nil || r.changes == 0 {
		return err
	}
	j := settle.ClaimedJob{Handle: x.n}
	j.Queue, j.State, j.Counters, j.Batch = c.req.Queue, settle.Running, x.Counters, x.batch
	j.Attempt++
	j.Remaining, j.Age, j.Lane = micro(x.deadline-c.now), micro(max(0, c.now-x.since)), settle.Lane(x.lane)
	if !c.req.Batch.IsZero() && j.Batch.IsZero() {
		j.Batch = c.req.Batch
		if _, err := c.exec(`update live set batch = ? where n = ?`, j.Batch[:], x.n); err != nil {
			return err
		}
	}
	if err := c.query(`select id, kind, tenant, key, policy, input from body where n = ?`,
		func(r row) error {
			j.ID, j.Kind, j.Tenant, j.Key, j.Input = idAt(r, 0), r.text(1), r.text(2), r.text(3), r.blob(5)
			c.s.policy(r.blob(4), &j.Policy)
			return nil
		}, x.n); err != nil {
		return err
	}
	if j.Excused > 0 {
		if j.Steps, err = readSteps(c, x.n); err != nil {
			return err
		}
	}
	c.out.Jobs = append(c.out.Jobs, j)
	return nil
}

const counterCols = `l.attempt, l.excused, l.deferred, l.crashed, l.tries, l.redrives, l.base`

func countersAt(r row, i int) settle.Counters {
	return settle.Counters{Attempt: int(r.int(i)), Excused: int(r.int(i + 1)), Deferred: int(r.int(i + 2)),
		Crashed: int(r.int(i + 3)), Tries: int(r.int(i + 4)), Redrives: int(r.int(i + 5)), Base: int(r.int(i + 6))}
}

func idAt(r row, i int) (id settle.ID) {
	copy(id[:], r.blob(i))
	return id
}

// lookAhead says when more comes due, and whether suspects wait.
func (c *claim) lookAhead() error {
	for _, s := range c.streams {
		wait, err := number(c, `select 1 from live where state = 0 and suspect = 1 and stream = ? and due <= ? limit 1`, s, c.now)
		if err != nil {
			return err
		}
		c.out.Suspects = c.out.Suspects || wait == 1
		if len(c.out.Jobs) >= c.req.Limit {
			continue
		}
		for _, suspect := range []int{0, 1} {
			due, err := number(c, nextDue[suspect], s, c.now)
			if err != nil {
				return err
			}
			if d := micro(due - c.now); due > 0 && (c.out.Next == 0 || d < c.out.Next) {
				c.out.Next = d
			}
		}
	}
	if c.free > 0 && len(c.out.Jobs) < c.req.Limit && (c.out.Next == 0 || c.free < c.out.Next) {
		c.out.Next = c.free
	}
	return nil
}

var nextDue = [2]string{
	`select due from live where state = 0 and suspect = 0 and stream = ? and due > ? order by due limit 1`,
	`select due from live where state = 0 and suspect = 1 and stream = ? and due > ? order by due limit 1`,
}

func readSteps(c conn, n int64) (out []settle.StepResult, err error) {
	err = c.query(`select name, ticket, node, output from step where n = ? order by at, name`, func(r row) error {
		out = append(out, settle.StepResult{Step: r.text(0), Ticket: idAt(r, 1), Node: r.text(2), Output: r.blob(3)})
		return nil
	}, n)
	return out, err
}

// storedWait is a wait as it stands in the row.
type storedWait struct {
	settle.Wait
	Until int64 `json:"until"` // the ceiling, µs
}

func readWait(b []byte) (w storedWait, err error) {
	if b != nil {
		err = json.Unmarshal(b, &w)
	}
	return w, err
}
