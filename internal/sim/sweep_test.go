package sim

import (
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/jump"
)

// sweeper is a worker's sweep, by the rules of worker/sweep.go.
type sweeper struct {
	jumps   jump.Detector
	back    time.Duration // rows due within this time are still to be pulled
	trust   trust
	trusted bool          // the clock may be used to remove
	after   settle.Cursor // of the slow sweep
	page    []deed        // decided by the slow sweep and not yet applied
}

// sweep is a whole pass of one worker's sweep.
func (w *world) sweep() { w.pass(pickOne(w, w.hands[:]), 1+w.rng.IntN(6)) }

// pass looks at page after page and applies what is decided. A pass that may
// expire leaves no job whose alarm had passed, unless it is a lease that may not
// be ended yet.
func (w *world) pass(h *hand, page int) {
	var may jump.May
	after := settle.Cursor{}
	for pages := 0; ; pages++ {
		w.check(pages < 200, "sweep", "the cursor does not reach the end")
		deeds, next, m := w.lookAt(h, after, page)
		may = m
		if h.sweep.back > 0 {
			w.pull(h)
			continue
		}
		if len(deeds) > 0 {
			w.apply(h.at, deeds)
		}
		if after = next; after == (settle.Cursor{}) {
			break
		}
		w.hit("sweep of several pages")
	}
	if !may.Expire {
		w.hit("sweep does not trust the time")
		return
	}
	w.passed(may.EndLeases)
	for _, j := range w.m.live() {
		leased := j.state == settle.Running && j.alarm < j.deadline && !may.EndLeases
		if j.state == settle.Pending && j.own.delivered == w.mono+1 {
			w.hit("overdue job keeps its result until the next sweep")
			continue
		}
		w.check(j.alarm > w.m.now || leased, "ends_by", "a whole pass of a sweep left %s, whose alarm passed %s ago", j, span(w.m.now-j.alarm))
	}
}

// lookAt reads one page and decides each of its jobs.
func (w *world) lookAt(h *hand, after settle.Cursor, limit int) ([]deed, settle.Cursor, jump.May) {
	page, err := w.store[h.at].Overdue(w.ctx, after, limit)
	w.must(err, "Overdue")
	want, next := w.m.overdue(after, limit)
	var got, expected []string
	for i := range page.Jobs {
		got = append(got, w.line(&page.Jobs[i]))
	}
	for _, j := range want {
		expected = append(expected, w.modelLine(j))
	}
	w.same("Overdue", differ(got, expected))
	w.check(page.Next == next && unix(page.Now) == w.m.now, "Overdue", "next %+v at %s, want %+v", page.Next, page.Now, next)
	h.sweep.trust.look(w.drift, w.mono)
	may := h.sweep.jumps.Look(page.Now, w.mono)
	h.sweep.trusted = may.Expire
	h.sweep.back = max(h.sweep.back, may.Back)
	w.say("worker %d sweeps: %d overdue, %+v", h.id, len(page.Jobs), may)
	var deeds []deed
	for i := range page.Jobs {
		j := &page.Jobs[i]
		if ev := j.Passed(may.EndLeases, may.Expire); ev != nil {
			w.sound(&h.sweep, want[i], ev)
			deeds = append(deeds, decided(j, ev, w.rng.Float64(), true))
		} else {
			w.hit("sweep leaves a job after a jump")
		}
	}
	return deeds, page.Next, may
}

// glance is the first half of a slow sweep: it looks and decides; act is the
// second. Between them anything may happen.
func (w *world) glance() {
	h := pickOne(w, w.hands[:])
	deeds, next, _ := w.lookAt(h, h.sweep.after, 1+w.rng.IntN(4))
	h.sweep.page, h.sweep.after = deeds, next
	if w.one(2) {
		w.renewAll(pickOne(w, w.hands[:]), false)
	}
}

func (w *world) act() {
	if h := pickOne(w, w.hands[:]); len(h.sweep.page) > 0 {
		w.hit("sweep acts on an old look")
		for _, said := range w.apply(h.at, h.sweep.page) {
			if said == settle.Stale {
				w.hit("sweep was too slow")
			}
		}
		h.sweep.page = nil
	}
	if len(w.wishes) > 0 {
		w.hit("person or bridge acts on an old look")
		w.apply(w.any(), w.wishes)
		w.wishes = nil
	}
}

// pull brings back what a jump of the clock has stranded.
func (w *world) pull(h *hand) {
	const page, cut = 1000, 5 * time.Minute
	got, err := w.store[h.at].Pull(w.ctx, h.sweep.back, max(h.lease, cut), page)
	w.must(err, "Pull")
	w.dirty = true
	alarms := map[*job]int64{}
	for _, j := range w.m.in(settle.Running) {
		alarms[j] = j.alarm
	}
	want := w.m.pull(h.sweep.back, max(h.lease, cut))
	for j, was := range alarms {
		if j.alarm != was {
			j.own.drift = w.drift // the lease now ends by this time
		}
	}
	w.say("worker %d pulls what is due within %s: %d", h.id, h.sweep.back, got)
	w.check(got == want, "Pull", "moved %d rows, want %d", got, want)
	h.sweep.back = 0
	w.hit("pull after a jump back")
	if got > 0 {
		w.hit("pull moved rows")
	}
}

// prune removes what is past its time, if the time is trusted.
func (w *world) prune() {
	h := pickOne(w, w.hands[:])
	if !h.sweep.trusted || !h.sweep.trust.steady(w.drift) {
		w.hit("prune does not trust the time")
		return
	}
	k := settle.Keep{Succeeded: w.between(time.Second, 10*time.Minute), Cancelled: w.between(time.Second, 10*time.Minute)}
	if w.one(3) {
		k.Dead = w.between(time.Minute, 10*time.Minute)
	}
	w.pruned(h.at, k, 1+w.rng.IntN(8))
}

func (w *world) pruned(at int, k settle.Keep, limit int) {
	got, err := w.store[at].Prune(w.ctx, k, limit)
	w.must(err, "Prune")
	w.dirty = true
	clear(w.m.orphans)
	w.say("prune %+v limit %d → %+v", k, limit, got)
	left := limit
	total := 0
	for _, part := range []struct {
		state settle.State
		keep  time.Duration
	}{{settle.Succeeded, k.Succeeded}, {settle.Cancelled, k.Cancelled}, {settle.Dead, k.Dead}} {
		if part.keep > 0 {
			n := w.prunedState(part.state, w.m.now-micros(part.keep), left)
			left, total = left-n, total+n
		}
	}
	if w.cfg.MaxBytes > 0 { // then also before their time
		before := len(w.m.jobs)
		w.madeRoom()
		total += before - len(w.m.jobs)
	}
	w.check(got.Removed == total && got.More == (total >= limit), "Prune", "it says %+v, %d were removed", got, total)
	if total > 0 {
		w.hit("prune removed jobs")
	}
}

// prunedState takes out of the model what must be gone, oldest end first. Of
// jobs that ended at the same moment the store may choose.
func (w *world) prunedState(st settle.State, until int64, limit int) (removed int) {
	there := w.look.bodies()
	var due, out []*job
	for _, j := range w.m.in(st) {
		if j.ended <= until && w.m.keep[j.queue] <= w.m.now {
			due = append(due, j)
		} else if j.ended <= until {
			w.hit("prune leaves a queue that is kept")
		}
	}
	for _, j := range due {
		if _, stays := there[j.n]; !stays {
			out = append(out, j)
		}
	}
	w.check(len(out) == min(limit, len(due)), "Prune", "%d %s jobs were removed, %d are past their time, the limit was %d", len(out), st, len(due), limit)
	for _, a := range out {
		for _, b := range due {
			w.check(a.ended <= b.ended || there[b.n].IsZero(), "Prune", "%s was removed before %s, which had ended earlier", a, b)
		}
	}
	w.m.remove(out...)
	return len(out)
}
