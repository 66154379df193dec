package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

var fullClauses = []clause{
	{"B-038 a full store refuses the newest work and keeps what it accepted", fullRefuses},
	{"B-038 a full store still claims retries parks ends and removes", fullDrains},
	{"B-038 a full store accepts again once work has ended", fullAcceptsAgain},
	{"P6 a full store still answers the repeat of what it accepted", fullRepeats},
	{"B-038 an end inserts its hook job also when the store is full", fullHook},
}

const room = 20

// fill replaces the rig's store by one with room for few jobs, and fills it.
func (r *rig) fill(o settle.EnqueueOpts) {
	r.Helper()
	if r.h.Full == nil {
		r.Log("this store has no limit: nothing to prove")
		r.SkipNow()
	}
	r.store = r.h.Full(r.T, r.clock, room)
	for n := 0; ; n++ {
		o.ID = id(fmt.Sprint("full", n))
		_, err := r.store.Insert(r.ctx, task(o))
		if errors.Is(err, settle.ErrFull) {
			check(r, n == room, "a store with room for %d jobs accepts that many: got %d", room, n)
			return
		}
		ok(r, "Insert", err)
		if n > 2*room {
			r.Fatalf("Insert: got %d jobs accepted, want ErrFull after %d", n, room)
		}
	}
}

func fullRefuses(r *rig) {
	r.fill(settle.EnqueueOpts{})
	_, err := r.store.Insert(r.ctx, task(settle.EnqueueOpts{}), task(settle.EnqueueOpts{}))
	check(r, errors.Is(err, settle.ErrFull), "a full store answers ErrFull: got %v", err)
	is(r, "jobs", r.count(settle.Filter{}), room)
}

func fullDrains(r *rig) {
	r.fill(settle.EnqueueOpts{})
	got := r.claim()
	r.want(got, room)
	r.moves(on(got[0], failed("no")))
	r.moves(on(got[1], parked("s", "t")))
	r.moves(r.seen(got[1].ID, answered("t", "1")))
	r.moves(on(got[2], hopeless("no")))
	is(r, "removed", r.remove(got[2].ID), 1)
	for _, c := range got[3:] {
		r.moves(on(c, succeeded("1")))
	}
	r.advance(time.Hour)
	for _, c := range r.claim() {
		r.moves(on(c, succeeded("1")))
	}
	is(r, "succeeded", r.count(settle.Filter{States: []settle.State{settle.Succeeded}}), room-1)
}

func fullAcceptsAgain(r *rig) {
	r.fill(settle.EnqueueOpts{})
	c := r.first(r.claim())
	r.moves(on(c, succeeded("1")))
	_, err := r.store.Insert(r.ctx, task(settle.EnqueueOpts{}))
	ok(r, "Insert after one job has ended", err)
}

func fullRepeats(r *rig) {
	r.fill(settle.EnqueueOpts{})
	got, err := r.store.Insert(r.ctx, task(settle.EnqueueOpts{ID: id("full0")}))
	ok(r, "Insert of a job that was accepted", err)
	is(r, "Existing", got[0].Existing, true)
}

func fullHook(r *rig) {
	r.fill(settle.EnqueueOpts{Policy: &settle.Policy{OnEnd: told}})
	got := r.claim()
	r.moves(on(got[0], succeeded("1")))
	is(r, "hook jobs", r.count(settle.Filter{Kind: told}), 1)
	// A redrive asks for no room: one job more than fits, and its end is told.
	n := got[1].ID
	r.moves(r.seen(n, settle.CancelAsked{}))
	r.moves(r.seen(n, settle.RedriveAsked{}))
	is(r, "live jobs", r.count(settle.Filter{States: []settle.State{settle.Pending, settle.Running}}), room+1)
	r.moves(r.seen(n, settle.CancelAsked{}))
	is(r, "hook jobs of a store that is over its limit", r.count(settle.Filter{Kind: told}), 3)
}
