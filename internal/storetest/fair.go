package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

var fairClauses = []clause{
	{"P4 oldest first inside a lane", oldestInLane},
	{"P4 without lanes oldest first over all lanes", oldestOverAll},
	{"P4 a head start places a job ahead in its lane", headStart},
	{"P4 a head start is for work that is due at once only", headStartOnlyNow},
	{"P4 a retry is ordered by its new due time", retryOrder},
	{"P4 a retry never keeps its head start", retryLosesHead},
	{"P4 lanes are served in the order in which they are named", lanesInOrder},
	{"P4 PerLane bounds what one lane gets of its turn", perLane},
	{"P4 what turns do not fill is filled by age", filledByAge},
	{"P4 a lane that nobody names is served by age", unnamedLane},
	{"P4 lanes that have nothing or do not exist cost no place", emptyLanes},
	{"P4 a lane full of another kind does not hide the served one", otherKindInFront},
	{"P4 a lane full of future work does not hide what is due", futureInFront},
	{"B-016 failing rows do not keep the front", failingRows},
	{"B-017 a flood of one tenant does not delay the others", flood},
	{"Lanes lists every lane with pending rows once and in order", lanesListed},
}

func (r *rig) claimIDs(q settle.ClaimReq) []settle.ID {
	r.Helper()
	return ids(r.ask(q).Jobs)
}

func oldestInLane(r *rig) {
	in := r.insert(task(settle.EnqueueOpts{Delay: 3 * time.Second}), task(settle.EnqueueOpts{Delay: time.Second}), task(settle.EnqueueOpts{Delay: 2 * time.Second}))
	r.advance(time.Minute)
	lane := []settle.Lane{in[0].Lane}
	same(r, "the oldest", r.claimIDs(settle.ClaimReq{Lanes: lane, Limit: 1}), []settle.ID{in[1].ID})
	same(r, "the rest in order", r.claimIDs(settle.ClaimReq{Lanes: lane}), []settle.ID{in[2].ID, in[0].ID})
}

func oldestOverAll(r *rig) {
	var want []settle.ID
	for i, tenant := range []string{"b", "a", "c", "a", "b"} {
		want = append(want, r.add(task(settle.EnqueueOpts{Tenant: tenant, Delay: time.Duration(i+1) * time.Second})))
	}
	r.advance(time.Minute)
	sameSet(r, "the three oldest", r.claimIDs(settle.ClaimReq{Limit: 3}), want[:3])
	sameSet(r, "the rest", r.claimIDs(settle.ClaimReq{}), want[3:])
}

func headStart(r *rig) {
	first := r.insert(task(settle.EnqueueOpts{}))[0]
	r.advance(time.Minute)
	small := r.add(task(settle.EnqueueOpts{HeadStart: 30 * time.Second}))
	large := r.add(task(settle.EnqueueOpts{HeadStart: time.Hour}))
	q := settle.ClaimReq{Lanes: []settle.Lane{first.Lane}, Limit: 1}
	same(r, "ahead by an hour", r.claimIDs(q), []settle.ID{large})
	same(r, "the one that has waited a minute", r.claimIDs(q), []settle.ID{first.ID})
	same(r, "ahead by half a minute only", r.claimIDs(q), []settle.ID{small})
}

func headStartOnlyNow(r *rig) {
	first := r.insert(task(settle.EnqueueOpts{Delay: time.Second}))[0]
	later := r.add(task(settle.EnqueueOpts{Delay: 2 * time.Second, HeadStart: time.Hour}))
	is(r, "claimed before it is due", len(r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{first.Lane}})), 0)
	r.advance(time.Minute)
	same(r, "claimed in order of due", r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{first.Lane}}), []settle.ID{first.ID, later})
}

func retryOrder(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, failedFor(10*time.Second)))
	before := r.add(task(settle.EnqueueOpts{Delay: 9 * time.Second}))
	after := r.add(task(settle.EnqueueOpts{Delay: 11 * time.Second}))
	r.advance(time.Minute)
	same(r, "by lane", r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{c.Lane}, Limit: 2}), []settle.ID{before, c.ID})
	same(r, "the last", r.claimIDs(settle.ClaimReq{}), []settle.ID{after})
}

func retryLosesHead(r *rig) {
	c := r.started(task(settle.EnqueueOpts{HeadStart: time.Hour}))
	r.moves(on(c, failedFor(10*time.Second)))
	before := r.add(task(settle.EnqueueOpts{Delay: 5 * time.Second}))
	r.advance(time.Minute)
	same(r, "claimed in order", r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{c.Lane}}), []settle.ID{before, c.ID})
}

// tenants inserts n due jobs for each tenant, oldest tenant first, and tells
// their lanes and ids.
func (r *rig) tenants(n int, names ...string) (map[string]settle.Lane, map[string][]settle.ID) {
	r.Helper()
	lanes, all := map[string]settle.Lane{}, map[string][]settle.ID{}
	for _, name := range names {
		for _, in := range r.insert(many(n, work, settle.EnqueueOpts{Tenant: name})...) {
			lanes[name], all[name] = in.Lane, append(all[name], in.ID)
		}
		r.advance(time.Minute)
	}
	return lanes, all
}

func lanesInOrder(r *rig) {
	lane, all := r.tenants(3, "a", "b")
	got := r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["b"], lane["a"]}, Limit: 4})
	sameSet(r, "claimed", got, append(slices.Clone(all["b"]), all["a"][0]))
}

func perLane(r *rig) {
	lane, all := r.tenants(5, "a", "b", "c")
	got := r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["c"], lane["b"], lane["a"]}, PerLane: 2, Limit: 5})
	sameSet(r, "claimed", got, slices.Concat(all["c"][:2], all["b"][:2], all["a"][:1]))
}

func filledByAge(r *rig) {
	lane, all := r.tenants(4, "a", "b")
	got := r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["b"]}, PerLane: 1, Limit: 3})
	sameSet(r, "claimed", got, slices.Concat(all["b"][:1], all["a"][:2]))
	got = r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["b"]}, PerLane: 1, Limit: 5})
	sameSet(r, "claimed when only the named lane is left", got, slices.Concat(all["b"][1:], all["a"][2:]))
}

func unnamedLane(r *rig) {
	lane, all := r.tenants(2, "a", "b")
	got := r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["b"]}, PerLane: 1, Limit: 2})
	sameSet(r, "claimed", got, []settle.ID{all["b"][0], all["a"][0]})
}

func emptyLanes(r *rig) {
	lane, all := r.tenants(2, "a", "b")
	r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["b"]}, Limit: 2})
	got := r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{lane["b"], 12345, -1, lane["a"]}, PerLane: 1, Limit: 2})
	sameSet(r, "claimed", got, all["a"])
}

// crowd is more rows than a store should look at for one claim.
const crowd = 3000

func otherKindInFront(r *rig) {
	r.insert(many(crowd, other, settle.EnqueueOpts{})...)
	r.advance(time.Minute)
	mine := r.insert(task(settle.EnqueueOpts{}), task(settle.EnqueueOpts{}))
	r.advance(time.Minute)
	is(r, "claimed by lane", len(r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{mine[0].Lane}, PerLane: 1, Limit: 1})), 1)
	is(r, "claimed by age", len(r.claimIDs(settle.ClaimReq{Limit: 1})), 1)
	sameSet(r, "running", ids(r.list(settle.Filter{States: []settle.State{settle.Running}})), []settle.ID{mine[0].ID, mine[1].ID})
}

func futureInFront(r *rig) {
	r.insert(many(crowd/3, work, settle.EnqueueOpts{Delay: 24 * time.Hour, HeadStart: time.Hour})...)
	mine := r.insert(task(settle.EnqueueOpts{}))[0]
	same(r, "claimed", r.claimIDs(settle.ClaimReq{Lanes: []settle.Lane{mine.Lane}}), []settle.ID{mine.ID})
	r.advance(time.Minute)
	b := r.add(task(settle.EnqueueOpts{Tenant: "b"}))
	same(r, "claimed for another tenant", r.claimIDs(settle.ClaimReq{Limit: 4}), []settle.ID{b})
}

func failingRows(r *rig) {
	const bad, good = 8, 200
	p := settle.Policy{Attempts: 25}
	failing := map[settle.ID]int{}
	for range bad {
		failing[r.add(withPolicy(p))] = 0
	}
	r.advance(time.Second)
	r.insert(many(good, work, settle.EnqueueOpts{Policy: &p})...)
	r.advance(time.Second)
	done := 0
	for rounds := 0; done < good && rounds < 300; rounds++ {
		var ts []settle.Transition
		for _, c := range r.ask(settle.ClaimReq{Limit: 4}).Jobs {
			if _, isBad := failing[c.ID]; isBad {
				failing[c.ID] = c.Attempt
				ts = append(ts, on(c, failed("always")))
				continue
			}
			ts = append(ts, on(c, succeeded("1")))
			done++
		}
		r.apply(ts...)
		r.advance(10 * tick)
	}
	is(r, "good jobs that succeeded", done, good)
	for n, attempts := range failing {
		check(r, attempts < 3, "failing job %s has used fewer than 3 attempts by then: got %d", n, attempts)
	}
}

func flood(r *rig) {
	r.insert(many(500, work, settle.EnqueueOpts{Tenant: "a"})...)
	r.insert(many(500, work, settle.EnqueueOpts{Tenant: "a", Delay: time.Hour})...)
	r.advance(time.Minute)
	var want []settle.ID
	for _, tenant := range []string{"b", "c", "d"} {
		want = append(want, r.add(task(settle.EnqueueOpts{Tenant: tenant})))
	}
	got := r.claimIDs(settle.ClaimReq{Lanes: r.lanes(page), PerLane: 1, Limit: 4})
	is(r, "claimed", len(got), 4)
	for _, n := range want {
		check(r, slices.Contains(got, n), "the lone job %s of its tenant is served in the first round", n)
	}
}

func lanesListed(r *rig) {
	const tenants = 150
	var jobs []settle.New
	for i := range tenants {
		jobs = append(jobs, of([]string{work, other}[i%2], settle.EnqueueOpts{Tenant: fmt.Sprint("t", i), Delay: time.Duration(i%3) * time.Hour}))
	}
	var want []settle.Lane
	for _, in := range r.insert(jobs...) {
		want = append(want, in.Lane)
	}
	r.insert(jobs[:50]...) // a second row does not list a lane twice
	r.add(task(settle.EnqueueOpts{Queue: "q2", Tenant: "elsewhere"}))
	slices.Sort(want)
	for _, limit := range []int{7, tenants, 1000} {
		same(r, "lanes", r.lanes(limit), want)
	}
	empty := r.insert(of("third", settle.EnqueueOpts{Tenant: "running"}))[0].Lane
	check(r, slices.Contains(r.lanes(page), empty), "a lane with a pending row is listed")
	is(r, "claimed", len(r.ask(settle.ClaimReq{Kinds: []string{"third"}}).Jobs), 1)
	check(r, !slices.Contains(r.lanes(page), empty), "a lane whose only row runs is not listed")
}
