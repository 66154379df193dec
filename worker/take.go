package worker

import (
	"context"
	"time"

	"github.com/settle-go/settle"
)

// call sends one claim and takes in what it brings: held, hence renewed, from
// this moment. It does not end with the claimer's context: what a claim on the
// wire brings after Stop is handed back, not forgotten.
func (c *claimer) call(r settle.ClaimReq) (settle.ClaimedJobs, error) {
	l := c.life
	sent, clock := l.now(), time.Now()
	call, cancel := context.WithTimeout(l.keep, storeTimeout)
	got, err := l.store.Claim(call, r)
	cancel()
	if err != nil || len(got.Jobs) == 0 {
		return got, err
	}
	as := c.attempts(got.Jobs, clock)
	for _, h := range l.ledger.hold(as, sent) {
		l.lost(h)
	}
	if l.now()-sent > slowReply {
		l.renew(l.keep) // whatever became of them meanwhile, the store knows
		l.guard(l.now())
	}
	if l.draining.Load() {
		for _, a := range as {
			c.crew.busy.Add(1)
			c.crew.handBack(a)
		}
		return got, nil
	}
	c.crew.take(as)
	return got, nil
}

// attempts makes handler calls of claimed jobs: one for each, or one for all.
func (c *claimer) attempts(jobs []settle.ClaimedJob, clock time.Time) []*attempt {
	if c.batch != nil {
		a := newAttempt(c.crew, c.runs(jobs[0].Kind), jobs, clock)
		c.occupy(a)
		return []*attempt{a}
	}
	as := make([]*attempt, len(jobs))
	for i := range jobs {
		as[i] = newAttempt(c.crew, c.runs(jobs[i].Kind), jobs[i:i+1:i+1], clock)
	}
	return as
}

// occupy keeps other batches of the lane away until this one has been settled.
func (c *claimer) occupy(a *attempt) {
	lane := a.jobs[0].Lane
	c.mu.Lock()
	c.at[lane]++
	c.mu.Unlock()
	a.then = func() {
		c.mu.Lock()
		if c.at[lane]--; c.at[lane] == 0 {
			delete(c.at, lane)
		}
		c.ring.Add(lane)
		c.mu.Unlock()
		c.crew.poke()
	}
}

func (c *claimer) lanesAtWork() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at)
}

// nudge hears that a lane may have work; 0 = any lane.
func (c *claimer) nudge(lane settle.Lane) {
	if lane != 0 {
		c.mu.Lock()
		c.ring.Add(lane)
		c.mu.Unlock()
	}
	c.crew.poke()
}

// How often lanes are looked for: never more than a twentieth of the time.
const (
	exploreMin   = 10 * time.Millisecond
	exploreShare = 20
	exploreLanes = 1000
)

// discover reads a page of lanes that have pending jobs into the ring, as often
// as its own last cost allows, and reports whether one was new. It is needed
// only where work is left over: else the fill by age has found everything.
func (c *claimer) discover(ctx context.Context) (found bool) {
	l := c.life
	began := l.now()
	if began < c.explore {
		return false
	}
	call, cancel := context.WithTimeout(ctx, storeTimeout)
	lanes, err := l.store.Lanes(call, l.Queue, c.after, exploreLanes)
	cancel()
	c.explore = l.now() + max(exploreMin, exploreShare*(l.now()-began))
	if err != nil {
		return false // a hint; the next claim tells whether the store is down
	}
	c.after = 0
	if len(lanes) == exploreLanes {
		c.after = lanes[len(lanes)-1]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lane := range lanes {
		found = c.ring.Add(lane) || found
	}
	return found
}

// pace measures how fast attempts end and how long a claim takes.
type pace struct {
	rate float64       // attempts that end in a second
	rtt  float64       // seconds that a claim takes
	last time.Duration // of the last sample
	done int64         // attempts at the last sample
}

// paceOver is the time over which the rate is smoothed.
const paceOver = 100 * time.Millisecond

func (p *pace) replied(sent, now time.Duration, done int64) {
	p.rtt += ((now - sent).Seconds() - p.rtt) / 4
	if passed := now - p.last; passed > time.Millisecond {
		weight := min(float64(passed)/float64(paceOver), 1)
		p.rate += (float64(done-p.done)/passed.Seconds() - p.rate) * weight
		p.last, p.done = now, done
	}
}

// ahead is how many jobs to claim beyond the slots: what ends during two round
// trips (Little's law), so that slots never wait for a claim. Slow work: none.
func (p *pace) ahead() int { return min(int(2*p.rate*p.rtt), maxAhead) }
