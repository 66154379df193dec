package remote_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/worker"
)

// with is EnqueueOpts with numbers of the policy replaced.
func with(change func(*settle.Policy)) settle.EnqueueOpts {
	p := policy
	change(&p)
	return settle.EnqueueOpts{Policy: &p}
}

func TestB013BusyIsFreeButFinite(t *testing.T) {
	busy := replies(reply{status: 429, header: http.Header{"Retry-After": {"5"}}})
	t.Run("twenty times busy, then accepted", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			r.every(busy)
			id := r.enqueue(with(func(p *settle.Policy) { p.Attempts = 3 }))
			for n := range 20 {
				is(r, "submissions", len(r.net.all(id)), n+1)
				if n == 19 {
					r.every(r.answers(done))
				}
				r.nap(5 * time.Second)
			}
			r.nap(time.Second)
			j := r.job(id)
			r.ended("B-013 succeeded", j, settle.Succeeded, settle.EndOK)
			is(r, "B-013 failures counted", j.Charged()-1, 0)
			is(r, "B-013 deferrals visible", j.Deferred, 20)
			is(r, "B-013 and each in the list", len(j.Attempts), 20)
			for n, a := range j.Attempts {
				is(r, "reason", a.Reason, settle.AttemptBusy)
				is(r, "node", a.Node, r.sub(id, n).Node)
			}
			is(r, "the breakers", r.breaker("a").Failures+r.breaker("b").Failures, 0)
			is(r, "nobody is told to stop", len(r.calledOff("a"))+len(r.calledOff("b")), 0)
		})
	})
	t.Run("busy for ever", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			r.every(busy)
			id := r.enqueue(with(func(p *settle.Policy) { p.Deferrals = 30 }))
			r.nap(20 * 5 * time.Second)
			is(r, "B-013 as often as the node said at first", len(r.net.all(id)), 21)
			r.nap(9 * time.Second)
			is(r, "then more seldom", len(r.net.all(id)), 21)
			r.nap(time.Hour)
			j := r.job(id)
			r.ended("B-013 deferred too long", j, settle.Dead, settle.EndDeferredOut)
			is(r, "submissions", len(r.net.all(id)), 31)
			is(r, "charged", j.Charged(), 0)
		})
	})
	t.Run("busy until the deadline", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			r.every(busy)
			id := r.enqueue(settle.EnqueueOpts{Deadline: time.Minute})
			r.nap(time.Minute + settle.SweepInterval)
			r.ended("B-013 never without bound", r.job(id), settle.Dead, settle.EndExpired)
		})
	})
}

func TestB015AnotherNodeOrTheOnlyOneAgain(t *testing.T) {
	t.Run("one fails at once, one is healthy but slower", func(t *testing.T) {
		bubble(t, setup{nodes: []string{"n1", "n2"}}, func(r *rig) {
			r.node("n1", r.answers(failed))
			r.node("n2", func(_ context.Context, s sub) reply {
				time.AfterFunc(time.Minute, func() { r.answer(s, done) })
				return reply{}
			})
			for range 4 {
				id := r.enqueue(with(func(p *settle.Policy) { p.Attempts = 3 }))
				r.nap(time.Minute + 2*backoff)
				j := r.job(id)
				r.ended("B-015 succeeds", j, settle.Succeeded, settle.EndOK)
				is(r, "the step was done by", j.Steps[0].Node, "n2")
				if r.sub(id, 0).Node == "n1" {
					is(r, "B-015 attempt 2 goes to", r.sub(id, 1).Node, "n2")
					is(r, "B-015 the list names the node of attempt 1", attempt(r, j, 0).Node, "n1")
				}
				is(r, "submissions to n2", strings.Count(r.trail(id), "n2"), 1)
			}
		})
	})
	t.Run("there is only one", func(t *testing.T) {
		bubble(t, setup{nodes: []string{"n1"}}, func(r *rig) {
			r.every(r.answers(failed))
			id := r.enqueue(with(func(p *settle.Policy) { p.Attempts, p.StepAttempts = 3, 3 }))
			r.nap(500 * time.Microsecond)
			is(r, "B-015 submissions before the backoff", len(r.net.all(id)), 1)
			r.nap(10 * backoff)
			is(r, "B-015 attempts 2 and 3 go to it", r.trail(id), "n1 n1 n1 ")
			r.ended("B-015 dead", r.job(id), settle.Dead, settle.EndExhausted)
		})
	})
	t.Run("P10 its budget counts attempts, not nodes", func(t *testing.T) {
		bubble(t, setup{nodes: []string{"n1"}}, func(r *rig) {
			r.every(r.answers(helps))
			id := r.enqueue()
			r.nap(20 * backoff)
			r.ended("B-015 it ends", r.job(id), settle.Dead, settle.EndExhausted)
			is(r, "submissions that are answered", len(r.net.all(id)), 5)
			r.every(replies(reply{status: 500}))
			id = r.enqueue(with(func(p *settle.Policy) { p.StepAttempts = 4 }))
			r.nap(20 * backoff)
			r.ended("it ends without any answer, too", r.job(id), settle.Dead, settle.EndExhausted)
			is(r, "submissions that fail", len(r.net.all(id)), 4)
		})
	})
	t.Run("two have failed the job, the third is open", func(t *testing.T) {
		c := remote.PoolConfig{Breaker: breaker.Config{Failures: 1, OpenMin: time.Hour}}
		bubble(t, setup{nodes: []string{"n1", "n2", "n3"}, pool: c}, func(r *rig) {
			r.node("n3", r.answers("nonsense"))
			for r.breaker("n3").State != breaker.Open {
				r.enqueue()
				r.nap(10 * time.Millisecond)
			}
			r.node("n1", r.answers(failed))
			r.node("n2", r.answers(failed))
			id := r.enqueue(with(func(p *settle.Policy) { p.StepAttempts = 3 }))
			r.nap(10 * backoff)
			r.ended("B-015 a node is still chosen", r.job(id), settle.Dead, settle.EndExhausted)
			is(r, "submissions", len(r.net.all(id)), 3)
			is(r, "submissions to the one that is open", strings.Count(r.trail(id), "n3"), 0)
			is(r, "the third goes to the one that failed it first", r.sub(id, 2).Node, r.sub(id, 0).Node)
		})
	})
}

// trail names the nodes of a job's submissions.
func (r *rig) trail(id settle.ID) (names string) {
	for _, s := range r.net.all(id) {
		names += s.Node + " "
	}
	return names
}

// halfOpen brings the breaker of node a to half-open.
func (r *rig) halfOpen() {
	r.Helper()
	r.post(r.parked(r.enqueue(with(func(p *settle.Policy) { p.StepAttempts = 1 }))), "nonsense")
	is(r, "state of the breaker", r.breaker("a").State, breaker.Open)
	r.nap(11 * time.Second)
	is(r, "state of the breaker", r.breaker("a").State, breaker.HalfOpen)
}

// A probe's place that is taken and not used comes back, however the call ends.
func TestB027APlaceIsTakenAndNoCallMade(t *testing.T) {
	for name, do := range map[string]func(r *rig){
		"reading the state a thousand times": func(r *rig) {
			for range 1000 {
				r.pool.Nodes()
				r.hub.Nodes()
			}
		},
		"the context has ended already": func(r *rig) { r.text("ended") },
		"the ticket is refused as stale": func(r *rig) {
			id := r.text("held")
			r.cancel(id)
			r.release <- struct{}{}
		},
		"the submit function panics":             func(r *rig) { r.text("panic") },
		"the submit function ends its goroutine": func(r *rig) { r.text("goexit") },
	} {
		t.Run(name, func(t *testing.T) {
			serve := func(r *rig, w *worker.Worker) { r.hub.Attach(w); r.handleOddly(w) }
			one := with(func(p *settle.Policy) { p.StepAttempts, p.Attempts = 1, 1 })
			c := remote.PoolConfig{Breaker: breaker.Config{Failures: 1, OpenMin: 5 * time.Second}}
			bubble(t, setup{nodes: []string{"a"}, pool: c, serve: serve}, func(r *rig) {
				r.halfOpen()
				before := r.net.count()
				do(r)
				r.nap(0)
				is(r, "submissions", r.net.count(), before)
				is(r, "B-027 the in-flight count returns to", r.breaker("a").Probes, 0)
				is(r, "state", r.breaker("a").State, breaker.HalfOpen)
				hold := make(chan struct{})
				r.every(func(context.Context, sub) reply { <-hold; return reply{} })
				first, second := r.enqueue(one), r.enqueue(one)
				is(r, "B-027 probes that are admitted", r.net.count()-before, 1)
				is(r, "what becomes of the other", r.job(second).Deferred+r.job(first).Deferred, 1)
				close(hold)
				synctest.Wait()
				is(r, "B-027 and it decides", r.breaker("a").State, breaker.Closed)
				is(r, "B-027 the in-flight count returns to", r.breaker("a").Probes, 0)
			})
		})
	}
}

// text enqueues a job that handleOddly treats by its text.
func (r *rig) text(text string) settle.ID {
	r.Helper()
	id, err := render.Enqueue(r.Context(), r.Client, in{text}, with(func(p *settle.Policy) { p.Attempts = 1 }))
	if err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	return id
}

// handleOddly is a handler that spoils its call in the way that the job says.
func (r *rig) handleOddly(w *worker.Worker) {
	r.release = make(chan struct{})
	worker.Handle(w, render, func(ctx context.Context, j *worker.Job[in]) (out, error) {
		s := remote.Step{}
		switch j.In.Text {
		case "ended":
			c, cancel := context.WithCancel(ctx)
			cancel()
			ctx = c
		case "held":
			<-r.release
		case "panic":
			s.Submit = func(context.Context, remote.Submission) error { panic("in Submit") }
		case "goexit":
			s.Submit = func(context.Context, remote.Submission) error { runtime.Goexit(); return nil }
		}
		b, err := remote.Call(ctx, r.pool, j, s)
		if j.In.Text == "held" && !settle.IsStale(errors.Join(errors.New("wrapped"), err)) {
			r.Errorf("Call says %v, want a stale error", err)
		}
		return b, err
	})
}
