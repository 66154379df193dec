package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/turn"
)

const (
	maxClaim = 2000   // jobs in one claim
	maxAhead = 1024   // jobs claimed beyond the slots
	maxTurns = 256    // lanes in one claim
	maxLanes = 10_000 // lanes in the ring
	// slowReply is how long a claim may take before its jobs are verified, so
	// that what was cancelled meanwhile never starts.
	slowReply = time.Second
)

// claimer fills one crew: it claims, never more than one claim at a time.
type claimer struct {
	life  *life
	crew  *crew
	kinds []string
	runs  func(kind string) handler
	batch *BatchOpts // nil = one job per handler call

	mu   sync.Mutex
	ring *turn.Ring[settle.Lane]
	at   map[settle.Lane]int // lanes with a batch in this process

	pace    pace
	fails   backoff
	idle    int           // looks in a row that brought nothing
	seen    atomic.Int64  // life.epoch + 1 at a look that found everything empty
	after   settle.Lane   // cursor of the discovery
	explore time.Duration // when the next discovery may be made
	stopped string        // why claiming stops now; "" = it does not
}

// loop claims until ctx ends.
func (c *claimer) loop(ctx context.Context) {
	for ctx.Err() == nil {
		pause, deaf := c.step(ctx)
		wake := c.crew.wake
		if deaf {
			wake = nil // a store that failed is not asked sooner because of a nudge
		}
		t := time.NewTimer(pause)
		select {
		case <-wake:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// step claims as long as there is room and work. It returns how long to wait
// for a nudge, a freed slot or a due job.
func (c *claimer) step(ctx context.Context) (pause time.Duration, deaf bool) {
	for ctx.Err() == nil {
		n := c.room()
		if n < 1 {
			return c.life.Poll, false
		}
		got, full, err := c.claim(ctx, n)
		if err != nil {
			pause = c.fails.next()
			c.life.callFailed("claim", err, pause)
			return pause, true
		}
		c.fails.reset()
		c.life.outage.up("claim")
		if got.Suspects {
			c.life.suspect(ctx)
		}
		if !full {
			return c.pause(len(got.Jobs), got.Next), false
		}
		c.discover(ctx)
	}
	return 0, false
}

// pause is how long to wait when nothing more is due: until the next job is, or
// until the next poll. Polls are quick after work was found and slow down.
func (c *claimer) pause(got int, next time.Duration) time.Duration {
	c.crew.wakeAt.Store(-1) // a freed slot is no reason to look again
	if c.idle++; got > 0 {
		c.idle = 0
	}
	pause := jitter(c.life.Poll >> max(3-c.idle, 0))
	if next > 0 {
		pause = min(pause, next)
	}
	return pause
}

// room is how many jobs to claim now; 0 = a freed slot, or the settler, wakes
// the claimer.
func (c *claimer) room() int {
	c.stop(c.life.obstacle(c.crew))
	if c.stopped != "" {
		return 0
	}
	ahead := 0
	if c.batch == nil {
		ahead = c.pace.ahead()
	}
	// Claim when what is buffered will just last until the reply is here.
	enough := int64(c.crew.slots + ahead/2)
	if ahead == 0 {
		enough--
	}
	c.crew.wakeAt.Store(enough)
	busy := c.crew.busy.Load() // after wakeAt, so that no freed slot is missed
	if busy > enough {
		return 0
	}
	n := min(c.crew.slots+ahead-int(busy), maxClaim)
	if c.batch != nil {
		n = c.batch.Max
	}
	return min(n, c.life.room())
}

// stop tells when claiming stops, and when it goes on.
func (c *claimer) stop(why string) {
	if was := c.stopped; was != why {
		c.stopped = why
		c.life.events.Claiming(why != "", first(why, was))
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// claim makes one claim and puts what it brings into the buffer. full says that
// there may be more.
func (c *claimer) claim(ctx context.Context, n int) (got settle.ClaimedJobs, full bool, err error) {
	n = c.life.quota.take(n)
	defer func() { c.life.quota.giveBack(n, n-len(got.Jobs)) }()
	ok, empty := c.life.ledger.enter(false)
	if n == 0 || !ok {
		if ok {
			c.life.ledger.leave()
		}
		return got, false, nil
	}
	defer c.life.ledger.leave()
	r := c.request(n)
	if c.batch != nil && len(r.Lanes) == 0 && c.lanesAtWork() > 0 {
		return got, c.discover(ctx), nil // every lane that is known has its batch
	}
	epoch, sent := c.life.epoch.Load(), c.life.now()
	got, err = c.call(r)
	c.pace.replied(sent, c.life.now(), c.crew.finished.Load())
	c.learn(r, got.Jobs, err)
	switch {
	case err != nil:
		return got, false, err
	case len(got.Jobs) > 0:
		c.life.epoch.Add(1)
	case c.batch != nil && len(r.Lanes) > 0:
		return got, true, nil // these had nothing and left the ring: ask the others
	case empty && (!got.Suspects || c.life.solitude.none.Load() == epoch+1):
		c.seen.Store(epoch + 1)
		c.life.voteIdle()
	}
	return got, len(got.Jobs) == n || c.batch != nil && len(got.Jobs) > 0, nil
}

// request asks for n jobs of the lanes whose turn it is.
func (c *claimer) request(n int) settle.ClaimReq {
	r := settle.ClaimReq{Queue: c.life.Queue, Kinds: c.kinds, Limit: n, Lease: c.life.Lease, Worker: c.life.id}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.batch == nil {
		r.Lanes, r.PerLane = c.ring.Next(n, maxTurns)
		return r
	}
	r.Batch, r.Bytes, r.Linger = settle.NewID(), c.batch.Bytes, c.batch.Linger
	lanes, _ := c.ring.Next(maxTurns, maxTurns)
	var taken []settle.Lane
	for _, lane := range lanes {
		if c.at[lane] > 0 {
			taken = append(taken, lane)
		} else {
			r.Lanes = append(r.Lanes, lane)
		}
	}
	c.ring.Learn(taken, 0, nil)
	return r
}

// learn tells the ring which lanes gave their share.
func (c *claimer) learn(r settle.ClaimReq, jobs []settle.ClaimedJob, err error) {
	gave := make(map[settle.Lane]int, len(r.Lanes))
	for i := range jobs {
		gave[jobs[i].Lane]++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.ring.Learn(r.Lanes, 0, nil)
		return
	case c.batch == nil:
		c.ring.Learn(r.Lanes, r.PerLane, gave)
		return
	}
	asked := len(r.Lanes) // the lanes behind the one that gave were not looked at
	for i, lane := range r.Lanes {
		if gave[lane] > 0 {
			asked = i + 1
		}
	}
	c.ring.Learn(r.Lanes[:asked], 1, gave)
	c.ring.Learn(r.Lanes[asked:], 0, nil)
}
