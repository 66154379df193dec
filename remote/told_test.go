package remote_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/worker"
)

// Listeners of the worker hear of what answers do, too.
func TestListenersHearOfAnswers(t *testing.T) {
	for _, one := range []struct{ says, want string }{
		{done, "awaiting by holder, pending by answer, succeeded by holder"},
		{useless, "awaiting by holder, dead by answer"},
		{progress, "awaiting by holder"},
	} {
		heard := &logs{}
		listen := worker.Events{Settled: func(s worker.Settled) { fmt.Fprintf(heard, ", %s by %s", s.Transition.To, s.By) }}
		bubble(t, setup{worker: worker.Config{Events: listen}}, func(r *rig) {
			id := r.enqueue()
			r.answer(r.parked(id), one.says)
			r.nap(0)
			is(r, "what was heard", strings.TrimPrefix(heard.text(), ", "), one.want)
		})
	}
}

func TestStatsRememberTheLatestHundredOddAnswers(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		r.answer(s, done)
		for range 150 {
			r.answer(s, done)
		}
		is(r, "duplicates", r.fates(remote.Duplicate), 150)
		is(r, "remembered", len(r.hub.Stats().Odd), 100)
	})
}

// The pool's and the hub's own picture of its nodes, and the store's.
func TestNodesAreShown(t *testing.T) {
	bubble(t, setup{nodes: []string{"b", "a"}, pool: remote.PoolConfig{Breaker: breaker.Config{Failures: 1, OpenMin: time.Hour}}}, func(r *rig) {
		is(r, "the pool's name", r.pool.Name(), "gpu")
		names := ""
		for _, s := range r.pool.Nodes() {
			names += s.Node + " " + string(s.State) + " "
		}
		is(r, "nodes, in the order of the configuration", names, "b closed a closed ")
		s := r.parked(r.enqueue())
		r.post(s, "nonsense")
		r.nap(time.Second) // told soon after it has changed
		list, err := r.st.Nodes(r.Context())
		is(r, "error", err, nil)
		is(r, "nodes in the store", len(list), 2)
		for _, n := range list {
			is(r, "pool", n.Pool, "gpu")
			is(r, "who says so", n.Worker, r.work.ID())
			is(r, n.Node+" is open", n.State == "open", n.Node == s.Node)
			is(r, n.Node+" has a probe to come", n.Probe > time.Hour-2*time.Second, n.Node == s.Node)
		}
		is(r, "lines of the log", strings.Count(r.logs.text(), "msg=breaker"), 1)
		is(r, "error of Run", r.stop(), nil)
		list, _ = r.st.Nodes(r.Context())
		is(r, "nodes in the store when the process has ended", len(list), 0)
	})
	t.Run("they are forgotten when the process is killed", func(t *testing.T) {
		bubble(t, setup{store: mortally}, func(r *rig) {
			r.mortal().dead.Store(true)
			list, _ := r.st.Nodes(r.Context())
			is(r, "nodes in the store", len(list), 2)
			time.Sleep(2 * time.Minute)
			list, _ = r.st.Nodes(r.Context())
			is(r, "nodes in the store after two minutes", len(list), 0)
		})
	})
}
