package worker

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

// ledger knows every job that this process answers for: from the claim that
// brought it until the store has taken its outcome. What stands in held is
// renewed, whether it is buffered, runs, or waits to be settled.
type ledger struct {
	onQuiet func() // called when the last job has been released

	mu    sync.Mutex
	held  map[settle.ID]holding
	open  int           // jobs that have not been released, lost ones included
	calls int           // claims on the wire
	alone bool          // a suspect has the process to itself: no other claim may begin
	quiet chan struct{} // closed and forgotten when nothing is open; nil = nobody waits
}

// holding is one job of an attempt.
type holding struct {
	a *attempt
	i int
}

// fence names the attempt at the job for the store.
func (h holding) fence() settle.Held {
	j := &h.a.jobs[h.i]
	return settle.Held{Job: j.ID, Attempt: j.Attempt, Handle: j.Handle}
}

// enter notes that a claim goes on the wire; leave must follow. It is refused
// while a suspect has the process to itself.
func (g *ledger) enter(suspects bool) (ok, empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alone && !suspects {
		return false, false
	}
	empty = g.open == 0
	g.calls++
	return true, empty
}

// hold takes claimed attempts in. A job that is still held from an earlier
// attempt was lost then: the store would not have given it out again.
func (g *ledger) hold(as []*attempt, since time.Duration) (superseded []holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range as {
		a.since = since
		for i := range a.jobs {
			if old, ok := g.held[a.jobs[i].ID]; ok {
				superseded = append(superseded, old)
			}
			g.held[a.jobs[i].ID] = holding{a, i}
		}
		g.open += len(a.jobs)
	}
	return superseded
}

// leave ends what enter began.
func (g *ledger) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	g.calm()
}

// release lets jobs of attempts go: their outcome is stored, or they were lost
// before they began. It returns the attempts of which that was the last job.
func (g *ledger) release(hs ...holding) (ended []*attempt) {
	g.mu.Lock()
	for _, h := range hs {
		if id := h.a.jobs[h.i].ID; g.held[id] == h {
			delete(g.held, id)
		}
		g.open--
		if h.a.open--; h.a.open == 0 {
			ended = append(ended, h.a)
		}
	}
	g.calm()
	last := g.open == 0
	g.mu.Unlock()
	if last {
		g.onQuiet()
	}
	return ended
}

// calm tells those who wait when nothing is left.
func (g *ledger) calm() {
	if g.open == 0 && g.calls == 0 && g.quiet != nil {
		close(g.quiet)
		g.quiet = nil
	}
}

// lose takes out the attempts of these jobs that the store no longer grants.
// fences says which attempts were asked for: a newer one is not meant.
func (g *ledger) lose(ids []settle.ID, fences []settle.Held) (lost []holding) {
	if len(ids) == 0 {
		return nil
	}
	asked := make(map[settle.ID]int, len(fences))
	for _, f := range fences {
		asked[f.Job] = f.Attempt
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if h, ok := g.held[id]; ok && h.a.jobs[h.i].Attempt == asked[id] {
			lost = append(lost, h)
			delete(g.held, id)
		}
	}
	return lost
}

// list is what a renewal renews.
func (g *ledger) list() (fences []settle.Held, who []*attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fences = make([]settle.Held, 0, len(g.held))
	who = make([]*attempt, 0, len(g.held))
	for _, h := range g.held {
		fences = append(fences, h.fence())
		who = append(who, h.a)
	}
	return fences, who
}

// renewed notes that the leases of these attempts were extended by a call that
// began at since.
func (g *ledger) renewed(who []*attempt, since time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range who {
		a.since = max(a.since, since)
	}
}

// expired takes out what has not been renewed since the given time, and says
// when the oldest of the others was.
func (g *ledger) expired(before time.Duration) (lost []holding, oldest time.Duration, any bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, h := range g.held {
		switch {
		case h.a.since <= before:
			lost = append(lost, h)
			delete(g.held, id)
		case !any || h.a.since < oldest:
			oldest, any = h.a.since, true
		}
	}
	return lost, oldest, any
}

// waitQuiet waits until nothing is open and no claim is on the wire, or until
// the context ends.
func (g *ledger) waitQuiet(ctx context.Context) error {
	for {
		g.mu.Lock()
		if g.open == 0 && g.calls == 0 {
			g.mu.Unlock()
			return nil
		}
		if g.quiet == nil {
			g.quiet = make(chan struct{})
		}
		quiet := g.quiet
		g.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// count is how many jobs have not been released.
func (g *ledger) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// empty says whether nothing is open and no claim is on the wire.
func (g *ledger) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open == 0 && g.calls == 0
}

// setAlone keeps other claims out, or lets them in again.
func (g *ledger) setAlone(alone bool) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = g.alone != alone
	g.alone = alone
	return changed
}

// since lists, in order, the jobs whose handlers have run since before the
// given time.
func (g *ledger) since(before time.Time) (ids []settle.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, h := range g.held {
		if began, ok := h.a.runs(); ok && began.Before(before) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b settle.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// running returns the fence of a job whose handler runs.
func (g *ledger) running(id settle.ID) (settle.Held, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.held[id]
	if !ok {
		return settle.Held{}, false
	}
	_, ok = h.a.runs()
	return h.fence(), ok
}
