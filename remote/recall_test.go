package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/worker"
)

// When nobody waits any more for a node that may be at work, it is told.
func TestANodeIsToldThatNobodyWaits(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ sub) reply { <-ctx.Done(); return reply{err: ctx.Err()} }
	for _, one := range []struct {
		name string
		set  setup
		opts settle.EnqueueOpts
		does func(context.Context, sub) reply
		then func(r *rig, id settle.ID)
		told int
	}{
		{"cancelled", setup{}, settle.EnqueueOpts{}, nil, func(r *rig, id settle.ID) { r.cancel(id) }, 1},
		{"cancelled during the submission", setup{}, settle.EnqueueOpts{}, hangs, func(r *rig, id settle.ID) { r.cancel(id) }, 1},
		{"expired", setup{}, settle.EnqueueOpts{Deadline: time.Minute}, nil, func(r *rig, id settle.ID) { r.nap(time.Minute + sweep) }, 1},
		{"too long silent", setup{step: minute}, settle.EnqueueOpts{}, nil, func(r *rig, id settle.ID) { r.nap(75*time.Second + sweep) }, 1},
		{"no answer", setup{}, settle.EnqueueOpts{}, nil, func(r *rig, id settle.ID) { r.nap(policy.Wait + sweep) }, 1},
		{"no reply", setup{}, settle.EnqueueOpts{}, hangs, func(r *rig, id settle.ID) { r.nap(11 * time.Second) }, 1},
		{"it has answered", setup{}, settle.EnqueueOpts{}, nil, func(r *rig, id settle.ID) { r.answer(r.parked(id), useless) }, 0},
		{"it has answered something", setup{}, settle.EnqueueOpts{}, nil, func(r *rig, id settle.ID) { r.post(r.parked(id), "nonsense") }, 0},
		{"the job was cancelled between two tries", setup{}, settle.EnqueueOpts{}, nil, func(r *rig, id settle.ID) {
			r.answer(r.parked(id), failed)
			r.cancel(id)
		}, 0},
		{"it was busy", setup{}, settle.EnqueueOpts{}, replies(reply{status: 429}), func(r *rig, id settle.ID) { r.cancel(id) }, 0},
		{"it has refused", setup{}, settle.EnqueueOpts{}, replies(reply{status: 422}), func(*rig, settle.ID) {}, 0},
		{"nobody knows how", setup{step: remote.Step{Submit: func(context.Context, remote.Submission) error { return nil }}}, settle.EnqueueOpts{}, nil,
			func(r *rig, id settle.ID) { r.cancel(id) }, 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, one.set, func(r *rig) {
				r.every(one.does)
				id := r.enqueue(one.opts)
				all := r.net.all(id)
				one.then(r, id)
				r.nap(0)
				told := append(r.calledOff("a"), r.calledOff("b")...)
				is(r, "times that a node was told", len(told), one.told)
				if one.told == 0 {
					return
				}
				is(r, "attempt", told[0], all[0].Attempt.String())
				n := r.net.nodes[all[0].Node]
				is(r, "the node's own header", n.headers[0].Get("Authorization"), "Bearer key-of-"+n.name)
				is(r, "what is known of it", r.recalls(), `succeeded {"told":true}`)
			})
		})
	}
}

// recalls are the jobs by which nodes are told, with their outputs.
func (r *rig) recalls() string {
	r.Helper()
	var all []string
	for j, err := range r.List(r.Context(), settle.Filter{Kind: settle.RecallKind}) {
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, string(j.State)+" "+string(j.Output))
	}
	return strings.Join(all, "\n")
}

// What a node replies, and how often it is told then. It is never a dead letter.
func TestRepliesToARecall(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name string
		reply
		times int
	}{
		{"200", reply{status: 200}, 1}, {"202", reply{status: 202}, 1}, {"204", reply{status: 204}, 1},
		{"404", reply{status: 404}, 1}, {"405", reply{status: 405}, 1}, {"409", reply{status: 409}, 1},
		{"410", reply{status: 410}, 1}, {"501", reply{status: 501}, 1},
		{"500", reply{status: 500, body: "password=swordfish"}, 5}, {"503", reply{status: 503}, 5}, {"429", reply{status: 429}, 5},
		{"401", reply{status: 401}, 5}, {"301", reply{status: 301}, 5},
		{"none", reply{err: errors.New("http://user:swordfish@a.example: connection reset")}, 5},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				r.net.nodes[s.Node].hears = func(string) reply { return one.reply }
				r.cancel(id)
				r.nap(time.Minute)
				is(r, "times that it was told", len(r.calledOff(s.Node)), one.times)
				said := r.recalls()
				holds(r, "no dead letter, and told or not: "+said, strings.HasPrefix(said, fmt.Sprintf(`succeeded {"told":%t`, one.times == 1)))
				is(r, "P12 secrets in what is kept", contains(said+r.logs.text(), "swordfish"), false)
				holds(r, "why it could not be told: "+said, one.times == 1 || contains(said, `"why":"`))
			})
		})
	}
	t.Run("once it replies", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			id := r.enqueue()
			s := r.parked(id)
			n := r.net.nodes[s.Node]
			n.hears = func(string) reply {
				if len(n.told) < 3 {
					return reply{status: 503}
				}
				return reply{status: 204}
			}
			r.cancel(id)
			r.nap(time.Minute)
			is(r, "times that it was told", len(r.calledOff(s.Node)), 3)
			is(r, "what is known of it", r.recalls(), `succeeded {"told":true}`)
		})
	})
}

// A recall function of the user's own.
func TestRecallFunctions(t *testing.T) {
	var got []string
	c := remote.PoolConfig{
		Submit: func(context.Context, remote.Submission) error { return nil },
		Recall: func(_ context.Context, n remote.Node, rc settle.Recall) error {
			got = append(got, fmt.Sprint(n.URL, " ", rc.Job, " ", rc.Step, " ", rc.Attempt, " ", rc.Node, " ", rc.Pool))
			if len(got) == 1 {
				panic("in Recall")
			}
			return nil
		},
	}
	bubble(t, setup{pool: c}, func(r *rig) {
		id := r.enqueue()
		w := r.job(id).Wait
		r.cancel(id)
		r.nap(time.Minute)
		is(r, "calls, of which the first panics", len(got), 2)
		is(r, "what it is told", got[1], fmt.Sprint("http://", w.Node, ".example/run ", id, " render ", w.Ticket, " ", w.Node, " gpu"))
		is(r, "calls over the network", len(r.calledOff("a"))+len(r.calledOff("b")), 0)
		is(r, "what is known of it", r.recalls(), `succeeded {"told":true}`)
	})
}

// A node, or a pool, that is no more.
func TestRecallsOfWhatIsNoMore(t *testing.T) {
	t.Run("the node", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			id := r.enqueue()
			s := r.parked(id)
			is(r, "error of Run", r.stop(), nil)
			r.set.nodes = []string{"c"}
			r.start()
			r.cancel(id)
			r.nap(time.Minute)
			holds(r, "what is known of it: "+r.recalls(), contains(r.recalls(), `succeeded {"told":false,"why":"pool gpu has no node `+s.Node))
		})
	})
	t.Run("the pool", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			id := r.enqueue()
			is(r, "error of Run", r.stop(), nil)
			r.set.serve = func(r *rig, w *worker.Worker) {
				hub, err := remote.New(r.st, remote.Config{Inbox: &box{}})
				is(r, "error", err, nil)
				hub.Attach(w)
			}
			r.start()
			r.cancel(id)
			r.nap(time.Minute)
			holds(r, "what is known of it: "+r.recalls(), contains(r.recalls(), `succeeded {"told":false,"why":"this process does not know pool gpu`))
		})
	})
}
