package storetest

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

var retentionClauses = []clause{
	{"B-064 only what ended longer ago than its own limit is removed", pruneByEnd},
	{"B-064 removal goes in small steps", pruneSteps},
	{"B-037 dead jobs stay until a person or a stated policy removes them", deadStay},
	{"P6 each removal is counted by queue and end", removalsCounted},
	{"P6 Remove removes ended jobs and leaves live and unknown ones", removes},
	{"a removed job is gone with its attempts and steps", removedIsGone},
	{"a note keeps a queue's ended jobs whatever Keep says", noteKeeps},
	{"a note is kept for each queue", notes},
	{"Prune tells that nothing is left to do", pruneNothing},
}

const day = 24 * time.Hour

func (r *rig) prune(k settle.Keep, limit int) settle.Pruned {
	r.Helper()
	p, err := r.store.Prune(r.ctx, k, limit)
	ok(r, "Prune", err)
	return p
}

func (r *rig) remove(jobs ...settle.ID) int {
	r.Helper()
	n, err := r.store.Remove(r.ctx, jobs)
	ok(r, "Remove", err)
	return n
}

func (r *rig) note(queue string) settle.Note {
	r.Helper()
	n, err := r.store.Note(r.ctx, queue)
	ok(r, "Note", err)
	return n
}

func (r *rig) gone(n settle.ID) bool {
	r.Helper()
	_, err := r.store.Job(r.ctx, n)
	return errors.Is(err, settle.ErrNotFound)
}

// monthOld builds the jobs of B-064, each 30 days old, by name.
func (r *rig) monthOld() map[string]settle.ID {
	r.Helper()
	long := settle.EnqueueOpts{Deadline: 300 * day}
	ago := func(d time.Duration) { r.clock.Set(Start.Add(30*day - d)) }
	jobs := map[string]settle.ID{}
	ago(30 * day)
	jobs["due tomorrow"] = r.add(task(settle.EnqueueOpts{Delay: 31 * day, Deadline: 300 * day}))
	claimed := map[string]settle.ClaimedJob{}
	for _, name := range []string{"running", "retrying", "awaiting", "dead yesterday", "succeeded yesterday", "succeeded 20 days ago", "cancelled 20 days ago", "dead 20 days ago"} {
		claimed[name] = r.started(task(long))
		jobs[name] = claimed[name].ID
	}
	jobs["event pending"] = r.add(settle.New{Kind: "event", Gated: true, EnqueueOpts: long})
	ago(20 * day)
	r.moves(on(claimed["succeeded 20 days ago"], succeeded("1")))
	r.moves(on(claimed["cancelled 20 days ago"], settle.CancelAsked{}))
	r.moves(on(claimed["dead 20 days ago"], hopeless("no")))
	ago(1 * day)
	r.moves(on(claimed["retrying"], failedFor(2*day)))
	r.moves(on(claimed["awaiting"], parked("s", "t")))
	r.moves(on(claimed["dead yesterday"], hopeless("no")))
	r.moves(on(claimed["succeeded yesterday"], succeeded("1")))
	ago(0)
	return jobs
}

// left reports jobs that are there and must not be, or the reverse.
func (r *rig) left(jobs map[string]settle.ID, removed ...string) {
	r.Helper()
	for name, n := range jobs {
		is(r, "removed: "+name, r.gone(n), slices.Contains(removed, name))
	}
}

func pruneByEnd(r *rig) {
	jobs := r.monthOld()
	is(r, "removed by default", r.prune(settle.Keep{}, 1000).Removed, 2)
	r.left(jobs, "succeeded 20 days ago", "cancelled 20 days ago")
	is(r, "removed when dead ones have a limit", r.prune(settle.Keep{Dead: 7 * day}, 1000).Removed, 1)
	r.left(jobs, "succeeded 20 days ago", "cancelled 20 days ago", "dead 20 days ago")
	is(r, "removed when all limits are short", r.prune(settle.Keep{Succeeded: time.Hour, Cancelled: time.Hour, Dead: time.Hour}, 1000).Removed, 2)
	r.left(jobs, "succeeded 20 days ago", "cancelled 20 days ago", "dead 20 days ago", "dead yesterday", "succeeded yesterday")
	is(r, "claimed afterwards", len(r.ask(settle.ClaimReq{Kinds: []string{"event"}}).Jobs), 1)
}

func (r *rig) finish(n int, ev settle.Event) []settle.ID {
	r.Helper()
	all := r.addAll(many(n, work, settle.EnqueueOpts{}))
	r.advance(time.Second)
	var ts []settle.Transition
	for _, c := range r.ask(settle.ClaimReq{Limit: n}).Jobs {
		ts = append(ts, on(c, ev))
	}
	r.apply(ts...)
	return all
}

func pruneSteps(r *rig) {
	r.finish(25, succeeded("1"))
	r.advance(8 * day)
	live := r.add(task(settle.EnqueueOpts{}))
	for _, want := range []int{10, 10, 5} {
		p := r.prune(settle.Keep{}, 10)
		is(r, "removed by one step", p.Removed, want)
		check(r, p.More || want < 10, "a step that reached its limit says that there is more")
		is(r, "claims in between wait for nothing", len(r.ask(settle.ClaimReq{Kinds: []string{other}}).Jobs), 0)
	}
	is(r, "jobs left", r.count(settle.Filter{}), 1)
	is(r, "the live one", r.claimOne().ID, live)
}

func deadStay(r *rig) {
	r.finish(20, hopeless("no"))
	r.advance(365 * day)
	is(r, "removed by default", r.prune(settle.Keep{}, 1000).Removed, 0)
	is(r, "dead jobs", r.count(settle.Filter{States: []settle.State{settle.Dead}}), 20)
	is(r, "removed under a policy that keeps them longer", r.prune(settle.Keep{Dead: 366 * day}, 1000).Removed, 0)
	is(r, "removed under a policy", r.prune(settle.Keep{Dead: 30 * day}, 1000).Removed, 20)
	is(r, "counted", r.removed(queue, settle.Dead), 20)
}

func (r *rig) removed(queue string, state settle.State) int {
	r.Helper()
	all, err := r.store.Removed(r.ctx)
	ok(r, "Removed", err)
	n := 0
	for _, c := range all {
		if c.Queue == queue && c.State == state {
			n += int(c.N)
		}
	}
	return n
}

func removalsCounted(r *rig) {
	r.finish(3, succeeded("1"))
	dead := r.finish(4, hopeless("no"))
	r.finish(5, settle.CancelAsked{})
	n := r.add(task(settle.EnqueueOpts{Queue: "q2"}))
	r.moves(r.seen(n, settle.CancelAsked{}))
	is(r, "removed by a person", r.remove(dead[0]), 1)
	r.advance(8 * day)
	r.prune(settle.Keep{Dead: day}, 1000)
	is(r, "succeeded", r.removed(queue, settle.Succeeded), 3)
	is(r, "dead", r.removed(queue, settle.Dead), 4)
	is(r, "cancelled", r.removed(queue, settle.Cancelled), 5)
	is(r, "cancelled in another queue", r.removed("q2", settle.Cancelled), 1)
	r.finish(2, succeeded("1"))
	r.advance(8 * day)
	r.prune(settle.Keep{}, 1000)
	is(r, "succeeded later on", r.removed(queue, settle.Succeeded), 5)
}

func removes(r *rig) {
	dead, done := r.died(task(settle.EnqueueOpts{})), r.ended(task(settle.EnqueueOpts{}), succeeded("1"))
	waits := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(waits, parked("s", "t")))
	runs := r.started(task(settle.EnqueueOpts{}))
	pending := r.add(task(settle.EnqueueOpts{}))
	is(r, "removed", r.remove(dead, done, waits.ID, runs.ID, pending, id("nobody"), dead), 2)
	check(r, r.gone(dead) && r.gone(done), "the ended jobs are gone")
	for _, n := range []settle.ID{waits.ID, runs.ID, pending} {
		check(r, r.job(n).State.Live(), "a live job stays: got %s", r.job(n).State)
	}
	is(r, "removed again", r.remove(dead), 0)
	is(r, "counted", r.removed(queue, settle.Dead), 1)
}

func removedIsGone(r *rig) {
	c := r.started(task(settle.EnqueueOpts{ID: id("a"), Key: "k"}))
	r.moves(on(c, parked("s", "t")))
	r.moves(r.seen(c.ID, answered("t", "1")))
	late := on(r.claimOne(), hopeless("secret"))
	r.moves(late)
	is(r, "removed", r.remove(c.ID), 1)
	is(r, "jobs listed", r.count(settle.Filter{}), 0)
	is(r, "counted as dead", r.counted(queue, settle.Dead).N, 0)
	check(r, r.apply(late)[0] != settle.Done, "a transition of a removed job moves nothing")
	is(r, "Existing of a job under its id", r.insert(task(settle.EnqueueOpts{ID: id("a")}))[0].Existing, false)
	j := r.job(id("a"))
	is(r, "attempts of its successor", len(j.Attempts), 0)
	is(r, "steps of its successor", len(j.Steps), 0)
	is(r, "attempt of its successor", r.claimOne().Attempt, 1)
}

func noteKeeps(r *rig) {
	all := r.finish(3, succeeded("1"))
	elsewhere := r.add(task(settle.EnqueueOpts{Queue: "q2"}))
	r.moves(r.seen(elsewhere, settle.CancelAsked{}))
	ok(r, "SetNote", r.store.SetNote(r.ctx, settle.Note{Queue: queue, Text: []byte("run 7"), Keep: 40 * day}))
	r.advance(39 * day)
	is(r, "removed while the note keeps", r.prune(settle.Keep{}, 1000).Removed, 1)
	check(r, r.gone(elsewhere) && !r.gone(all[0]), "only the other queue's job is gone")
	is(r, "how long the note still keeps", r.note(queue).Keep, day)
	r.advance(day + tick)
	is(r, "removed afterwards", r.prune(settle.Keep{}, 1000).Removed, 3)
	is(r, "keep of a note that has passed", r.note(queue).Keep, 0)
}

func notes(r *rig) {
	is(r, "text of no note", len(r.note("q").Text), 0)
	text := []byte("a\x00b\xff")
	ok(r, "SetNote", r.store.SetNote(r.ctx, settle.Note{Queue: "q", Text: text}))
	ok(r, "SetNote", r.store.SetNote(r.ctx, settle.Note{Queue: "q2", Text: []byte("two"), Keep: time.Hour}))
	check(r, bytes.Equal(r.note("q").Text, text), "a note comes back byte for byte: got %q", r.note("q").Text)
	is(r, "queue", r.note("q").Queue, "q")
	is(r, "keep of no rule", r.note("q").Keep, 0)
	is(r, "text of another queue", string(r.note("q2").Text), "two")
	is(r, "keep of another queue", r.note("q2").Keep, time.Hour)
	ok(r, "SetNote", r.store.SetNote(r.ctx, settle.Note{Queue: "q2", Text: []byte("three")}))
	is(r, "text that was replaced", string(r.note("q2").Text), "three")
	is(r, "keep that was replaced", r.note("q2").Keep, 0)
}

func pruneNothing(r *rig) {
	r.finish(3, succeeded("1"))
	p := r.prune(settle.Keep{}, 10)
	is(r, "removed", p.Removed, 0)
	is(r, "more", p.More, false)
}
