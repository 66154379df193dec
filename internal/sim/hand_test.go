package sim

import (
	"fmt"
	"reflect"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/jump"
	"github.com/settle-go/settle/internal/turn"
)

// hand is one simulated worker process: all that it knows is lost in a crash.
type hand struct {
	at       int   // which handle of the store is its own
	id       int64 // worker
	lease    time.Duration
	held     []*settle.ClaimedJob // running, as far as it knows
	offers   []deed               // outcomes that the store has not acknowledged
	alone    bool                 // it holds a suspect
	suspects bool                 // the last claim said that some wait
	sweep    sweeper

	ring  *turn.Ring[settle.Lane]
	known map[settle.Lane]bool // lanes in the ring
	waits map[settle.Lane]int  // lane with work → it is served before this many have been asked
	asked int                  // lanes asked so far
	after settle.Lane          // cursor of the discovery
}

// ghost is what a worker once held: it may still speak.
type ghost struct {
	job  settle.ClaimedJob
	by   int64
	said *deed // what it last offered, if anything
}

const ringSize = 64

func (w *world) newHand(at int) *hand {
	w.names++
	h := &hand{at: at, id: w.names, lease: []time.Duration{30 * time.Second, 12 * time.Second}[at], ring: turn.New[settle.Lane](ringSize),
		known: map[settle.Lane]bool{}, waits: map[settle.Lane]int{}}
	h.sweep.jumps = jump.Detector{Renew: max(h.lease/3, settle.RenewInterval)}
	return h
}

// runs are the kinds that this worker has handlers for.
func (h *hand) runs() []string { return served[h.at:] }

// add nudges the ring.
func (h *hand) add(lane settle.Lane) {
	h.ring.Add(lane)
	h.known[lane] = true
}

// claim takes work, with the lanes whose turn it is.
func (w *world) claim() {
	h := pickOne(w, w.hands[:])
	switch {
	case h.alone && len(h.held) > 0:
		w.hit("claim waits while a suspect runs")
		return
	case h.suspects && len(h.held) == 0 && len(h.offers) == 0:
		w.claimSuspect(h)
		return
	case h.suspects && w.one(2):
		w.hit("claim waits to run a suspect alone")
		return
	}
	r := settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: h.runs(), Limit: 1 + w.rng.IntN(6), Lease: h.lease, Worker: h.id}
	if w.one(6) {
		r.Queue = side
		w.take(h, r, false)
		return
	}
	w.turns(h, r)
}

func (w *world) claimSuspect(h *hand) {
	r := settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: h.runs(), Limit: 1, Lease: h.lease, Worker: h.id, Suspects: true}
	if w.one(3) {
		r.Queue = side
	}
	h.suspects, h.alone = false, true
	if w.take(h, r, w.one(12)) > 0 {
		w.hit("claim of a suspect, alone")
	}
}

// turns claims by the ring, and holds it to its bound: a lane that is in the
// ring, and could give a job at each claim, gives one before the claims have
// asked as many lanes as the ring had when its wait began.
func (w *world) turns(h *hand, r settle.ClaimReq) {
	for lane := range h.known {
		if len(w.m.due(r, lane)) == 0 {
			delete(h.waits, lane)
		} else if h.waits[lane] == 0 {
			h.waits[lane] = h.asked + h.ring.Len()
		}
	}
	r.Lanes, r.PerLane = h.ring.Next(r.Limit, 3)
	h.asked += len(r.Lanes)
	if len(r.Lanes) > 1 {
		w.hit("claim by several lanes")
	}
	before := len(h.held)
	lost := w.one(12)
	full := w.take(h, r, lost) == r.Limit
	if lost {
		h.ring.Learn(r.Lanes, 0, nil)
	} else {
		w.learn(h, r, h.held[before:])
	}
	for lane, until := range h.waits {
		w.check(h.asked < until, "turn", "lane %d of worker %d waits although %d lanes have been asked, allowed were %d", lane, h.id, h.asked, until)
	}
	if full && w.one(2) {
		w.discover(h)
	}
}

// learn tells the ring what a claim brought. Lanes that were not asked enter in
// the order of the claim, so that a seed always does the same.
func (w *world) learn(h *hand, r settle.ClaimReq, got []*settle.ClaimedJob) {
	gave := map[settle.Lane]int{}
	for _, c := range got {
		gave[c.Lane]++
	}
	asked := map[settle.Lane]int{}
	for _, lane := range r.Lanes {
		asked[lane] = gave[lane]
		if gave[lane] < r.PerLane {
			delete(h.known, lane)
			delete(h.waits, lane)
			delete(gave, lane)
		}
	}
	h.ring.Learn(r.Lanes, r.PerLane, asked)
	for _, c := range got {
		if gave[c.Lane] > 0 && !h.known[c.Lane] {
			h.add(c.Lane)
			w.hit("lane learned from the fill by age")
		}
	}
}

// discover reads lanes into the ring.
func (w *world) discover(h *hand) {
	limit := 1 + w.rng.IntN(4)
	lanes, err := w.store[h.at].Lanes(w.ctx, settle.DefaultQueue, h.after, limit)
	w.must(err, "Lanes")
	w.same("Lanes", differ(lanes, w.m.laneList(settle.DefaultQueue, h.after, limit)))
	h.after = 0
	if len(lanes) == limit {
		h.after = lanes[len(lanes)-1]
	}
	for _, lane := range lanes {
		h.add(lane)
	}
	w.hit("discovery of lanes")
}

// take makes one claim, compares it, and puts what it brings into the hand,
// unless its answer is lost: then nobody knows of these attempts.
func (w *world) take(h *hand, r settle.ClaimReq, lost bool) int {
	got, err := w.store[h.at].Claim(w.ctx, r)
	w.must(err, "Claim")
	w.dirty = true
	want := w.m.claim(r)
	w.say("worker %d claims %d of %s in lanes %v → %s, next %s, suspects %v", h.id, r.Limit, r.Queue, r.Lanes, w.rows(got.Jobs), got.Next, got.Suspects)
	w.check(w.rows(got.Jobs) == w.rows(want.Jobs), "Claim: jobs", "got %s, want %s", w.rows(got.Jobs), w.rows(want.Jobs))
	w.check(got.Next == want.Next && got.Suspects == want.Suspects, "Claim: hints", "got %s %v, want %s %v", got.Next, got.Suspects, want.Next, want.Suspects)
	for i := range got.Jobs {
		w.claimed(h, &got.Jobs[i], &want.Jobs[i], r.Suspects)
		delete(h.waits, got.Jobs[i].Lane)
	}
	if lost {
		if len(got.Jobs) > 0 {
			w.hit("lost answer: Claim")
		}
		return 0
	}
	h.suspects = got.Suspects
	if len(got.Jobs) > 0 && !r.Suspects {
		h.alone = false
	}
	for i := range got.Jobs {
		h.held = append(h.held, &got.Jobs[i])
	}
	return len(got.Jobs)
}

func (w *world) claimed(h *hand, got, want *settle.ClaimedJob, alone bool) {
	if !reflect.DeepEqual(*got, *want) {
		panic(&failure{rule: "Claim: what a job brings", detail: fmt.Sprintf("got %+v, want %+v", *got, *want)})
	}
	j := w.m.byID[got.ID]
	was := got.Snapshot
	was.State, was.Attempt = settle.Pending, was.Attempt-1
	t := settle.Decide(was, settle.Claimed{}, got.Policy, 0)
	w.check(t.Refusal == "" && t.Counters == got.Counters, "Claim: as Decide says", "got %+v, Decide says %+v", got.Counters, t)
	w.given(j, h.lease, alone)
	if len(got.Steps) > 0 {
		w.hit("claim with finished steps")
	}
	if w.m.heldUntil(j) > w.m.now {
		panic(&failure{rule: "hold", detail: j.String() + " was claimed although it is held"})
	}
}

func (w *world) rows(jobs []settle.ClaimedJob) string {
	s := ""
	for i := range jobs {
		s += fmt.Sprintf(" %d#%d", jobs[i].Handle, jobs[i].Attempt)
	}
	return "[" + s + " ]"
}
