package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var handleClauses = []clause{
	{"another handle sees what this one committed", handleSees},
	{"a commit of another handle is a nudge of lane 0", handleNudges},
	{"a hold of another handle holds here", handleHolds},
	{"a key and an id of another handle are taken here", handleKeys},
	{"P3 another handle can not renew or settle what it lost", handleFence},
	{"two handles never claim the same job", handlesClaim},
	{"lanes have the same number on every handle", handleLanes},
}

func handleSees(r *rig) {
	b := r.beside()
	n := r.add(keyed("k"))
	is(r, "state there", b.job(n).State, settle.Pending)
	r.moves(on(r.claimOne(), failed("no")))
	same(r, "errors there", errorsOf(b.job(n)), []string{"no"})
	b.advance(time.Hour)
	b.moves(on(b.claimOne(), succeeded("out")))
	is(r, "state here", r.job(n).State, settle.Succeeded)
	is(r, "output here", string(r.job(n).Output), "out")
}

func handleNudges(r *rig) {
	b := r.beside()
	e := r.listen(queue)
	e.until(r, 0, func() { b.insert(tenant("from there")) })
}

func handleHolds(r *rig) {
	b := r.beside()
	n := r.add(tenant("a"))
	is(r, "claimed of another kind", len(r.ask(settle.ClaimReq{Kinds: []string{other}}).Jobs), 0)
	b.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	is(r, "claimed here", len(r.claim()), 0)
	is(r, "released here", r.release("a", false), true)
	is(r, "the job that is claimed there", b.claimOne().ID, n)
}

func handleKeys(r *rig) {
	b := r.beside()
	n := r.add(task(settle.EnqueueOpts{ID: id("a"), Key: "k"}))
	b.taken("k", n, settle.Pending)
	is(r, "Existing by id", b.insert(task(settle.EnqueueOpts{ID: id("a")}))[0].Existing, true)
	r.moves(on(r.claimOne(), succeeded("1")))
	b.free("k", n)
}

func handleFence(r *rig) {
	b := r.beside()
	c := r.started(task(settle.EnqueueOpts{}))
	r.advance(lease + tick)
	is(r, "moved by the sweep there", b.sweep(), 1)
	same(r, "lost here", r.renew(c), []settle.ID{c.ID})
	is(r, "answer to the late worker", r.apply(on(c, succeeded("1")))[0], settle.Stale)
	second := b.again(c.ID)
	b.moves(on(second, succeeded("2")))
	is(r, "output", string(r.job(c.ID).Output), "2")
}

func handlesClaim(r *rig) {
	b := r.beside()
	all := r.addAll(many(100, work, settle.EnqueueOpts{}))
	r.advance(time.Second)
	var got []settle.ID
	for range 10 {
		got = append(got, r.claimIDs(settle.ClaimReq{Limit: 5})...)
		got = append(got, b.claimIDs(settle.ClaimReq{Limit: 5, Worker: 2})...)
	}
	sameSet(r, "claimed by both", got, all)
}

func handleLanes(r *rig) {
	b := r.beside()
	lane := r.insert(tenant("a"))[0].Lane
	is(r, "the lane there", b.insert(tenant("a"))[0].Lane, lane)
	same(r, "the lanes there", b.lanes(page), []settle.Lane{lane})
	for _, c := range b.claim() {
		is(r, "the lane of a claimed job there", c.Lane, lane)
	}
}
