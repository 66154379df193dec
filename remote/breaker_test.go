package remote_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
)

func TestB028BadRequestsLeaveHealthyNodesIn(t *testing.T) {
	bubble(t, setup{nodes: []string{"a", "b", "c"}}, func(r *rig) {
		r.every(r.answers(useless))
		var bad []settle.ID
		for range 50 {
			bad = append(bad, r.enqueue())
		}
		r.nap(time.Second)
		for _, s := range r.pool.Nodes() {
			is(r, "B-028 breakers stay closed", s.State, breaker.Closed)
			is(r, "failures", s.Failures, 0)
		}
		nodes := map[string]int{}
		for _, id := range bad {
			j := r.job(id)
			r.ended("B-028 dead", j, settle.Dead, settle.EndTerminal)
			is(r, "B-028 with the node's reason", attempt(r, j, 0).Error, "bad_input: no video stream")
			is(r, "B-028 one attempt each", len(r.net.all(id)), 1)
			nodes[attempt(r, j, 0).Node]++
		}
		is(r, "nodes that took part", len(nodes), 3)
		r.every(r.answers(done))
		for range 10 {
			id := r.enqueue()
			r.nap(time.Second)
			r.ended("B-028 the good ones succeed", r.job(id), settle.Succeeded, settle.EndOK)
		}
	})
}

func TestB029LateAnswersOfAnEarlierPeriod(t *testing.T) {
	c := remote.PoolConfig{Retries: 10, Breaker: breaker.Config{Failures: 3, OpenMin: 5 * time.Second}}
	bubble(t, setup{nodes: []string{"a"}, pool: c}, func(r *rig) {
		var slow []sub
		for range 10 {
			slow = append(slow, r.parked(r.enqueue()))
		}
		for range 3 {
			r.post(r.parked(r.enqueue(with(func(p *settle.Policy) { p.StepAttempts = 1 }))), "nonsense")
		}
		is(r, "state", r.breaker("a").State, breaker.Open)
		r.nap(11 * time.Second)
		is(r, "state", r.breaker("a").State, breaker.HalfOpen)
		hold := make(chan struct{})
		r.every(func(context.Context, sub) reply { <-hold; return reply{} })
		r.enqueue()
		is(r, "probes in flight", r.breaker("a").Probes, 1)

		before := r.breaker("a")
		for n, s := range slow {
			says := done
			if n%2 == 1 {
				says = `"status":"failed"`
			}
			r.answer(s, says)
			is(r, "B-029 only the probe decides", r.breaker("a"), before)
		}
		is(r, "B-029 times that it opened", strings.Count(r.logs.text(), "to=open"), 1)
		is(r, "B-029 probes in flight", r.breaker("a").Probes, 1)
		for n, s := range slow {
			j := r.job(s.Job)
			if n%2 == 0 {
				r.ended("B-029 the slow ones get their own outcomes", j, settle.Succeeded, settle.EndOK)
			} else {
				is(r, "B-029 the slow ones get their own outcomes", attempt(r, j, 0).Reason, settle.AttemptProtocol)
			}
		}
		close(hold)
		synctest.Wait()
		is(r, "the probe has decided", r.breaker("a").State, breaker.Closed)
		is(r, "B-029 probes in flight afterwards", r.breaker("a").Probes, 0)
	})
}

// What counts at the breaker, and what does not: so many times the same.
func TestP11WhatOpensABreaker(t *testing.T) {
	for _, one := range []struct {
		name string
		does func(r *rig) func(context.Context, sub) reply
		open bool
	}{
		{"malformed answers, each of them accepted before", func(r *rig) func(context.Context, sub) reply { return r.answers("nonsense") }, true},
		{"submissions that fail", func(*rig) func(context.Context, sub) reply { return replies(reply{status: 500}) }, true},
		{"step errors", func(r *rig) func(context.Context, sub) reply { return r.answers(failed) }, false},
		{"refusals", func(*rig) func(context.Context, sub) reply { return replies(reply{status: 422}) }, false},
		{"busy", func(*rig) func(context.Context, sub) reply { return replies(reply{status: 429}) }, false},
		{"successes between failures", func(r *rig) func(context.Context, sub) reply {
			n := 0
			return func(_ context.Context, s sub) reply {
				says := "nonsense"
				if n++; n%3 == 0 {
					says = done
				}
				time.AfterFunc(time.Millisecond, func() { r.answer(s, says) })
				return reply{}
			}
		}, false},
		{"step errors between failures end no row", func(r *rig) func(context.Context, sub) reply {
			n := 0
			return func(_ context.Context, s sub) reply {
				says := "nonsense"
				if n++; n%2 == 0 {
					says = useless
				}
				time.AfterFunc(time.Millisecond, func() { r.answer(s, says) })
				return reply{}
			}
		}, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{nodes: []string{"a"}, pool: remote.PoolConfig{Breaker: breaker.Config{OpenMin: time.Hour}}}, func(r *rig) {
				r.every(one.does(r))
				for range 12 {
					r.enqueue(with(func(p *settle.Policy) { p.StepAttempts = 1; p.Deferrals = 1; p.Attempts = 1 }))
					r.nap(10 * time.Millisecond)
				}
				is(r, "open", r.breaker("a").State == breaker.Open, one.open)
			})
		})
	}
}

// When no node can be called, the job is put off, free, until the first probe; that
// has an end.
func TestWhenNoNodeCanBeCalled(t *testing.T) {
	c := remote.PoolConfig{Breaker: breaker.Config{Failures: 1, OpenMin: 30 * time.Second, OpenMax: 30 * time.Second}}
	closed := func(t *testing.T, o settle.EnqueueOpts, test func(r *rig, id settle.ID)) {
		bubble(t, setup{pool: c}, func(r *rig) {
			r.every(r.answers("nonsense"))
			for r.breaker("a").State != breaker.Open || r.breaker("b").State != breaker.Open {
				r.enqueue(with(func(p *settle.Policy) { p.StepAttempts = 1 }))
				r.nap(2 * time.Millisecond)
			}
			test(r, r.enqueue(o))
		})
	}
	t.Run("it is told, and costs nothing", func(t *testing.T) {
		closed(t, settle.EnqueueOpts{}, func(r *rig, id settle.ID) {
			j := r.job(id)
			a := attempt(r, j, 0)
			is(r, "state", j.State, settle.Pending)
			is(r, "reason", a.Reason, settle.AttemptNoNode)
			is(r, "charged", j.Charged(), 0)
			is(r, "deferrals", j.Deferred, 1)
			first := min(time.Until(r.breaker("a").Next), time.Until(r.breaker("b").Next)).Round(time.Second)
			for _, part := range []string{"pool gpu", "a open", "b open", "first probe is in " + first.String()} {
				holds(r, fmt.Sprintf("the text has %q: %s", part, a.Error), contains(a.Error, part))
			}
			due := j.Due.Sub(j.Now)
			holds(r, "it is due soon after the first probe: "+due.String(), due >= first-time.Second && due <= first*5/4+time.Second)
			r.every(r.answers(done))
			r.nap(time.Minute)
			r.ended("then it is done", r.job(id), settle.Succeeded, settle.EndOK)
		})
	})
	t.Run("it ends by its deadline", func(t *testing.T) {
		closed(t, settle.EnqueueOpts{Deadline: 20 * time.Second}, func(r *rig, id settle.ID) {
			r.nap(20*time.Second + settle.SweepInterval)
			r.ended("never without bound", r.job(id), settle.Dead, settle.EndExpired)
			is(r, "submissions", len(r.net.all(id)), 0)
		})
	})
	t.Run("it ends by its deferrals", func(t *testing.T) {
		c.Breaker.Now = func() time.Time { return time.Unix(1, 0) } // no probe ever
		closed(t, with(func(p *settle.Policy) { p.Deferrals = 3 }), func(r *rig, id settle.ID) {
			r.nap(4 * 38 * time.Second)
			j := r.job(id)
			r.ended("never without bound", j, settle.Dead, settle.EndDeferredOut)
			is(r, "recorded deferrals", len(j.Attempts), 4)
			is(r, "charged", j.Charged(), 0)
		})
	})
}
