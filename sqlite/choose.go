package sqlite

import (
	"github.com/settle-go/settle"
)

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
			x, ok, err := m.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			c.chosen = append(c.chosen, x)
		}
	}
	return nil
}

// lane walks the due rows of one lane over all streams, by their place.
func (c *claim) lane(lane, until int64, want int) *merge {
	m := &merge{c: c.tx, want: want}
	for _, s := range c.streams {
		m.add(`select `+candidateCols+`, ord from live l where state = 0 and suspect = 0 and lane = ? and stream = ?
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
		m.add(`select `+candidateCols+`, due from live l where state = 0 and `+which+` and stream = ?
			and (due, n) > (?, ?) and due <= ? and alarm > ? order by due, n limit ?`, nil, s, c.now, c.now)
	}
	taken := make(map[int64]bool, len(c.chosen))
	for _, x := range c.chosen {
		taken[x.n] = true
	}
	for walked := 0; len(c.chosen) < limit; {
		if walked == heldWalk {
			if c.req.Suspects {
				return nil
			}
			return c.pastHeld(taken, limit)
		}
		x, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		switch {
		case taken[x.n]:
		case c.held[x.lane]:
			walked++
		default:
			c.chosen, taken[x.n] = append(c.chosen, x), true
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
		x, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		if !taken[x.n] {
			c.chosen, taken[x.n] = append(c.chosen, x), true
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
	first := one.chosen[0]
	if !first.batch.IsZero() {
		return c.query(`select `+candidateCols+` from live l where batch = ? and state = 0 and suspect = 0 and alarm > ? order by ord, n`,
			func(r row) error { c.chosen = append(c.chosen, candidateAt(r)); return nil }, first.batch[:], c.now)
	}
	size := int64(0)
	return c.query(`select `+candidateCols+`, length(b.input) from live l join body b using (n)
		where l.state = 0 and l.suspect = 0 and l.lane = ? and l.stream = ? and l.ord <= ? and l.alarm > ? and l.batch is null
		and b.tenant = (select tenant from body where n = ?)
		order by l.ord, l.n limit ?`,
		func(r row) error {
			size += r.int(candidateEnd)
			if len(c.chosen) > 0 && c.req.Bytes > 0 && size > int64(c.req.Bytes) {
				return errStop
			}
			c.chosen = append(c.chosen, candidateAt(r))
			return nil
		}, first.lane, first.stream, c.now+ceilMicro(c.req.Linger), c.now, first.n, c.req.Limit)
}
