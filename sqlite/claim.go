package sqlite

import (
	"context"
	"encoding/json"
	"slices"
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
	chosen  []int64        // rows, in order
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
	for _, n := range c.chosen {
		if err := c.take(n); err != nil {
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

// turns takes each lane's share, oldest first.
func (c *claim) turns() error {
	for _, lane := range c.req.Lanes {
		left := c.req.Limit - len(c.chosen)
		if left < 1 {
			return nil
		}
		if c.held[int64(lane)] {
			continue
		}
		share := left
		if c.req.PerLane > 0 {
			share = min(left, c.req.PerLane)
		}
		m := c.lane(int64(lane), c.now, share)
		for range share {
			n, ok, err := m.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			c.chosen = append(c.chosen, n)
		}
	}
	return nil
}

// lane walks the due rows of one lane over all streams, by their place.
func (c *claim) lane(lane, until int64, want int) *merge {
	m := &merge{c: c.tx, want: want}
	for _, s := range c.streams {
		m.add(`select ord, n, lane from live where state = 0 and suspect = 0 and lane = ? and stream = ?
			and (ord, n) > (?, ?) and ord <= ? and alarm > ? order by ord, n limit ?`, lane, s, until, c.now)
	}
	return m
}

// heldWalk bounds how many rows of held lanes a claim looks at: behind a held
// backlog the turns still find the other lanes.
const heldWalk = 1000

// byAge fills up to limit rows from all lanes that are not held, oldest first.
func (c *claim) byAge(which string, limit int) error {
	m := &merge{c: c.tx, want: limit - len(c.chosen)}
	for _, s := range c.streams {
		m.add(`select due, n, lane from live where state = 0 and `+which+` and stream = ?
			and (due, n) > (?, ?) and due <= ? and alarm > ? order by due, n limit ?`, nil, s, c.now, c.now)
	}
	taken := make(map[int64]bool, len(c.chosen))
	for _, n := range c.chosen {
		taken[n] = true
	}
	for walked := 0; len(c.chosen) < limit; {
		if walked == heldWalk {
			if c.req.Suspects {
				return nil
			}
			return c.pastHeld(taken, limit)
		}
		n, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		switch {
		case taken[n]:
		case c.held[m.lane]:
			walked++
		default:
			c.chosen, taken[n] = append(c.chosen, n), true
		}
	}
	return nil
}

// lanesWalk bounds how many lanes are looked at behind a held backlog.
const lanesWalk = 100

// pastHeld goes lane by lane where held rows fill the front: from a new place
// each time, so that each lane has its turn however many there are.
func (c *claim) pastHeld(taken map[int64]bool, limit int) error {
	lo, hi := span(c.queue)
	start := lo + int64(uint64(c.now)*0x9e3779b97f4a7c15>>(64-hashBits)) // spread by the clock: simulations stay repeatable
	for _, part := range [][2]int64{{start - 1, hi}, {lo - 1, start - 1}} {
		at := part[0]
		for range lanesWalk {
			lane, err := number(c, `select lane from live where state = 0 and suspect = 0 and lane > ? and lane <= ? order by lane limit 1`, at, part[1])
			if err != nil {
				return err
			}
			if lane == 0 {
				break
			}
			if at = lane; !c.held[lane] {
				if err := c.rest(lane, taken, limit); err != nil || len(c.chosen) >= limit {
					return err
				}
			}
		}
	}
	return nil
}

// rest takes what is due in a lane and has not been chosen yet.
func (c *claim) rest(lane int64, taken map[int64]bool, limit int) error {
	m := c.lane(lane, c.now, limit)
	for len(c.chosen) < limit {
		n, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		if !taken[n] {
			c.chosen, taken[n] = append(c.chosen, n), true
		}
	}
	return nil
}

// batch chooses rows of one lane and one kind: a sealed batch exactly as it
// is, else unsealed rows in order, up to the limits.
func (c *claim) batch() error {
	one := *c
	one.req.Limit, one.req.Batch = 1, settle.ID{}
	if err := one.turns(); err != nil {
		return err
	}
	if len(one.chosen) == 0 && len(c.req.Lanes) == 0 {
		if err := one.byAge(`suspect = 0`, 1); err != nil {
			return err
		}
	}
	if len(one.chosen) == 0 {
		return nil
	}
	var lane, stream int64
	var sealed []byte
	if err := c.query(`select lane, stream, batch from live where n = ?`, func(r row) error {
		lane, stream, sealed = r.int(0), r.int(1), r.blob(2)
		return nil
	}, one.chosen[0]); err != nil {
		return err
	}
	if sealed != nil {
		return c.query(`select n from live where batch = ? and state = 0 and suspect = 0 and alarm > ? order by ord, n`,
			func(r row) error { c.chosen = append(c.chosen, r.int(0)); return nil }, sealed, c.now)
	}
	size := int64(0)
	return c.query(`select l.n, length(b.input) from live l join body b using (n)
		where l.state = 0 and l.suspect = 0 and l.lane = ? and l.stream = ? and l.ord <= ? and l.alarm > ? and l.batch is null
		and b.tenant = (select tenant from body where n = ?)
		order by l.ord, l.n limit ?`,
		func(r row) error {
			size += r.int(1)
			if len(c.chosen) > 0 && c.req.Bytes > 0 && size > int64(c.req.Bytes) {
				return errStop
			}
			c.chosen = append(c.chosen, r.int(0))
			return nil
		}, lane, stream, c.now+ceilMicro(c.req.Linger), c.now, one.chosen[0], c.req.Limit)
}

// take moves one row to running and reads what the worker needs.
func (c *claim) take(n int64) error {
	var seal []byte
	if !c.req.Batch.IsZero() {
		seal = c.req.Batch[:]
	}
	r, err := c.exec(`update live set state = 1, attempt = attempt + 1, alarm = min(?, deadline), worker = ?,
		batch = coalesce(batch, ?) where n = ? and state = 0`,
		c.now+ceilMicro(c.req.Lease), c.req.Worker, seal, n)
	if err != nil || r.changes == 0 {
		return err
	}
	j := settle.ClaimedJob{Handle: n}
	steps := false
	// Two reads by row: SQLite plans a join anew whenever its key is bound.
	if err := c.query(`select `+counterCols+`, l.deadline, l.since, l.lane, l.batch from live l where n = ?`,
		func(r row) error {
			j.Counters = countersAt(r, 0)
			j.Remaining, j.Age = micro(r.int(7)-c.now), micro(max(0, c.now-r.int(8)))
			j.Lane, j.Batch = settle.Lane(r.int(9)), idAt(r, 10)
			steps = j.Excused > 0
			return nil
		}, n); err != nil {
		return err
	}
	if err := c.query(`select id, kind, tenant, key, policy, input from body where n = ?`,
		func(r row) error {
			j.ID, j.Kind, j.Tenant, j.Key, j.Input = idAt(r, 0), r.text(1), r.text(2), r.text(3), r.blob(5)
			return c.s.policy(r.blob(4), &j.Policy)
		}, n); err != nil {
		return err
	}
	if steps {
		if j.Steps, err = readSteps(c, n); err != nil {
			return err
		}
	}
	j.Queue, j.State = c.req.Queue, settle.Running
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

// merge walks several ordered queries as one, reading each in small pages.
type merge struct {
	c    *tx
	want int // rows that are likely to be taken
	from []*source
	lane int64 // of the row that next gave last
}

type source struct {
	query    string
	lane     any // bound first, if not nil
	stream   int64
	until    int64
	now      int64
	at, row  int64 // place of the last row read
	page     []place
	finished bool
}

type place struct{ at, n, lane int64 }

func (m *merge) add(query string, lane any, stream, until, now int64) {
	m.from = append(m.from, &source{query: query, lane: lane, stream: stream, until: until, now: now, at: -1 << 62})
}

// next returns the row with the smallest (place, n) of all sources.
func (m *merge) next() (n int64, ok bool, err error) {
	var best *source
	for _, s := range m.from {
		if err := s.fill(m.c, m.want/len(m.from)+1); err != nil {
			return 0, false, err
		}
		if len(s.page) > 0 && (best == nil || less(s.page[0], best.page[0])) {
			best = s
		}
	}
	if best == nil {
		return 0, false, nil
	}
	p := best.page[0]
	best.page = best.page[1:]
	m.lane = p.lane
	return p.n, true, nil
}

func less(a, b place) bool { return a.at < b.at || a.at == b.at && a.n < b.n }

func (s *source) fill(c conn, size int) error {
	if len(s.page) > 0 || s.finished {
		return nil
	}
	args := []any{s.stream, s.at, s.row, s.until, s.now, min(size, 2000)}
	if s.lane != nil {
		args = slices.Insert(args, 0, s.lane)
	}
	s.page = s.page[:0]
	err := c.query(s.query, func(r row) error {
		s.page = append(s.page, place{r.int(0), r.int(1), r.int(2)})
		return nil
	}, args...)
	if len(s.page) == 0 {
		s.finished = true
	} else {
		last := s.page[len(s.page)-1]
		s.at, s.row = last.at, last.n
		s.finished = len(s.page) < min(size, 2000)
	}
	return err
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
