package storetest

import (
	"time"

	"github.com/settle-go/settle"
)

var holdClauses = []clause{
	{"a held lane is not claimed and its neighbours are", holdLane},
	{"the lane without a tenant is one lane and not the queue", holdNoTenant},
	{"a held queue is not claimed and other queues are", holdQueue},
	{"a held kind of claim by batch or by name brings nothing either", holdEveryWay},
	{"P7 a hold passes by itself", holdPasses},
	{"a hold of the same lane is replaced", holdReplaced},
	{"a hold can be released and says whether there was one", holdReleased},
	{"a released lane stays held with its queue", holdBoth},
	{"holds are listed with all that was said", holdListed},
	{"P7 a hold moves no deadline and held jobs end", holdDeadline},
	{"P4 a held backlog does not hide other lanes", holdBacklog},
	{"a hold does not touch running jobs", holdRunning},
	{"a held job shows until when it is held", holdShown},
	{"a hold may come before the first job of its queue", holdBefore},
}

func (r *rig) hold(h settle.Hold) {
	r.Helper()
	if h.Reason == "" {
		h.Reason = "operator"
	}
	ok(r, "Hold", r.store.Hold(r.ctx, h))
}

func (r *rig) release(tenant string, whole bool) bool {
	r.Helper()
	was, err := r.store.Release(r.ctx, queue, tenant, whole)
	ok(r, "Release", err)
	return was
}

func (r *rig) holds() []settle.Hold {
	r.Helper()
	all, err := r.store.Holds(r.ctx)
	ok(r, "Holds", err)
	return all
}

func tenant(name string) settle.New { return task(settle.EnqueueOpts{Tenant: name}) }

func holdLane(r *rig) {
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	in := r.insert(tenant("a"), tenant("b"))
	same(r, "claimed", r.claimIDs(settle.ClaimReq{}), []settle.ID{in[1].ID})
	is(r, "state of the held job", r.job(in[0].ID).State, settle.Pending)
}

func holdNoTenant(r *rig) {
	r.hold(settle.Hold{Queue: queue, Tenant: "", For: time.Hour})
	in := r.insert(tenant(""), tenant("a"))
	same(r, "claimed", r.claimIDs(settle.ClaimReq{}), []settle.ID{in[1].ID})
}

func holdQueue(r *rig) {
	r.hold(settle.Hold{Queue: queue, Whole: true, For: time.Hour})
	in := r.insert(tenant(""), tenant("a"), task(settle.EnqueueOpts{Queue: "q2"}))
	is(r, "claimed", len(r.claim()), 0)
	same(r, "claimed elsewhere", r.claimIDs(settle.ClaimReq{Queue: "q2"}), []settle.ID{in[2].ID})
}

func holdEveryWay(r *rig) {
	lane := r.insert(tenant("a"))[0].Lane
	for _, h := range []settle.Hold{{Queue: queue, Tenant: "a", For: time.Hour}, {Queue: queue, Whole: true, For: time.Hour}} {
		r.hold(h)
		for what, q := range map[string]settle.ClaimReq{"by age": {}, "by lane": {Lanes: []settle.Lane{lane}}, "as a batch": {Batch: id("b")}, "of suspects": {Suspects: true}} {
			is(r, "claimed "+what, len(r.ask(q).Jobs), 0)
		}
		is(r, "released", r.release(h.Tenant, h.Whole), true)
	}
	is(r, "claimed afterwards", len(r.claim()), 1)
}

func holdPasses(r *rig) {
	r.insert(tenant("a"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Minute})
	r.advance(time.Minute - tick)
	is(r, "claimed before it passes", len(r.claim()), 0)
	is(r, "holds", len(r.holds()), 1)
	r.advance(2 * tick)
	is(r, "holds that have not passed", len(r.holds()), 0)
	is(r, "claimed after it has passed", len(r.claim()), 1)
	is(r, "released", r.release("a", false), false)
}

func holdReplaced(r *rig) {
	r.insert(tenant("a"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour, Text: "first"})
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Minute, Text: "second", Tries: 2})
	got := r.holds()
	if len(got) != 1 {
		r.Fatalf("holds: got %d, want the second alone", len(got))
	}
	is(r, "text", got[0].Text, "second")
	is(r, "tries", got[0].Tries, 2)
	near(r, "until", got[0].Until, Start.Add(time.Minute))
	r.advance(time.Minute + tick)
	is(r, "claimed after the shorter hold", len(r.claim()), 1)
}

func holdReleased(r *rig) {
	r.insert(tenant("a"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	is(r, "released another lane", r.release("b", false), false)
	is(r, "released the queue", r.release("", true), false)
	is(r, "claimed", len(r.claim()), 0)
	is(r, "released", r.release("a", false), true)
	is(r, "released again", r.release("a", false), false)
	is(r, "claimed afterwards", len(r.claim()), 1)
}

func holdBoth(r *rig) {
	r.insert(tenant("a"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	r.hold(settle.Hold{Queue: queue, Whole: true, For: 2 * time.Hour})
	is(r, "holds", len(r.holds()), 2)
	is(r, "released the lane", r.release("a", false), true)
	is(r, "claimed", len(r.claim()), 0)
	is(r, "released the queue", r.release("", true), true)
	is(r, "claimed afterwards", len(r.claim()), 1)
}

func holdListed(r *rig) {
	r.hold(settle.Hold{Queue: "q", Tenant: "a", For: time.Hour, Reason: "channel", Text: "401 from host", Tries: 3})
	r.advance(10 * time.Minute)
	got := r.holds()
	if len(got) != 1 {
		r.Fatalf("holds: got %d, want one", len(got))
	}
	h := got[0]
	near(r, "began", h.Began, Start)
	near(r, "until", h.Until, Start.Add(time.Hour))
	h.Began, h.Until = time.Time{}, time.Time{}
	is(r, "hold", h, settle.Hold{Queue: "q", Tenant: "a", For: 50 * time.Minute, Reason: "channel", Text: "401 from host", Tries: 3})
}

func holdDeadline(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Tenant: "a", Deadline: time.Hour}))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: 30 * 24 * time.Hour})
	near(r, "deadline", r.job(n).Deadline, Start.Add(time.Hour))
	is(r, "moved by the sweep", r.sweptAfter(time.Hour+tick), 1)
	is(r, "reason", r.job(n).Reason, settle.EndExpired)
}

func holdBacklog(r *rig) {
	lane := r.insert(many(crowd, work, settle.EnqueueOpts{Tenant: "a"})...)[0].Lane
	r.advance(time.Minute)
	in := r.insert(tenant("b"), tenant("c"), tenant("d"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	r.advance(time.Second)
	is(r, "claimed with the held lane named", len(r.claimIDs(settle.ClaimReq{Limit: 1, Lanes: []settle.Lane{lane}})), 1)
	is(r, "claimed by age", len(r.claimIDs(settle.ClaimReq{Limit: 1})), 1)
	is(r, "claimed as a batch", len(r.batch(settle.ClaimReq{}, "b")), 1)
	sameSet(r, "running", ids(r.list(settle.Filter{States: []settle.State{settle.Running}})), []settle.ID{in[0].ID, in[1].ID, in[2].ID})
}

func holdRunning(r *rig) {
	c := r.started(tenant("a"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	r.hold(settle.Hold{Queue: queue, Whole: true, For: time.Hour})
	r.advance(time.Second)
	is(r, "lost", len(r.renew(c)), 0)
	r.moves(on(c, succeeded("1")))
}

func holdShown(r *rig) {
	n, free := r.add(tenant("a")), r.add(tenant("b"))
	r.hold(settle.Hold{Queue: queue, Tenant: "a", For: time.Hour})
	near(r, "held until", r.job(n).Held, Start.Add(time.Hour))
	is(r, "label", r.job(n).Label(), "held")
	check(r, r.job(free).Held.IsZero(), "a job of another lane is not held")
	for _, j := range r.list(settle.Filter{Tenant: "a"}) {
		near(r, "held until, in the list", j.Held, Start.Add(time.Hour))
	}
	r.hold(settle.Hold{Queue: queue, Whole: true, For: 2 * time.Hour})
	near(r, "held with its queue until", r.job(n).Held, Start.Add(2*time.Hour))
	r.advance(3 * time.Hour)
	check(r, r.job(n).Held.IsZero(), "a hold that has passed holds nothing: got %s", r.job(n).Held)
}

func holdBefore(r *rig) {
	r.hold(settle.Hold{Queue: queue, Whole: true, For: time.Hour})
	r.hold(settle.Hold{Queue: "never used", Tenant: "a", For: time.Hour})
	is(r, "holds", len(r.holds()), 2)
	r.insert(tenant("a"))
	is(r, "claimed", len(r.claim()), 0)
}
