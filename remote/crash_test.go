package remote_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
)

// doomed is a process's way to the store. Once it is dead nothing that it says is
// heard, as if it had been killed.
type doomed struct {
	settle.Store
	dead atomic.Bool
	// dies says whether it dies once this has been stored; nil = never.
	dies func(settle.Transition) bool
}

func (d *doomed) gone() error {
	if d.dead.Load() {
		return errDown
	}
	return nil
}

func (d *doomed) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	if err := d.gone(); err != nil {
		return settle.ClaimedJobs{}, err
	}
	return d.Store.Claim(ctx, r)
}

func (d *doomed) Renew(ctx context.Context, w int64, held []settle.Held, lease time.Duration) ([]settle.ID, error) {
	if err := d.gone(); err != nil {
		return nil, err
	}
	return d.Store.Renew(ctx, w, held, lease)
}

func (d *doomed) Apply(ctx context.Context, ts []settle.Transition) ([]settle.Applied, error) {
	if err := d.gone(); err != nil {
		return nil, err
	}
	said, err := d.Store.Apply(ctx, ts)
	for _, t := range ts {
		if d.dies != nil && d.dies(t) {
			d.dead.Store(true)
			return nil, errDown
		}
	}
	return said, err
}

func (d *doomed) Overdue(ctx context.Context, after settle.Cursor, n int) (settle.Overdue, error) {
	if err := d.gone(); err != nil {
		return settle.Overdue{}, err
	}
	return d.Store.Overdue(ctx, after, n)
}

func (d *doomed) ReportNodes(ctx context.Context, w int64, nodes []settle.NodeReport, keep time.Duration) error {
	if err := d.gone(); err != nil {
		return err
	}
	return d.Store.ReportNodes(ctx, w, nodes, keep)
}

// mortal is the rig's process as one that can be killed.
func (r *rig) mortal() *doomed { return r.sees.(*doomed) }

func mortally(s settle.Store) settle.Store { return &doomed{Store: s} }

// kill ends the process as a kill does, and starts another one.
func (r *rig) kill() {
	r.mortal().dead.Store(true)
	stop := r.stop
	go func() { _ = stop() }()
	r.start()
}

// lease is long enough for a sweep to have ended the lease of a dead worker.
const lease = 30*time.Second + 20*time.Second

// An answer that comes before the park is kept, and the park finds it.
func TestP9AnAnswerBeforeTheParkIsKept(t *testing.T) {
	for _, one := range []struct {
		name, says string
		status     int
		fate       remote.Fate
		state      settle.State
		failures   int
	}{
		{"done", done, 200, remote.Kept, settle.Succeeded, 0},
		{"error", failed, 200, remote.Kept, settle.Pending, 0},
		{"not retryable", useless, 200, remote.Kept, settle.Dead, 0},
		{"malformed", `"status":"failed"`, 422, remote.Malformed, settle.Pending, 1},
		{"progress", progress, 200, remote.Progress, settle.Awaiting, 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				var first, second int
				r.every(func(_ context.Context, s sub) reply {
					first = r.answer(s, one.says)
					second = r.answer(s, one.says) // the node did not hear of the first
					return reply{}
				})
				j := r.job(r.enqueue())
				is(r, "HTTP status", first, one.status)
				is(r, "fate", r.fates(one.fate) > 0, true)
				repeat, again := 200, remote.Duplicate
				if one.fate == remote.Malformed { // it was not recorded, and no other will be
					repeat, again = 409, remote.Stale
				}
				if one.fate != remote.Progress {
					is(r, "HTTP status of the repeat", second, repeat)
					is(r, "fate of the repeat", r.fates(again), 1)
				}
				is(r, "state", j.State, one.state)
				is(r, "submissions", len(r.net.all(j.ID)), 1)
				is(r, "failures at the breaker", r.breaker(r.sub(j.ID, 0).Node).Failures, one.failures)
				is(r, "HTTP status of a later repeat", r.answer(r.sub(j.ID, 0), one.says), repeat)
			})
		})
	}
	t.Run("the first one counts", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			r.every(func(_ context.Context, s sub) reply {
				r.answer(s, done)
				r.answer(s, failed)
				return reply{}
			})
			r.ended("in the end", r.job(r.enqueue()), settle.Succeeded, settle.EndOK)
		})
	})
}

// The process dies between the ticket and the submission: nobody knows whether the
// node has begun.
func TestP2KilledBeforeTheSubmission(t *testing.T) {
	bubble(t, setup{store: mortally}, func(r *rig) {
		r.mortal().dies = func(t settle.Transition) bool { return t.To == settle.Running && t.Wait != nil }
		id := r.enqueue()
		is(r, "submissions", len(r.net.all(id)), 0)
		is(r, "state", r.job(id).State, settle.Running)
		ticket := r.job(id).Wait.Ticket
		r.kill()
		r.nap(lease)
		s := r.parked(id)
		a := attempt(r, r.job(id), 0)
		is(r, "reason", a.Reason, settle.AttemptWorkerLost)
		is(r, "P10 it counts against the step's budget", a.Ticket, ticket)
		holds(r, "another node is tried", s.Node != a.Node)
		is(r, "attempts that the first node was told to stop", len(r.calledOff(a.Node)), 1)
		is(r, "failures at its breaker", r.breaker(a.Node).Failures, 0)
		r.answer(s, failed)
		r.ended("P10 the budget is spent", r.job(id), settle.Dead, settle.EndExhausted)
	})
}

// Nobody knows whether the ticket was recorded: then nothing is sent.
func TestP2ATicketOfWhichNobodyKnows(t *testing.T) {
	watch := &watched{}
	bubble(t, setup{store: watch.over}, func(r *rig) {
		watch.fail(&watch.after, "apply")
		id := r.enqueue()
		is(r, "submissions", len(r.net.all(id)), 0)
		watch.after.Store(nil)
		r.nap(2 * time.Minute)
		j := r.job(id)
		is(r, "state", j.State, settle.Awaiting)
		is(r, "P10 what it cost: an attempt of the job", j.Charged(), 2)
		holds(r, "P10 not one of the step", attempt(r, j, 0).Ticket.IsZero())
		is(r, "submissions", len(r.net.all(id)), 1)
	})
}

// The process dies between the submission and the park.
func TestKilledBetweenSubmissionAndPark(t *testing.T) {
	dies := func(r *rig) settle.ID {
		r.every(func(context.Context, sub) reply { r.mortal().dead.Store(true); return reply{} })
		id := r.enqueue()
		is(r, "submissions", len(r.net.all(id)), 1)
		r.every(nil)
		r.kill()
		return id
	}
	t.Run("P9 the answer comes while nobody holds the job", func(t *testing.T) {
		bubble(t, setup{store: mortally}, func(r *rig) {
			id := dies(r)
			s := r.sub(id, 0)
			is(r, "HTTP status", r.answer(s, done), 200)
			is(r, "fate", r.fates(remote.Kept), 1)
			is(r, "state until the lease is over", r.job(id).State, settle.Running)
			r.nap(lease)
			j := r.job(id)
			r.ended("P9 it is delivered when the lease is over", j, settle.Succeeded, settle.EndOK)
			is(r, "submissions", len(r.net.all(id)), 1)
			is(r, "recorded attempts", len(j.Attempts), 0)
			is(r, "crashes", j.Crashed, 0)
			is(r, "recalls", len(r.calledOff(s.Node)), 0)
		})
	})
	t.Run("the answer comes too late", func(t *testing.T) {
		bubble(t, setup{store: mortally}, func(r *rig) {
			id := dies(r)
			first := r.sub(id, 0)
			r.nap(lease)
			second := r.parked(id)
			holds(r, "another node is tried", second.Node != first.Node)
			is(r, "the first node is told to stop", len(r.calledOff(first.Node)), 1)
			is(r, "P3 HTTP status of the late answer", r.answer(first, failed), 409)
			is(r, "P3 state", r.job(id).State, settle.Awaiting)
			r.answer(second, done)
			r.ended("in the end", r.job(id), settle.Succeeded, settle.EndOK)
		})
	})
	t.Run("the kept answer is malformed", func(t *testing.T) {
		bubble(t, setup{store: mortally}, func(r *rig) {
			id := dies(r)
			s := r.sub(id, 0)
			is(r, "HTTP status", r.answer(s, `"status":"failed"`), 422)
			r.nap(lease)
			a := attempt(r, r.job(id), 0)
			is(r, "reason: the answer's, not the crash", a.Reason, settle.AttemptProtocol)
			is(r, "crashes", r.job(id).Crashed, 0)
			holds(r, "another node is tried", r.parked(id).Node != s.Node)
		})
	})
	t.Run("what the dead process says later changes nothing", func(t *testing.T) {
		bubble(t, setup{store: mortally}, func(r *rig) {
			dead := r.mortal()
			id := dies(r)
			r.nap(lease)
			s := r.parked(id)
			dead.dead.Store(false) // it was not dead after all
			r.nap(time.Minute)
			is(r, "P3 the job waits for the second submission", r.parked(id).Attempt, s.Attempt)
			r.answer(s, done)
			r.ended("in the end", r.job(id), settle.Succeeded, settle.EndOK)
		})
	})
}

// Everything stops and starts while answers are awaited: a wait is a row.
func TestP1WaitsSurviveARestartOfEverything(t *testing.T) {
	bubble(t, setup{pool: remote.PoolConfig{Breaker: breaker.Config{Failures: 1}}}, func(r *rig) {
		ids := make([]settle.ID, 20)
		for i := range ids {
			ids[i] = r.enqueue()
			r.parked(ids[i])
		}
		for range 3 {
			is(r, "error of Run", r.stop(), nil)
			time.Sleep(time.Minute)
			r.start()
		}
		for _, id := range ids[1:] {
			is(r, "HTTP status", r.answer(r.parked(id), done), 200)
			r.ended("after the answer", r.job(id), settle.Succeeded, settle.EndOK)
			is(r, "submissions", len(r.net.all(id)), 1)
		}
		s := r.parked(ids[0])
		r.answer(s, "nonsense")
		is(r, "P11 a failure of another life is one failure", r.breaker(s.Node).State, breaker.Open)
		other := r.again(ids[0])
		r.answer(other, failed)
		is(r, "P11 a step error changes nothing", r.breaker(other.Node).State, breaker.Closed)
	})
}
