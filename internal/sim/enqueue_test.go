package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// The kinds of jobs; nobody runs the last one.
const (
	work = "work"
	told = "told" // of end hooks
	rare = "rare"
)

var kinds = []string{work, "other", told, rare}

// served are the kinds that the first worker runs; the second one all but the first.
var served = []string{work, "other", told, settle.RecallKind}

const side = "side" // a second queue

// enqueue brings new work.
func (w *world) enqueue() {
	jobs := make([]settle.New, 1+w.rng.IntN(4))
	for i := range jobs {
		jobs[i] = w.newJob()
	}
	if w.one(12) {
		jobs[w.rng.IntN(len(jobs))].HeadStart = -time.Second
		w.hit("enqueue of a batch with an invalid job")
	} else if len(jobs) > 1 && w.one(6) {
		jobs[0].ID = jobs[1].ID
		w.hit("enqueue of one id twice in a batch")
	}
	w.news = append(w.news, jobs)
	w.insert(jobs)
}

// again repeats an earlier enqueue, as one does whose answer was lost.
func (w *world) again() {
	if len(w.news) > 0 {
		w.insert(pickOne(w, w.news))
		w.hit("enqueue repeated")
	}
}

func (w *world) newJob() settle.New {
	n := settle.New{Kind: pickOne(w, []string{work, work, work, work, "other", "other", told, rare}), Input: fmt.Appendf(nil, "in %d", w.rng.IntN(1e6)), Gated: w.one(5)}
	if w.cfg.MaxBytes > 0 {
		n.Input = slices.Repeat(n.Input, 60_000/len(n.Input))
	}
	n.ID, n.Tenant = w.id("job"), pickOne(w, w.tenants)
	if w.one(8) {
		n.Queue = side
	}
	if w.one(3) {
		n.Key = fmt.Sprint("key ", w.rng.IntN(3))
	}
	switch w.rng.IntN(6) {
	case 0:
		n.Delay = w.between(0, 40*time.Second) + time.Duration(w.rng.IntN(1000))
	case 1:
		n.Due = instant(w.m.now).Add(w.between(-time.Hour, time.Minute))
	case 2:
		n.HeadStart = w.between(0, 2*time.Minute)
	}
	if w.one(4) {
		n.Deadline = w.between(time.Second, 3*time.Minute)
	}
	n.Policy = w.policy()
	return n
}

// policy is small, so that budgets are spent; sometimes it is the default.
func (w *world) policy() *settle.Policy {
	if w.one(12) {
		return nil
	}
	p := settle.Policy{Attempts: 1 + w.rng.IntN(5), Crashes: 1 + w.rng.IntN(3), Deferrals: 1 + w.rng.IntN(3), Redrives: 1 + w.rng.IntN(2),
		StepAttempts: 1 + w.rng.IntN(2), StepAttemptsRetryable: 2 + w.rng.IntN(2), BackoffMin: w.between(10*time.Millisecond, time.Second),
		BackoffMax: 5 * time.Second, Wait: w.between(2*time.Second, 30*time.Second), Deadline: w.between(20*time.Second, 20*time.Minute)}
	if w.one(4) {
		p.OnEnd = told
	}
	return &p
}

// insert makes one Insert and compares its answer.
func (w *world) insert(jobs []settle.New) {
	i := w.any()
	before, room := len(w.m.live()), w.room(i)
	got, err := w.store[i].Insert(w.ctx, jobs...)
	w.dirty = true
	if room.bytes {
		w.madeRoom()
		before = len(w.m.live())
	}
	want := w.m.insert(jobs, room, errors.Is(err, settle.ErrFull))
	w.changed(i, before)
	w.say("enqueue %d through handle %d → %v %v", len(jobs), i, got, err)
	switch {
	case want.err == errInvalid:
		var invalid *settle.InvalidError
		w.check(errors.As(err, &invalid), "Insert", "got %v, want an InvalidError", err)
		return
	case want.err != nil:
		w.check(errors.Is(err, settle.ErrFull), "Insert", "got %v, want ErrFull", err)
		w.hit(map[bool]string{true: "enqueue refused: full of bytes", false: "enqueue refused: full of jobs"}[room.bytes])
		return
	}
	w.must(err, "Insert")
	w.check(len(got) == len(want.out), "Insert", "%d answers to %d jobs", len(got), len(jobs))
	w.adopt()
	for k := range got {
		w.placed(jobs[k], got[k], want.out[k])
	}
	w.heard(i, got)
}

// placed compares what became of one job, and learns its lane.
func (w *world) placed(n settle.New, got, want settle.Inserted) {
	j := w.m.byID[got.ID]
	w.check(j != nil, "Insert", "it names a job that was never accepted: %+v", got)
	if !got.Existing {
		key := laneKey{j.queue, j.tenant}
		if w.m.lanes[key] == 0 {
			w.m.lanes[key] = got.Lane
		}
		if j.lane == 0 {
			j.lane = w.m.lanes[key]
		}
	}
	if want.Lane == 0 && want.State.Live() {
		want.Lane = j.lane
	}
	w.check(got == want, "Insert", "got %+v, want %+v", got, want)
	switch {
	case got.Existing && got.ID == n.ID:
		w.hit("enqueue met its own id")
	case got.Existing:
		w.hit("enqueue met a taken key")
	}
}

// heard nudges the workers of this process; a lost answer is repeated later.
func (w *world) heard(i int, got []settle.Inserted) {
	if w.one(8) {
		w.hit("lost answer: Insert")
		return
	}
	for _, in := range got {
		if in.Lane != 0 && w.m.byID[in.ID].queue == settle.DefaultQueue && !w.one(4) { // nudges may be lost
			w.hands[i].add(in.Lane)
		}
	}
}

// madeRoom finds out what was removed before its time because the file was
// full: succeeded and cancelled jobs, oldest end first, never others.
func (w *world) madeRoom() {
	there := w.look.bodies()
	var out, stay []*job
	for _, j := range w.m.in(settle.Succeeded, settle.Cancelled) {
		switch _, ok := there[j.n]; {
		case !ok:
			out = append(out, j)
			w.check(w.m.keep[j.queue] <= w.m.now, "room", "%s was removed although its queue is kept", j)
		case j.ended <= w.m.now && w.m.keep[j.queue] <= w.m.now:
			stay = append(stay, j)
		}
	}
	for _, a := range out {
		for _, b := range stay {
			w.check(a.ended <= b.ended, "room", "%s was removed before %s, which had ended earlier", a, b)
		}
	}
	if len(out) > 0 {
		w.hit("removed before their time to make room")
		w.m.remove(out...)
	}
}
