package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
)

func TestNodesTakeTurns(t *testing.T) {
	bubble(t, setup{nodes: []string{"a", "b", "c"}}, func(r *rig) {
		got := map[string]int{}
		for range 30 {
			got[r.parked(r.enqueue()).Node]++
		}
		is(r, "submissions", fmt.Sprint(got), "map[a:10 b:10 c:10]")
	})
}

// A retry prefers nodes that have not failed the job, then the one whose failure is
// longest ago. A busy node comes after those that are not.
func TestTheOrderOfNodes(t *testing.T) {
	t.Parallel()
	const silent, busy, error500, error404 = "silent", "429", "500", "404"
	for _, one := range []struct {
		name string
		says []string // what becomes of each submission
		want string   // nodes, named in the order in which they are first asked
	}{
		{"step errors", []string{failed, failed, failed, failed}, "ABCAB"},
		{"malformed answers", []string{"x", "x", "x", "x"}, "ABCAB"},
		{"failed submissions", []string{error500, error500, error500, error500}, "ABCAB"},
		{"submissions that were not begun", []string{error404, error404, error404, error404}, "ABCAB"},
		{"silence", []string{silent, silent, silent, silent}, "ABCAB"},
		{"busy", []string{busy, busy, busy, busy}, "ABCAB"},
		{"one that failed comes after those that are busy", []string{failed, busy, busy, busy, busy, busy}, "ABCBCBC"},
		{"one that is busy and then fails has failed", []string{busy, busy, busy, failed, busy, busy, busy}, "ABCABCBC"},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{nodes: []string{"a", "b", "c"}, pool: never}, func(r *rig) {
				r.every(func(_ context.Context, s sub) reply {
					n := len(r.net.all(s.Job)) - 1
					if n >= len(one.says) || one.says[n] == silent {
						return reply{}
					}
					if status, err := strconv.Atoi(one.says[n]); err == nil {
						return reply{status: status}
					}
					time.AfterFunc(time.Millisecond, func() { r.answer(s, one.says[n]) })
					return reply{}
				})
				for range 3 { // whoever begins
					id := r.enqueue(with(func(p *settle.Policy) { p.StepAttempts, p.Attempts, p.Wait = 100, 100, time.Minute }))
					wait := 6 * time.Second
					if one.says[0] == silent {
						wait += time.Minute + settle.SweepInterval
					}
					for range one.says {
						r.nap(wait)
					}
					is(r, "nodes", r.letters(id), one.want)
					r.cancel(id)
				}
			})
		})
	}
}

// letters names the nodes of a job's submissions in the order in which they were
// first asked.
func (r *rig) letters(id settle.ID) (names string) {
	known := map[string]string{}
	for _, s := range r.net.all(id) {
		if known[s.Node] == "" {
			known[s.Node] = string(rune('A' + len(known)))
		}
		names += known[s.Node]
	}
	return names
}

// An outage of all nodes does not spend the attempts of all jobs within minutes:
// submissions that repeat a failed one are a share of the first ones. What is held
// back is put off, uncharged, and told.
func TestP10RepeatsAreBoundedByARatio(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, one := range []struct {
		name   string
		outage func(r *rig) func(context.Context, sub) reply
		reason settle.AttemptReason
	}{
		{"no node can be reached", func(*rig) func(context.Context, sub) reply { return replies(reply{err: refused}) }, settle.AttemptSubmitFailed},
		{"all submissions fail", func(*rig) func(context.Context, sub) reply { return replies(reply{status: 500}) }, settle.AttemptSubmitFailed},
		{"all answers are malformed", func(r *rig) func(context.Context, sub) reply { return r.answers("nonsense") }, settle.AttemptProtocol},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{pool: remote.PoolConfig{Breaker: never.Breaker}}, func(r *rig) {
				r.every(one.outage(r))
				many := with(func(p *settle.Policy) { p.Attempts, p.StepAttempts = 1000, 1000 })
				const jobs = 50
				ids := make([]settle.ID, jobs)
				for i := range ids {
					ids[i] = r.enqueue(many)
				}
				is(r, "first submissions, none of which is held back", r.net.count(), jobs)
				for minute := range 2 {
					before := r.net.count()
					r.nap(time.Minute)
					got, most := r.net.count()-before, 60+1
					if minute == 0 {
						most += 10 + jobs/5 // what was saved up
					}
					holds(r, fmt.Sprintf("repeats in minute %d: %d, want some, and at most %d", minute+1, got, most), got > 30 && got <= most)
				}
				held := 0
				for _, id := range ids {
					j := r.job(id)
					for _, a := range j.Attempts {
						switch a.Reason {
						case settle.AttemptRateLimited:
							held++
							holds(r, "the text says why: "+a.Error, contains(a.Error, "pool gpu"))
						case one.reason:
						default:
							r.Errorf("an attempt ended as %s", a.Reason)
						}
					}
					is(r, "charged: submissions that were made", j.Charged(), len(r.net.all(id)))
				}
				holds(r, fmt.Sprintf("deferrals that are told: %d, and at most one each ten seconds", held), held > jobs && held < jobs*12)
				for _, s := range r.pool.Nodes() {
					is(r, "places taken at breakers", s.Probes, 0)
				}
				before := r.net.count()
				r.enqueue()
				is(r, "first submission of a new job", r.net.count()-before, 1)
			})
		})
	}
}

// An outage of all nodes, with breakers and budgets as they are by default: it is
// sat out, and all is done when it is over.
func TestP10AnOutageIsSatOut(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	bubble(t, setup{}, func(r *rig) {
		r.every(replies(reply{err: refused}))
		ids := make([]settle.ID, 200)
		for i := range ids {
			ids[i] = r.enqueue()
		}
		r.nap(10 * time.Minute)
		during := r.net.count()
		holds(r, fmt.Sprintf("submissions in ten minutes of outage: %d", during), during < 100)
		r.every(r.answers(done))
		r.nap(20 * time.Minute)
		for _, id := range ids {
			j := r.job(id)
			r.ended("after it", j, settle.Succeeded, settle.EndOK)
			holds(r, fmt.Sprintf("P10 attempts that it cost: %d of %d", j.Charged(), j.Tries), j.Charged() <= 5)
		}
	})
}

// A probe whose place was taken for a repeat that is then held back is given back.
func TestB027ARepeatThatIsHeldBackTakesNoProbe(t *testing.T) {
	c := remote.PoolConfig{Retries: 0.001, Breaker: breaker.Config{Failures: 45, OpenMin: time.Millisecond, OpenMax: time.Millisecond}}
	bubble(t, setup{nodes: []string{"a"}, pool: c}, func(r *rig) {
		r.every(replies(reply{status: 500}))
		for range 40 {
			r.enqueue(with(func(p *settle.Policy) { p.Attempts, p.StepAttempts = 1000, 1000 }))
		}
		r.nap(10 * time.Second)
		is(r, "state", r.breaker("a").State, breaker.HalfOpen)
		held := 0
		for _, s := range r.net.all(settle.ID{})[:40] {
			for _, a := range r.job(s.Job).Attempts {
				if a.Reason == settle.AttemptRateLimited {
					held++
				}
			}
		}
		holds(r, fmt.Sprintf("repeats that were held back: %d", held), held > 20)
		is(r, "B-027 the in-flight count returns to", r.breaker("a").Probes, 0)
	})
}
