package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
)

var raceClauses = []clause{
	{"P3 P14 many goroutines and every job ends once in one attempt", raceAll},
	{"B-006 200 races of a sweep with a success have one outcome each", raceSweepSuccess},
	{"B-006 200 races of a sweep with a renewal have one winner each", raceSweepRenewal},
	{"B-009 300 races of a cancel with a finish end as the callers were told", raceCancel},
	{"P9 200 races of a park with its answer deliver it once", raceParkAnswer},
	{"B-063 one key and many goroutines is one job", raceKey},
	{"one id and many goroutines is one job", raceID},
	{"P10 many people who redrive one job give one chance", raceRedrive},
	{"B-050 bulk writers in opposite order do not hinder each other", raceBulk},
	{"B-043 calls whose context ends at any moment leave a sound store", raceContexts},
}

// runningJobs inserts and claims n jobs.
func (r *rig) runningJobs(n int) []settle.ClaimedJob {
	r.Helper()
	r.insert(many(n, work, settle.EnqueueOpts{})...)
	r.advance(time.Second)
	got := r.ask(settle.ClaimReq{Limit: n}).Jobs
	r.want(got, n)
	return got
}

// both runs two calls at once and returns what each was told.
func both[A, B any](a func() A, b func() B) (ra A, rb B) {
	var all sync.WaitGroup
	start := make(chan struct{})
	all.Go(func() { <-start; ra = a() })
	all.Go(func() { <-start; rb = b() })
	close(start)
	all.Wait()
	return ra, rb
}

// told is the answer to one transition, also from a goroutine of its own.
func (r *rig) answer(t settle.Transition) settle.Applied {
	said, err := r.store.Apply(r.ctx, []settle.Transition{t})
	if err != nil || len(said) != 1 {
		r.Errorf("Apply: got %v and error %v, want one answer", said, err)
		return ""
	}
	return said[0]
}

// forEach runs f for each index on a few goroutines.
func forEach(n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

func raceAll(r *rig) {
	const total, workers = 2000, 8
	var ended atomic.Int64
	var attempts sync.Map
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for range total / workers / 50 {
				r.insert(manyNow(50, fmt.Sprint("t", w))...)
			}
		})
		all.Go(func() { r.workUntil(int64(w+1), total, &ended, &attempts) })
	}
	all.Wait()
	is(r, "jobs that ended", ended.Load(), total)
	done := r.list(settle.Filter{States: []settle.State{settle.Succeeded}, Limit: 1000})
	is(r, "succeeded", len(done), total)
	for _, j := range done {
		check(r, j.Attempt == 1, "job %s has one attempt: got %d", j.ID, j.Attempt)
	}
	is(r, "P14 jobs on the books", r.balance(), total)
	is(r, "lanes left", len(r.lanes(page)), 0)
}

func manyNow(n int, tenant string) []settle.New {
	out := make([]settle.New, n)
	for i := range out {
		out[i] = task(settle.EnqueueOpts{Tenant: tenant})
	}
	return out
}

// workUntil claims and settles until all workers together have ended total.
func (r *rig) workUntil(w int64, total int64, ended *atomic.Int64, attempts *sync.Map) {
	for ended.Load() < total && !r.Failed() {
		got, err := r.store.Claim(r.ctx, request(settle.ClaimReq{Limit: 40, Worker: w}))
		if err != nil {
			r.Errorf("Claim: got error %v, want none", err)
			return
		}
		var ts []settle.Transition
		for _, c := range got.Jobs {
			_, twice := attempts.LoadOrStore(c.ID, w)
			check(r, !twice, "job %s is claimed once", c.ID)
			ts = append(ts, on(c, succeeded("1")))
		}
		said, err := r.store.Apply(r.ctx, ts)
		check(r, err == nil, "an apply beside others has no error: got %v", err)
		for _, s := range said {
			check(r, s == settle.Done, "the holder settles its job: got %q", s)
		}
		ended.Add(int64(len(said)))
	}
}

func raceSweepSuccess(r *rig) {
	jobs := r.runningJobs(200)
	r.advance(lease + tick)
	sweeps := byJob(decideOverdue(r.overdue(settle.Cursor{}, 1000).Jobs))
	is(r, "overdue", len(sweeps), len(jobs))
	forEach(len(jobs), func(i int) {
		c := jobs[i]
		swept, settled := both(func() settle.Applied { return r.answer(sweeps[c.ID]) }, func() settle.Applied { return r.answer(on(c, succeeded("1"))) })
		j := r.job(c.ID)
		check(r, (swept == settle.Done) != (settled == settle.Done), "one of sweep and worker wins: got %q and %q", swept, settled)
		check(r, (j.State == settle.Succeeded) == (settled == settle.Done), "the state is what the worker was told: got %s and %q", j.State, settled)
		check(r, (len(j.Attempts) == 1) == (swept == settle.Done), "attempt 1 has one outcome: got %d records, sweep %q", len(j.Attempts), swept)
	})
	is(r, "running afterwards", r.running(), 0)
}

func byJob(ts []settle.Transition) map[settle.ID]settle.Transition {
	out := map[settle.ID]settle.Transition{}
	for _, t := range ts {
		out[t.Job] = t
	}
	return out
}

func raceSweepRenewal(r *rig) {
	jobs := r.runningJobs(200)
	r.advance(lease + tick)
	sweeps := byJob(decideOverdue(r.overdue(settle.Cursor{}, 1000).Jobs))
	forEach(len(jobs), func(i int) {
		c := jobs[i]
		swept, lost := both(func() settle.Applied { return r.answer(sweeps[c.ID]) }, func() int { return len(r.renew(c)) })
		check(r, (swept == settle.Done) == (lost == 1), "a renewed lease is not swept and a swept one is lost: got %q and %d lost", swept, lost)
		check(r, (r.job(c.ID).State == settle.Running) == (lost == 0), "the job runs if it was renewed: got %s", r.job(c.ID).State)
	})
}

func raceCancel(r *rig) {
	jobs := r.runningJobs(300)
	outcomes := []settle.Event{succeeded("1"), failed("no"), hopeless("no")}
	states := []settle.State{settle.Succeeded, settle.Pending, settle.Dead}
	wishes := map[settle.ID]settle.Transition{}
	for _, j := range r.list(settle.Filter{Limit: 1000}) {
		wishes[j.ID] = j.Decide(settle.CancelAsked{}, jitter, false)
	}
	forEach(len(jobs), func(i int) {
		c, kind := jobs[i], rand.IntN(3)
		called, settled := both(func() settle.Applied { return r.answer(wishes[c.ID]) }, func() settle.Applied { return r.answer(on(c, outcomes[kind])) })
		check(r, (called == settle.Done) != (settled == settle.Done), "one of cancel and finish wins: got %q and %q", called, settled)
		want := states[kind]
		if called == settle.Done {
			want = settle.Cancelled
		}
		check(r, r.job(c.ID).State == want, "the final state is %s, as the callers were told: got %s", want, r.job(c.ID).State)
	})
	is(r, "running afterwards", r.running(), 0)
}

// raceParkAnswer: two bridges bring the answer while the holder parks.
func raceParkAnswer(r *rig) {
	const races = 200
	r.insert(many(races, work, settle.EnqueueOpts{})...)
	r.advance(time.Second)
	jobs := r.ask(settle.ClaimReq{Limit: races}).Jobs
	r.want(jobs, races)
	done := map[settle.Applied]int{}
	for i := range jobs {
		c, ticket := jobs[i], fmt.Sprint("race", i)
		r.submits(&c, submission(ticket))
		park := on(c, settle.Parked{Wait: submission(ticket)})
		said, bridges := both(func() settle.Applied { return r.answer(park) }, func() [2]settle.Applied {
			a, b := both(func() settle.Applied { return r.bridge(c.ID, answer(ticket, "out")) },
				func() settle.Applied { return r.bridge(c.ID, answer(ticket, "out")) })
			return [2]settle.Applied{a, b}
		})
		is(r, "answer to the park", said, settle.Done)
		for _, b := range bridges {
			done[b]++
		}
		j := r.job(c.ID)
		is(r, "state", j.State, settle.Pending)
		is(r, "steps", len(j.Steps), 1)
		is(r, "excused", j.Excused, 1)
		is(r, "attempts recorded", len(j.Attempts), 0)
		if r.Failed() {
			return
		}
	}
	check(r, done[settle.Done] >= races, "each answer is taken once: got %v", done)
	r.balanced()
}

// bridge brings an answer until the store has it, or the job waits for it no more.
func (r *rig) bridge(n settle.ID, d settle.Delivered) settle.Applied {
	for range 100 {
		jobs, err := r.store.Waits(r.ctx, []settle.ID{n})
		if err != nil {
			r.Errorf("Waits: got error %v, want none", err)
			return ""
		}
		if jobs[0].Wait == nil {
			return settle.Already
		}
		if said := r.answer(jobs[0].Decide(jobs[0].Answered(d), jitter, false)); said != settle.Stale {
			return said
		}
	}
	r.Error("a bridge never gets through")
	return ""
}

func raceKey(r *rig) {
	var fresh atomic.Int64
	var first sync.Map
	forEach(64, func(int) {
		got := r.insert(keyed("k"), keyed("l"))
		for i, in := range got {
			if !in.Existing {
				fresh.Add(1)
			}
			was, _ := first.LoadOrStore(i, in.ID)
			check(r, was == in.ID, "everybody is told the same job: got %s and %s", was, in.ID)
		}
	})
	is(r, "jobs stored", fresh.Load(), 2)
	is(r, "jobs", r.count(settle.Filter{}), 2)
}

func raceID(r *rig) {
	var fresh atomic.Int64
	forEach(64, func(int) {
		if in := r.insert(task(settle.EnqueueOpts{ID: id("a")}))[0]; !in.Existing {
			fresh.Add(1)
		}
	})
	is(r, "answers that say stored", fresh.Load(), 1)
	is(r, "jobs", r.count(settle.Filter{}), 1)
}

func raceRedrive(r *rig) {
	n := r.died(task(settle.EnqueueOpts{}))
	wish := r.seen(n, settle.RedriveAsked{})
	var given atomic.Int64
	forEach(32, func(int) {
		if r.answer(wish) == settle.Done {
			given.Add(1)
		}
	})
	is(r, "chances given", given.Load(), 1)
	is(r, "redrives", r.job(n).Redrives, 1)
}

func raceBulk(r *rig) {
	const total = 300
	jobs := r.runningJobs(total)
	var cancels []settle.Transition
	for _, j := range r.list(settle.Filter{Limit: 1000}) {
		cancels = append(cancels, j.Decide(settle.CancelAsked{}, jitter, false))
	}
	r.advance(lease + tick)
	writers := []func() error{
		func() error { return r.bulk(shuffled(settles(jobs))) },
		func() error { return r.bulk(shuffled(cancels)) },
		func() error {
			over, err := r.store.Overdue(r.ctx, settle.Cursor{}, 1000)
			if err != nil {
				return err
			}
			return r.bulk(decideOverdue(over.Jobs))
		},
		func() error {
			_, err := r.store.Renew(r.ctx, worker, heldBy(shuffled(jobs)), lease)
			return err
		},
		func() error { _, err := r.store.Prune(r.ctx, settle.Keep{}, 100); return err },
	}
	forEach(4*len(writers), func(i int) {
		err := writers[i%len(writers)]()
		check(r, err == nil, "no bulk writer is hindered by another: got %v", err)
	})
	is(r, "running afterwards", r.running(), 0)
	is(r, "P14 jobs on the books", r.balance(), total)
}

func settles(jobs []settle.ClaimedJob) (ts []settle.Transition) {
	for _, c := range jobs {
		ts = append(ts, on(c, succeeded("1")))
	}
	return ts
}

func shuffled[T any](in []T) []T {
	out := append([]T(nil), in...)
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// bulk applies in steps, as a caller with many transitions does.
func (r *rig) bulk(ts []settle.Transition) error {
	for len(ts) > 0 {
		n := min(40, len(ts))
		if _, err := r.store.Apply(r.ctx, ts[:n]); err != nil {
			return err
		}
		ts = ts[n:]
	}
	return nil
}

func raceContexts(r *rig) {
	r.insert(many(300, work, settle.EnqueueOpts{})...)
	r.advance(time.Second)
	forEach(600, func(i int) {
		ctx, stop := context.WithTimeout(r.ctx, time.Duration(rand.IntN(500))*time.Microsecond)
		defer stop()
		got, err := r.store.Claim(ctx, request(settle.ClaimReq{Limit: 1}))
		if err != nil || len(got.Jobs) == 0 {
			return
		}
		_, _ = r.store.Apply(ctx, []settle.Transition{on(got.Jobs[0], succeeded("1"))})
	})
	for range 50 {
		n := r.add(task(settle.EnqueueOpts{Queue: "q2"}))
		c := r.first(r.ask(settle.ClaimReq{Queue: "q2"}).Jobs)
		is(r, "the job that is claimed", c.ID, n)
		r.moves(on(c, succeeded("1")))
	}
	r.advance(lease + tick)
	r.sweep()
	is(r, "running after one lease", r.running(), 0)
	for _, j := range r.list(settle.Filter{Queue: queue, Limit: 1000}) {
		check(r, j.State == settle.Pending || j.State == settle.Succeeded, "every job is in a legal state: got %s", j.State)
		check(r, j.State == settle.Succeeded || len(r.job(j.ID).Attempts) == j.Attempt, "each attempt of a lost claim is on record: got %d", j.Attempt)
	}
	is(r, "P14 jobs on the books", r.balance(), 350)
}
