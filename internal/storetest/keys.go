package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var keyClauses = []clause{
	{"a key that a live job has is answered with that job", keyTaken},
	{"a key given twice in one call is stored once", keyTwice},
	{"a key is unique within one queue kind and tenant only", keyScope},
	{"jobs without key never conflict", noKey},
	{"B-063.1 a duplicate of a running job is answered with that job", keyRunning},
	{"B-063.1 a duplicate of an awaiting job is answered with that job", keyAwaiting},
	{"B-063.2 a key is free after a cancel", keyAfterCancel},
	{"B-063.2 a key is free after a death", keyAfterDeath},
	{"B-063.2 a key is free after a success", keyAfterSuccess},
	{"B-063.3 a key never blocks a retry or a recovery", keyRecovery},
	{"P6 a key never replaces a job", keyKeepsFirst},
}

func keyed(k string) settle.New { return task(settle.EnqueueOpts{Key: k}) }

// taken reports a key that does not lead to this job in this state.
func (r *rig) taken(k string, by settle.ID, state settle.State) {
	r.Helper()
	got := r.insert(keyed(k))[0]
	is(r, "Existing", got.Existing, true)
	is(r, "the job that has the key", got.ID, by)
	is(r, "its state", got.State, state)
}

// free reports a key that does not admit a new job.
func (r *rig) free(k string, before settle.ID) {
	r.Helper()
	got := r.insert(keyed(k))[0]
	is(r, "Existing", got.Existing, false)
	check(r, got.ID != before, "the key leads to a new job")
	is(r, "the new job that is claimed", r.claimOne().ID, got.ID)
}

func keyTaken(r *rig) {
	first := r.add(keyed("k"))
	r.taken("k", first, settle.Pending)
	is(r, "jobs", r.count(settle.Filter{}), 1)
}

func keyTwice(r *rig) {
	got := r.insert(keyed("k"), keyed("k"), keyed("l"))
	is(r, "Existing of the first", got[0].Existing, false)
	is(r, "Existing of the second", got[1].Existing, true)
	is(r, "the job that the second names", got[1].ID, got[0].ID)
	is(r, "Existing of another key", got[2].Existing, false)
}

func keyScope(r *rig) {
	got := r.insert(keyed("k"), of(other, settle.EnqueueOpts{Key: "k"}),
		task(settle.EnqueueOpts{Key: "k", Tenant: "a"}), task(settle.EnqueueOpts{Key: "k", Queue: "q2"}))
	for i, in := range got {
		check(r, !in.Existing, "job %d has the key for itself", i)
	}
}

func noKey(r *rig) {
	for _, in := range r.insert(keyed(""), keyed(""), keyed("")) {
		is(r, "Existing", in.Existing, false)
	}
}

func keyRunning(r *rig) {
	c := r.started(keyed("k"))
	r.taken("k", c.ID, settle.Running)
	r.moves(on(c, failed("no")))
	r.taken("k", c.ID, settle.Pending)
}

func keyAwaiting(r *rig) {
	c := r.started(keyed("k"))
	r.moves(on(c, parked("s", "t")))
	r.taken("k", c.ID, settle.Awaiting)
}

func keyAfterCancel(r *rig) {
	first := r.add(keyed("k"))
	r.moves(r.seen(first, settle.CancelAsked{}))
	r.free("k", first)
}

func keyAfterDeath(r *rig)   { r.free("k", r.ended(keyed("k"), hopeless("no"))) }
func keyAfterSuccess(r *rig) { r.free("k", r.ended(keyed("k"), succeeded("1"))) }

func keyRecovery(r *rig) {
	r.died(keyed("k")) // whose key is free again
	first := r.started(keyed("k"))
	r.taken("k", first.ID, settle.Running)
	lone := r.started(keyed("l"))
	r.advance(lease + tick)
	is(r, "jobs that the recovery moved", r.sweep(), 2)
	is(r, "running jobs afterwards", r.count(settle.Filter{States: []settle.State{settle.Running}}), 0)
	r.advance(time.Minute)
	for _, c := range r.claim() {
		r.moves(on(c, succeeded("1")))
	}
	is(r, "state of the one", r.job(first.ID).State, settle.Succeeded)
	is(r, "state of the other", r.job(lone.ID).State, settle.Succeeded)
}

func keyKeepsFirst(r *rig) {
	first := keyed("k")
	first.Input = []byte("first")
	j := r.add(first)
	second := keyed("k")
	second.Input = []byte("second")
	r.insert(second)
	is(r, "the payload that is kept", string(r.job(j).Input), "first")
}
