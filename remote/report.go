package remote

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
)

// How often the state of nodes is told to the store, and for how long it is
// believed without being told again.
const (
	reportEach = 15 * time.Second
	reportKeep = time.Minute
)

// report tells the store what this process knows of the nodes, for people to see:
// nothing is decided by it.
func (h *Hub) report(ctx context.Context, worker int64) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, reportEach)
		err := h.store.ReportNodes(call, worker, h.Nodes(), reportKeep)
		cancel()
		if err != nil && ctx.Err() == nil {
			h.log.Debug("the state of nodes could not be stored", "error", err)
		}
		select {
		case <-h.changed:
			pause(ctx, time.Second/2) // more may have changed
		case <-time.After(reportEach):
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = h.store.ReportNodes(last, worker, nil, reportKeep) // it passes by itself
}

// Nodes is what this process knows of the nodes of all pools, by pool. The inbox,
// if there is one, is a line without a pool.
func (h *Hub) Nodes() (out []settle.NodeReport) {
	h.mu.Lock()
	pools := slices.Collect(maps.Values(h.pools))
	h.mu.Unlock()
	slices.SortFunc(pools, func(a, b *Pool) int { return strings.Compare(a.name, b.name) })
	for _, p := range pools {
		for _, s := range p.Nodes() {
			out = append(out, settle.NodeReport{Pool: p.name, Node: s.Node, State: string(s.State), Failures: s.Failures, Probe: until(s)})
		}
	}
	if in := h.config.Inbox; in != nil {
		out = append(out, settle.NodeReport{State: in.Name(), Text: in.Describe()})
	}
	return out
}

func until(s breaker.Status) time.Duration {
	if s.Next.IsZero() {
		return 0
	}
	return max(time.Until(s.Next), 0)
}

// Stats are numbers of a hub since New.
type Stats struct {
	Fates map[Fate]int64 // documents, by what became of them
	// Odd are the last 100 documents that touched nothing: late, stale, unknown
	// or doubled. Newest last.
	Odd []OddAnswer
}

// OddAnswer is an answer that touched nothing.
type OddAnswer struct {
	Job, Attempt settle.ID
	Fate         Fate
	At           time.Time
}

const maxOdd = 100

type stats struct {
	mu    sync.Mutex
	fates map[Fate]int64
	odd   []OddAnswer
}

// odd are the fates of answers that touched nothing.
var odd = []Fate{Duplicate, Stale, Ended, Unknown}

func (s *stats) count(in []Incoming, fates []Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fates == nil {
		s.fates = map[Fate]int64{}
	}
	for i, f := range fates {
		s.fates[f]++
		if slices.Contains(odd, f) {
			s.odd = append(s.odd, OddAnswer{in[i].Job, in[i].Attempt, f, time.Now()})
		}
	}
	if n := len(s.odd) - maxOdd; n > 0 {
		s.odd = slices.Delete(s.odd, 0, n)
	}
}

// Stats returns the hub's numbers as they are now.
func (h *Hub) Stats() Stats {
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	return Stats{Fates: maps.Clone(h.stats.fates), Odd: slices.Clone(h.stats.odd)}
}
