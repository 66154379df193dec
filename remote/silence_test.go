package remote_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/remote"
)

var minute = remote.Step{Silence: time.Minute}

// sweep is longer than a sweep takes to notice.
const sweep = settle.SweepInterval + time.Second

func TestANodeThatFallsSilentIsGivenUp(t *testing.T) {
	bubble(t, setup{step: minute}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		r.nap(time.Minute)
		is(r, "state while it may still speak", r.job(id).State, settle.Awaiting)
		r.nap(15*time.Second + sweep)
		a := attempt(r, r.job(id), 0)
		is(r, "reason", a.Reason, settle.AttemptNoResult)
		is(r, "node", a.Node, s.Node)
		is(r, "ticket", a.Ticket, s.Attempt)
		is(r, "P11 failures at its breaker", r.breaker(s.Node).Failures, 1)
		is(r, "it is told to stop", strings.Join(r.calledOff(s.Node), " "), s.Attempt.String())
		r.nap(backoff)
		next := r.parked(id)
		holds(r, "the other node is tried", next.Node != s.Node)
		r.answer(next, done)
		r.ended("in the end", r.job(id), settle.Succeeded, settle.EndOK)
	})
}

// The ceiling of the whole wait.
func TestAnAnswerThatNeverComes(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		r.nap(policy.Wait - time.Second)
		is(r, "state before the ceiling", r.job(id).State, settle.Awaiting)
		r.nap(time.Second + sweep)
		is(r, "reason", attempt(r, r.job(id), 0).Reason, settle.AttemptNoResult)
		is(r, "P11 failures at its breaker", r.breaker(s.Node).Failures, 1)
		r.nap(backoff)
		holds(r, "the other node is tried", r.parked(id).Node != s.Node)
		r.nap(policy.Wait + sweep)
		r.ended("P1 it ends", r.job(id), settle.Dead, settle.EndExhausted)
	})
}

// A node that keeps to the silence that it was told is never given up, whenever its
// notes come.
func TestProgressResetsTheSilence(t *testing.T) {
	t.Parallel()
	for _, pauses := range [][]int{{50, 50, 50, 50}, {10, 55, 10, 55, 10, 55}, {1, 59, 1, 59, 1, 59}, {14, 59, 14, 59}, {15, 59, 15, 59}, {59, 1, 1, 1, 58, 3, 59}} {
		t.Run(fmt.Sprint(pauses), func(t *testing.T) {
			bubble(t, setup{step: minute, worker: quickSweep}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				for _, p := range pauses {
					r.nap(time.Duration(p) * time.Second)
					is(r, "HTTP status", r.answer(s, progress), 200)
				}
				is(r, "state", r.job(id).State, settle.Awaiting)
				is(r, "fates", r.fates(remote.Progress), len(pauses))
				r.nap(75*time.Second + sweep)
				is(r, "reason when it falls silent", attempt(r, r.job(id), 0).Reason, settle.AttemptNoResult)
			})
		})
	}
}

// Signs of life never move the ceiling.
func TestP1ProgressDoesNotMoveTheCeiling(t *testing.T) {
	bubble(t, setup{step: minute}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		ceiling := r.job(id).WaitEnds
		for n := 0; n < 590; n += 10 {
			r.nap(10 * time.Second)
			is(r, "HTTP status", r.answer(s, progress), 200)
			is(r, "P1 the ceiling", r.job(id).WaitEnds, ceiling)
		}
		r.nap(10*time.Second + sweep)
		is(r, "reason", attempt(r, r.job(id), 0).Reason, settle.AttemptNoResult)
		is(r, "HTTP status of a later note", r.answer(s, progress), 409)
	})
}

// A chatty node does not make the store write.
func TestProgressIsWrittenNowAndThen(t *testing.T) {
	for _, one := range []struct {
		name string
		step remote.Step
		most int64
	}{{"with a silence", minute, 8}, {"without", remote.Step{}, 0}} {
		t.Run(one.name, func(t *testing.T) {
			watch := &watched{}
			bubble(t, setup{step: one.step, store: watch.over}, func(r *rig) {
				s := r.parked(r.enqueue())
				watch.applied.Store(0)
				for range 1000 {
					r.nap(100 * time.Millisecond)
					is(r, "HTTP status", r.answer(s, progress), 200)
				}
				got := watch.applied.Load()
				holds(r, fmt.Sprintf("writes of 1000 notes: %d, want at most %d", got, one.most), got <= one.most)
				is(r, "state", r.job(s.Job).State, settle.Awaiting)
			})
		})
	}
}

// Nobody is blamed for a silence in which nobody could hear.
func TestP11SilenceWhileTheInboxWasDeaf(t *testing.T) {
	for _, one := range []struct {
		name     string
		deaf     bool
		failures int
	}{{"deaf", true, 0}, {"read all the time", false, 1}} {
		t.Run(one.name, func(t *testing.T) {
			b := &box{deaf: one.deaf}
			bubble(t, boxed(b, setup{step: minute}), func(r *rig) {
				s := r.parked(r.enqueue())
				r.nap(75*time.Second + sweep)
				is(r, "reason", attempt(r, r.job(s.Job), 0).Reason, settle.AttemptNoResult)
				is(r, "P11 failures at the breaker", r.breaker(s.Node).Failures, one.failures)
			})
		})
	}
}

// An answer that lies in the inbox when the wait is over wins.
func TestP9TheLastLook(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name   string
		step   remote.Step
		says   string
		after  time.Duration
		state  settle.State
		reason settle.AttemptReason
		recall int
	}{
		{"done, at the ceiling", remote.Step{}, done, policy.Wait + sweep, settle.Succeeded, "", 0},
		{"done, at the silence", minute, done, 75*time.Second + sweep, settle.Succeeded, "", 0},
		{"an error", remote.Step{}, useless, policy.Wait + sweep, settle.Dead, settle.AttemptStepError, 0},
		{"a malformed one", remote.Step{}, `"status":"failed"`, policy.Wait + sweep, settle.Awaiting, settle.AttemptProtocol, 0},
		{"progress, at the silence", minute, progress, 75*time.Second + sweep, settle.Awaiting, "", 0},
		{"progress, at the ceiling", remote.Step{}, progress, policy.Wait + sweep, settle.Awaiting, settle.AttemptNoResult, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			b := &box{}
			bubble(t, boxed(b, setup{step: one.step}), func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				b.put(s, s.doc(one.says))
				r.nap(one.after + backoff)
				j := r.job(id)
				is(r, "state", j.State, one.state)
				is(r, "left in the inbox", b.left(), 0)
				if one.reason != "" {
					is(r, "reason", attempt(r, j, 0).Reason, one.reason)
				} else {
					is(r, "recorded attempts", len(j.Attempts), 0)
				}
				is(r, "recalls", len(r.calledOff(s.Node)), one.recall)
				is(r, "looks", b.looked(), 1)
			})
		})
	}
}

// A look that fails holds up nothing, and is not repeated for each wait.
func TestALastLookThatFails(t *testing.T) {
	b := &box{broken: errors.New("redis://user:hunter2@r.example is down")}
	bubble(t, boxed(b, setup{pool: never}), func(r *rig) {
		var ids []settle.ID
		for range 5 {
			ids = append(ids, r.enqueue())
			r.nap(time.Second)
		}
		r.nap(policy.Wait + sweep)
		for _, id := range ids {
			is(r, "P1 the wait has ended", attempt(r, r.job(id), 0).Reason, settle.AttemptNoResult)
		}
		is(r, "looks", b.looked(), 1)
		is(r, "P12 secrets in the log", contains(r.logs.text(), "hunter2"), false)
		holds(r, "the log tells", contains(r.logs.text(), "no last look"))
	})
}

// All ways of answers lead to one judge: callback, inbox, before the park, last look.
func TestP5EveryWayIsJudgedAlike(t *testing.T) {
	var asked []string
	judge := func(ticket mailbox.Ticket, doc []byte) (mailbox.Answer, error) {
		asked = append(asked, string(doc))
		return mailbox.Answer{}, fmt.Errorf("by a wrapper: %w", &mailbox.StepError{Reason: string(doc), Message: ticket.Step, Retry: mailbox.RetryUseless})
	}
	for name, way := range map[string]func(r *rig, b *box) settle.ID{
		"callback": func(r *rig, b *box) settle.ID { id := r.enqueue(); r.post(r.parked(id), "x"); return id },
		"inbox":    func(r *rig, b *box) settle.ID { id := r.enqueue(); b.put(r.parked(id), "x"); r.read(b); return id },
		"last look": func(r *rig, b *box) settle.ID {
			id := r.enqueue()
			b.put(r.parked(id), "x")
			r.nap(policy.Wait + sweep)
			return id
		},
		"before the park": func(r *rig, b *box) settle.ID {
			r.every(early(func(s sub) { r.post(s, "x") }))
			return r.enqueue()
		},
		"before the park, by the inbox": func(r *rig, b *box) settle.ID {
			r.every(early(func(s sub) { b.put(s, "x"); r.read(b) }))
			return r.enqueue()
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			b := &box{}
			c := remote.PoolConfig{Judge: judge, Breaker: breaker.Config{Failures: 1}}
			bubble(t, boxed(b, setup{pool: c}), func(r *rig) {
				j := r.job(way(r, b))
				is(r, "calls of the judge", strings.Join(asked, " "), "x")
				r.ended("as the judge says", j, settle.Dead, settle.EndTerminal)
				a := attempt(r, j, 0)
				is(r, "reason", a.Reason, settle.AttemptStepError)
				is(r, "words", a.Error, "x: render")
				is(r, "P11 the breaker", r.breaker(a.Node).State, breaker.Closed)
			})
		})
	}
}
