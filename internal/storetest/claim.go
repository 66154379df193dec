package storetest

import (
	"strconv"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

var claimClauses = []clause{
	{"P2 the claim itself counts the attempt", claimCounts},
	{"P2 a claim is what Decide says of it", claimIsDecided},
	{"P2 a claim never brings a job that is not due", claimNotFuture},
	{"P2 a claim never brings a job whose deadline has passed", claimNotOverdue},
	{"P2 a claim never brings a running awaiting or ended job", claimNotOthers},
	{"P1 a lease never reaches past the deadline", leaseWithinDeadline},
	{"B-003 a kind that is not named is never claimed", claimKinds},
	{"a queue that is not named is never claimed", claimQueue},
	{"a claim of no kinds brings nothing", claimNoKinds},
	{"B-049 a claim brings exactly what it asked for", claimLimit},
	{"B-049 claims side by side share the jobs out", claimSideBySide},
	{"a claimed job comes with all that a worker needs", claimedWhole},
	{"Age is the time since a job was first due", claimedAge},
	{"Next is when the next job of these kinds is due", claimNext},
	{"B-008 no attempt exists before the due time", noEarlyAttempt},
	{"B-008 no attempt exists before a retry is due", noEarlyRetry},
	{"a claim whose context has ended counts no attempt", cancelledClaim},
}

func claimCounts(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	got := r.ask(settle.ClaimReq{Worker: 42}).Jobs
	is(r, "attempt of the claim", r.first(got).Attempt, 1)
	j := r.job(n)
	is(r, "state of the row", j.State, settle.Running)
	is(r, "attempt of the row", j.Attempt, 1)
	is(r, "holder", j.Worker, 42)
	near(r, "end of the lease", j.Alarm, Start.Add(lease))
}

func claimIsDecided(r *rig) {
	r.insert(withPolicy(settle.Policy{Attempts: 3}), withPolicy(settle.Policy{Attempts: 9, OnEnd: "told"}), task(settle.EnqueueOpts{Tenant: "a"}))
	for range 3 {
		r.claimAsDecided()
		for _, j := range r.list(settle.Filter{States: []settle.State{settle.Running}}) {
			r.moves(j.Decide(failed("again"), jitter, false))
		}
		r.advance(time.Hour)
	}
}

// claimAsDecided claims all that is due and compares each row with Decide.
func (r *rig) claimAsDecided() []settle.ClaimedJob {
	r.Helper()
	before := map[settle.ID]settle.Job{}
	for _, j := range r.list(settle.Filter{States: []settle.State{settle.Pending}}) {
		before[j.ID] = j
	}
	got := r.claim()
	for _, c := range got {
		was, known := before[c.ID]
		check(r, known, "the claimed job %s was pending", c.ID)
		want := was.Decide(settle.Claimed{}, jitter, false)
		is(r, "refusal of the claim", want.Refusal, "")
		is(r, "claimed state", c.State, want.To)
		is(r, "claimed counters", c.Counters, want.Counters)
		is(r, "claimed remaining", c.Remaining, was.Deadline.Sub(r.now()))
		is(r, "stored counters", r.job(c.ID).Counters, want.Counters)
	}
	return got
}

func claimNotFuture(r *rig) {
	r.add(task(settle.EnqueueOpts{Delay: time.Minute}))
	r.advance(time.Minute - time.Microsecond)
	is(r, "claimed before it is due", len(r.claim()), 0)
	r.advance(time.Microsecond)
	is(r, "claimed when it is due", len(r.claim()), 1)
}

func claimNotOverdue(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Deadline: time.Minute}))
	lane := r.insert(task(settle.EnqueueOpts{Deadline: time.Minute}))[0].Lane
	r.advance(time.Minute)
	is(r, "claimed by age at the deadline", len(r.claim()), 0)
	is(r, "claimed by lane at the deadline", len(r.ask(settle.ClaimReq{Lanes: []settle.Lane{lane}}).Jobs), 0)
	r.advance(time.Minute)
	is(r, "claimed after the deadline", len(r.claim()), 0)
	is(r, "attempts", r.job(n).Attempt, 0)
	is(r, "jobs that the sweep ends", r.sweep(), 2)
	is(r, "reason", r.job(n).Reason, settle.EndExpired)
}

func claimNotOthers(r *rig) {
	for _, ev := range []settle.Event{parked("s", "t"), succeeded("1"), hopeless("no"), settle.CancelAsked{}} {
		r.ended(task(settle.EnqueueOpts{}), ev)
	}
	r.started(task(settle.EnqueueOpts{}))
	is(r, "claimed a second time", len(r.claim()), 0)
	r.advance(lease / 2)
	is(r, "claimed within the lease", len(r.claim()), 0)
}

func leaseWithinDeadline(r *rig) {
	c := r.started(task(settle.EnqueueOpts{Deadline: 10 * time.Second}))
	near(r, "end of the lease", r.job(c.ID).Alarm, Start.Add(10*time.Second))
	is(r, "remaining", c.Remaining, 10*time.Second)
}

func claimKinds(r *rig) {
	r.add(of(other, settle.EnqueueOpts{}))
	r.advance(time.Second)
	mine := r.insert(task(settle.EnqueueOpts{}))[0]
	got := r.ask(settle.ClaimReq{Lanes: []settle.Lane{mine.Lane}}).Jobs
	same(r, "claimed", ids(got), []settle.ID{mine.ID})
	r.advance(time.Hour)
	is(r, "claimed an hour later", len(r.claim()), 0)
	is(r, "claimed by who knows the kind", len(r.ask(settle.ClaimReq{Kinds: []string{work, other}}).Jobs), 1)
}

func claimQueue(r *rig) {
	there := r.insert(task(settle.EnqueueOpts{Queue: "q2"}))[0]
	is(r, "claimed by age", len(r.claim()), 0)
	is(r, "claimed by the other queue's lane", len(r.ask(settle.ClaimReq{Lanes: []settle.Lane{there.Lane}}).Jobs), 0)
	is(r, "claimed by its own queue", len(r.ask(settle.ClaimReq{Queue: "q2"}).Jobs), 1)
	is(r, "claimed from a queue that nobody has used", len(r.ask(settle.ClaimReq{Queue: "q3"}).Jobs), 0)
}

func claimNoKinds(r *rig) {
	r.add(task(settle.EnqueueOpts{}))
	is(r, "claimed", len(r.ask(settle.ClaimReq{Kinds: []string{}}).Jobs), 0)
}

func claimLimit(r *rig) {
	r.insert(many(30, work, settle.EnqueueOpts{})...)
	lane := r.lanes(page)[0]
	r.advance(time.Second)
	for _, q := range []settle.ClaimReq{{Limit: 1}, {Limit: 5}, {Limit: 7, Lanes: []settle.Lane{lane}}, {Limit: 4, Lanes: []settle.Lane{lane}, PerLane: 1}} {
		before := r.running()
		is(r, "claimed with limit "+strconv.Itoa(q.Limit), len(r.ask(q).Jobs), q.Limit)
		is(r, "rows that became running", r.running()-before, q.Limit)
	}
	is(r, "claimed when there are fewer", len(r.claim()), 13)
}

func (r *rig) running() int {
	r.Helper()
	return r.count(settle.Filter{States: []settle.State{settle.Running}})
}

func claimSideBySide(r *rig) {
	const total = 240
	r.insert(many(total, work, settle.EnqueueOpts{})...)
	r.advance(time.Second)
	var mu sync.Mutex
	held := map[settle.ID]int{}
	var all sync.WaitGroup
	for w := range 10 {
		all.Go(func() {
			for round := range 20 {
				limit := 1 + 4*(round%2)
				got, err := r.store.Claim(r.ctx, request(settle.ClaimReq{Limit: limit, Worker: int64(w + 1)}))
				check(r, err == nil && len(got.Jobs) <= limit, "a claim of %d brings at most that many: got %d, error %v", limit, len(got.Jobs), err)
				mu.Lock()
				for _, c := range got.Jobs {
					held[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for n, times := range held {
		check(r, times == 1, "job %s is claimed by one worker only: got %d", n, times)
	}
	is(r, "running rows and started handlers", r.running(), len(held))
	is(r, "claimed in all", len(held), total)
}

func claimedWhole(r *rig) {
	p := settle.Policy{Attempts: 4, Timeout: time.Minute, OnEnd: "told"}
	n := settle.New{Kind: work, Input: []byte{0, 1, 2}, EnqueueOpts: settle.EnqueueOpts{Queue: "q", Tenant: "acme", Key: "k", Policy: &p}}
	r.add(n)
	got := r.ask(settle.ClaimReq{Queue: "q"}).Jobs
	c := r.first(got)
	is(r, "kind", c.Kind, work)
	is(r, "queue", c.Queue, "q")
	is(r, "tenant", c.Tenant, "acme")
	is(r, "key", c.Key, "k")
	is(r, "input", string(c.Input), "\x00\x01\x02")
	is(r, "policy", c.Policy, p.WithDefaults())
	is(r, "state", c.State, settle.Running)
	is(r, "counters", c.Counters, settle.Counters{Attempt: 1, Tries: 4})
	is(r, "remaining", c.Remaining, 30*24*time.Hour)
	is(r, "steps", len(c.Steps), 0)
	check(r, c.Wait == nil, "a job that has submitted nothing waits for nothing: got %+v", c.Wait)
	check(r, c.Batch.IsZero(), "a job claimed alone is in no batch: got %s", c.Batch)
}

func claimedAge(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Delay: time.Minute}))
	r.advance(time.Minute + 30*time.Second)
	c := r.claimOne()
	is(r, "age", c.Age, 30*time.Second)
	r.moves(on(c, failedFor(time.Hour)))
	r.advance(2 * time.Hour)
	is(r, "age after a retry", r.claimOne().Age, 2*time.Hour+30*time.Second)
	is(r, "state", r.job(n).State, settle.Running)
}

func claimNext(r *rig) {
	next := func() time.Duration { return r.ask(settle.ClaimReq{}).Next }
	is(r, "next of an empty store", next(), 0)
	r.insert(of(other, settle.EnqueueOpts{Delay: time.Second}), task(settle.EnqueueOpts{Delay: time.Second, Queue: "q2"}))
	is(r, "next when others are due", next(), 0)
	r.insert(task(settle.EnqueueOpts{Delay: time.Minute}), task(settle.EnqueueOpts{Delay: 10 * time.Second, Tenant: "a"}))
	is(r, "next", next(), 10*time.Second)
	r.advance(4 * time.Second)
	is(r, "next four seconds later", next(), 6*time.Second)
	r.advance(6 * time.Second)
	got := r.ask(settle.ClaimReq{})
	is(r, "next after that", got.Next, 50*time.Second)
	r.moves(on(r.first(got.Jobs), failedFor(3*time.Second)))
	is(r, "next when a retry waits", next(), 3*time.Second)
}

func noEarlyAttempt(r *rig) {
	n := r.add(task(settle.EnqueueOpts{Delay: 6 * time.Hour}))
	r.pollUntil(n, 0)
	is(r, "attempts when it is reached", r.job(n).Attempt, 1)
}

func noEarlyRetry(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, failedFor(6*time.Hour)))
	r.pollUntil(c.ID, 1)
	is(r, "attempts when it is reached", r.job(c.ID).Attempt, 2)
}

// pollUntil lets four workers poll hour by hour for six hours.
func (r *rig) pollUntil(n settle.ID, attempts int) {
	r.Helper()
	for hour := range 6 {
		r.advance(time.Hour - time.Duration(hour/5)*tick)
		for w := range int64(4) {
			is(r, "claimed before it is due", len(r.ask(settle.ClaimReq{Worker: w + 1}).Jobs), 0)
		}
		is(r, "moved by the sweep", r.sweep(), 0)
		is(r, "attempts before it is due", r.job(n).Attempt, attempts)
	}
	r.advance(tick)
	is(r, "claimed when it is due", len(r.claim()), 1)
	is(r, "claimed once more", len(r.claim()), 0)
}

func cancelledClaim(r *rig) {
	n := r.add(task(settle.EnqueueOpts{}))
	ctx, stop := cancelled(r)
	defer stop()
	_, err := r.store.Claim(ctx, request(settle.ClaimReq{}))
	check(r, err != nil, "a call whose context has ended tells an error")
	is(r, "attempts", r.job(n).Attempt, 0)
	is(r, "claimed afterwards", len(r.claim()), 1)
}
