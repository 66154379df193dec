package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

var nudgeClauses = []clause{
	{"Listen hears of an insert of this process with its lane", listenInsert},
	{"Listen hears of a job that is due again at once", listenDueAgain},
	{"Listen ends with its context", listenEnds},
	{"Watch hears of every end of this process", watchEnds},
	{"Watch hears nothing of others and nothing after stop", watchOthers},
	{"two that watch one job both hear of its end", watchTwice},
}

// patience bounds what must come at once, in real time.
const patience = 10 * time.Second

// ear collects nudges.
type ear struct {
	mu    sync.Mutex
	heard map[settle.Lane]int
	any   chan struct{}
}

// listen begins to listen to the queue and returns once it hears.
func (r *rig) listen(queue string) *ear {
	r.Helper()
	e := &ear{heard: map[settle.Lane]int{}, any: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.store.Listen(ctx, queue, e.nudge) }()
	r.Cleanup(func() { stop(); <-ended })
	first := r.insert(task(settle.EnqueueOpts{Queue: queue, Tenant: "until it hears"}))[0]
	e.until(r, first.Lane, func() { r.insert(task(settle.EnqueueOpts{Queue: queue, Tenant: "until it hears"})) })
	return e
}

func (e *ear) nudge(l settle.Lane) {
	e.mu.Lock()
	e.heard[l]++
	e.mu.Unlock()
	select {
	case e.any <- struct{}{}:
	default:
	}
}

func (e *ear) has(l settle.Lane) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard[l] > 0
}

// until waits for a nudge of the lane; hints may be lost, so that poke is
// called again and again.
func (e *ear) until(r *rig, l settle.Lane, poke func()) {
	r.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); poke() {
		for wait := time.After(100 * time.Millisecond); wait != nil; {
			if e.has(l) {
				return
			}
			select {
			case <-e.any:
			case <-wait:
				wait = nil
			}
		}
	}
	r.Errorf("nudge of lane %d: got none within %s", l, patience)
}

func listenInsert(r *rig) {
	e := r.listen(queue)
	in := r.insert(tenant("a"))[0]
	e.until(r, in.Lane, func() { r.insert(tenant("a")) })
}

func listenDueAgain(r *rig) {
	e := r.listen(queue)
	for _, c := range r.claim() {
		r.moves(on(c, succeeded("1")))
	}
	c := r.started(task(settle.EnqueueOpts{Tenant: "b"}))
	e.mu.Lock()
	clear(e.heard)
	e.mu.Unlock()
	giveBack := func() {
		r.moves(on(c, settle.Deferred{Reason: settle.AttemptShutdown}))
		c = r.claimOne()
	}
	giveBack()
	e.until(r, c.Lane, giveBack)
}

func listenEnds(r *rig) {
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.store.Listen(ctx, queue, func(settle.Lane) {}) }()
	stop()
	select {
	case <-ended:
	case <-time.After(patience):
		r.Errorf("Listen: got no return within %s after its context had ended", patience)
	}
}

// hears reports ids that a watcher does not get.
func (r *rig) hears(ended <-chan settle.ID, want ...settle.ID) {
	r.Helper()
	late := time.After(patience)
	got := map[settle.ID]bool{}
	for len(got) < len(want) {
		select {
		case n := <-ended:
			got[n] = true
		case <-late:
			r.Fatalf("Watch: got %d of %d ends within %s", len(got), len(want), patience)
		}
	}
	for _, n := range want {
		check(r, got[n], "the end of job %s is heard", n)
	}
}

func watchEnds(r *rig) {
	all := r.addAll(many(4, work, settle.EnqueueOpts{Deadline: time.Hour}))
	ended, stop := r.store.Watch(all)
	defer stop()
	r.advance(time.Second)
	got := r.claim()
	r.want(got, 4)
	r.moves(on(got[0], succeeded("1")))
	r.moves(on(got[1], hopeless("no")))
	r.moves(on(got[2], failed("no")))
	r.moves(r.seen(got[2].ID, settle.CancelAsked{}))
	r.sweptAfter(2 * time.Hour)
	r.hears(ended, all...)
}

func watchOthers(r *rig) {
	mine, theirs := r.add(tenant("a")), r.add(tenant("b"))
	ended, stop := r.store.Watch([]settle.ID{mine})
	r.moves(r.seen(theirs, settle.CancelAsked{}))
	r.moves(r.seen(mine, settle.CancelAsked{}))
	r.hears(ended, mine)
	stop()
	stop()
	last := r.add(tenant("c"))
	_, stopUnused := r.store.Watch([]settle.ID{last})
	stopUnused()
	r.moves(r.seen(last, settle.CancelAsked{}))
}

func watchTwice(r *rig) {
	n := r.add(tenant("a"))
	one, stopOne := r.store.Watch([]settle.ID{n})
	defer stopOne()
	two, stopTwo := r.store.Watch([]settle.ID{n})
	defer stopTwo()
	r.moves(r.seen(n, settle.CancelAsked{}))
	r.hears(one, n)
	r.hears(two, n)
}
