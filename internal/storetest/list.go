package storetest

import (
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

var listClauses = []clause{
	{"jobs are listed in order of acceptance", listOrder},
	{"a filter chooses by queue kind tenant and key", listFilter},
	{"a filter chooses by state", listStates},
	{"pages are complete and without doubles", listPages},
	{"a page is no larger than it may be", listLimits},
	{"pages stay whole while jobs are inserted and end between them", listMoving},
	{"pages of one state stay whole while other jobs leave it", listStateMoving},
	{"a list does not fill in attempts and steps", listNarrow},
	{"a filter that nothing meets ends", listNothing},
}

func listOrder(r *rig) {
	var want []settle.ID
	for i := range 5 {
		want = append(want, r.add(task(settle.EnqueueOpts{Delay: time.Duration(5-i) * time.Minute})))
	}
	r.advance(10 * time.Minute)
	got := r.claim()
	r.want(got, 5)
	r.apply(on(got[2], succeeded("1")))
	same(r, "jobs", ids(r.list(settle.Filter{})), want)
}

func listFilter(r *rig) {
	a := r.add(settle.New{Kind: "ka", EnqueueOpts: settle.EnqueueOpts{Queue: "qa", Tenant: "ta", Key: "x"}})
	b := r.add(settle.New{Kind: "kb", EnqueueOpts: settle.EnqueueOpts{Queue: "qb", Tenant: "tb", Key: "y"}})
	r.add(settle.New{Kind: "kb", EnqueueOpts: settle.EnqueueOpts{Queue: "qb", Tenant: "ta"}})
	same(r, "by queue", ids(r.list(settle.Filter{Queue: "qa"})), []settle.ID{a})
	same(r, "by kind", ids(r.list(settle.Filter{Kind: "ka"})), []settle.ID{a})
	same(r, "by tenant", ids(r.list(settle.Filter{Tenant: "tb"})), []settle.ID{b})
	same(r, "by key", ids(r.list(settle.Filter{Key: "x"})), []settle.ID{a})
	same(r, "by two of them", ids(r.list(settle.Filter{Kind: "kb", Key: "y"})), []settle.ID{b})
	is(r, "by two that exclude each other", r.count(settle.Filter{Queue: "qa", Kind: "kb"}), 0)
	r.moves(r.seen(a, settle.CancelAsked{}))
	same(r, "by key once it has ended", ids(r.list(settle.Filter{Key: "x"})), []settle.ID{a})
}

func listStates(r *rig) {
	done, dead := r.ended(task(settle.EnqueueOpts{}), succeeded("1")), r.died(task(settle.EnqueueOpts{}))
	called := r.ended(task(settle.EnqueueOpts{}), settle.CancelAsked{})
	waits := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(waits, parked("s", "t")))
	runs := r.started(task(settle.EnqueueOpts{}))
	pending := r.add(task(settle.EnqueueOpts{}))
	for state, want := range map[settle.State]settle.ID{settle.Succeeded: done, settle.Dead: dead, settle.Cancelled: called,
		settle.Awaiting: waits.ID, settle.Running: runs.ID, settle.Pending: pending} {
		jobs := r.list(settle.Filter{States: []settle.State{state}})
		same(r, "by "+string(state), ids(jobs), []settle.ID{want})
		for _, j := range jobs {
			is(r, "state", j.State, state)
		}
	}
	same(r, "by two states", ids(r.list(settle.Filter{States: []settle.State{settle.Pending, settle.Succeeded}})), []settle.ID{done, pending})
}

// mixed inserts n jobs of which every other one has ended.
func (r *rig) mixed(n int) []settle.ID {
	r.Helper()
	all := r.addAll(many(n, work, settle.EnqueueOpts{}))
	r.advance(time.Minute)
	var ts []settle.Transition
	for i, c := range r.ask(settle.ClaimReq{Limit: n}).Jobs {
		ts = append(ts, on(c, []settle.Event{succeeded("1"), failedFor(time.Hour)}[i%2]))
	}
	r.apply(ts...)
	return all
}

func listPages(r *rig) {
	want := r.mixed(50)
	for _, limit := range []int{1, 7, 50, 1000} {
		same(r, fmt.Sprint("jobs in pages of ", limit), ids(r.list(settle.Filter{Limit: limit})), want)
	}
	f := settle.Filter{States: []settle.State{settle.Succeeded}, Limit: 4}
	is(r, "succeeded jobs in pages of 4", r.count(f), 25)
}

func listLimits(r *rig) {
	r.insert(many(1100, work, settle.EnqueueOpts{})...)
	for asked, atMost := range map[int]int{0: 100, 10: 10, 1000: 1000, 5000: 1000} {
		jobs, next, err := r.store.Jobs(r.ctx, settle.Filter{Limit: asked})
		ok(r, "Jobs", err)
		check(r, len(jobs) <= atMost, "a page asked for with %d has at most %d: got %d", asked, atMost, len(jobs))
		check(r, next != (settle.Cursor{}), "a list that has not ended has a next")
	}
	is(r, "jobs in all", r.count(settle.Filter{Limit: 5000}), 1100)
}

// pageThrough walks a filter and calls between after each page.
func (r *rig) pageThrough(f settle.Filter, between func()) (all []settle.Job) {
	r.Helper()
	for {
		jobs, next, err := r.store.Jobs(r.ctx, f)
		ok(r, "Jobs", err)
		check(r, f.Limit == 0 || len(jobs) <= f.Limit, "a page of %d has at most that many jobs: got %d", f.Limit, len(jobs))
		all = append(all, jobs...)
		if next == (settle.Cursor{}) {
			return all
		}
		f.After = next
		between()
	}
}

// once reports a job that is missing or listed twice.
func once(r *rig, listed []settle.Job, want []settle.ID) {
	r.Helper()
	times := map[settle.ID]int{}
	for _, j := range listed {
		times[j.ID]++
		check(r, times[j.ID] == 1, "job %s is listed once", j.ID)
	}
	for _, n := range want {
		check(r, times[n] == 1, "job %s, which was there all the time, is listed: got %d times", n, times[n])
	}
}

func listMoving(r *rig) {
	want := r.mixed(60)
	next := 0
	got := r.pageThrough(settle.Filter{Limit: 7}, func() {
		r.insert(many(2, work, settle.EnqueueOpts{Delay: time.Hour})...)
		for range 4 { // also jobs that were listed before, and jobs that come later
			if j := r.job(want[next*7%60]); j.State.Live() {
				r.moves(j.Decide(settle.CancelAsked{}, jitter, false))
			}
			next++
		}
	})
	once(r, got, want)
}

func listStateMoving(r *rig) {
	all := r.addAll(many(60, work, settle.EnqueueOpts{Delay: time.Hour}))
	leave, stay := all[:30], all[30:]
	got := r.pageThrough(settle.Filter{States: []settle.State{settle.Pending}, Limit: 7}, func() {
		for range min(5, len(leave)) {
			r.moves(r.seen(leave[0], settle.CancelAsked{}))
			leave = leave[1:]
		}
	})
	once(r, got, stay)
}

func listNarrow(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, failed("no")))
	for _, j := range r.list(settle.Filter{}) {
		is(r, "attempts in a list", len(j.Attempts), 0)
		is(r, "steps in a list", len(j.Steps), 0)
		is(r, "attempts counted in a list", j.Attempt, 1)
	}
}

func listNothing(r *rig) {
	r.mixed(20)
	for _, f := range []settle.Filter{{Queue: "nowhere"}, {Kind: "nothing"}, {Tenant: "nobody"}, {Key: "none"}, {States: []settle.State{settle.Dead}}} {
		is(r, "jobs", r.count(f), 0)
	}
}
