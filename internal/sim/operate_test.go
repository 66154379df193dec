package sim

import (
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// cancel calls a job off; sometimes the decision is carried out later.
func (w *world) cancel() {
	w.wish(w.m.jobs, settle.CancelAsked{Why: fmt.Sprint("why ", w.rng.IntN(100))})
}

// redrive gives a job that has ended a new chance.
func (w *world) redrive() {
	jobs := w.m.in(settle.Dead, settle.Cancelled)
	if w.one(6) {
		jobs = w.m.jobs
	}
	w.wish(jobs, settle.RedriveAsked{})
}

func (w *world) wish(jobs []*job, ev settle.Event) {
	if len(jobs) == 0 {
		return
	}
	at := w.any()
	got, _ := w.read(w.store[at], pickOne(w, jobs).id)
	d := decided(&got, ev, 0.5, false)
	if w.one(3) {
		w.wishes = append(w.wishes, d)
		return
	}
	w.apply(at, []deed{d})
	if w.one(3) {
		w.apply(at, []deed{d})
		w.hit("wish of a person repeated")
	}
}

// hold keeps a lane or a queue from being claimed, or lets it go.
func (w *world) hold() {
	k := holdKey{queue: pickOne(w, []string{settle.DefaultQueue, settle.DefaultQueue, side}), whole: w.one(3)}
	if !k.whole {
		k.tenant = pickOne(w, w.tenants)
	}
	at := w.any()
	w.dirty = true
	if w.one(3) {
		was, err := w.store[at].Release(w.ctx, k.queue, k.tenant, k.whole)
		w.must(err, "Release")
		old := w.m.holds[k]
		w.check(was == (old != nil && old.until > w.m.now), "Release", "it says %v, the hold was %+v", was, old)
		delete(w.m.holds, k)
		w.hit("hold released")
		return
	}
	h := settle.Hold{Queue: k.queue, Tenant: k.tenant, Whole: k.whole, For: w.between(time.Second, 30*time.Second),
		Reason: "operator", Text: fmt.Sprint("text ", w.rng.IntN(100)), Tries: w.rng.IntN(5)}
	w.must(w.store[at].Hold(w.ctx, h), "Hold")
	w.m.queues[k.queue] = true
	began := w.m.now
	if old := w.m.holds[k]; old != nil && old.until > w.m.now {
		began = old.began
	}
	w.m.holds[k] = &hold{began: began, until: w.m.now + micros(h.For), reason: h.Reason, text: h.Text, tries: h.Tries}
	w.hit(map[bool]string{true: "queue paused", false: "lane held"}[k.whole])
}

// remove removes jobs by id, for a person: only ended ones go.
func (w *world) remove() {
	if len(w.m.jobs) == 0 {
		return
	}
	ids := []settle.ID{w.id("nobody")}
	chosen := map[*job]bool{}
	for range 1 + w.rng.IntN(3) {
		j := pickOne(w, w.m.jobs)
		ids = append(ids, j.id)
		if j.state.Ended() {
			chosen[j] = true
		} else {
			w.hit("remove leaves a live job")
		}
	}
	got, err := w.store[w.any()].Remove(w.ctx, ids)
	w.must(err, "Remove")
	w.dirty = true
	w.check(got == len(chosen), "Remove", "it says %d, want %d", got, len(chosen))
	for j := range chosen {
		w.m.remove(j)
		w.hit("removed by a person")
	}
}

// ack marks dead jobs as seen or unseen.
func (w *world) ack() {
	jobs := w.m.in(settle.Dead)
	if len(jobs) == 0 || w.one(8) {
		jobs = w.m.jobs
	}
	if len(jobs) == 0 {
		return
	}
	j, acked := pickOne(w, jobs), !w.one(3)
	got, err := w.store[w.any()].Ack(w.ctx, []settle.ID{j.id}, acked)
	w.must(err, "Ack")
	w.dirty = true
	want := 0
	if j.state == settle.Dead && j.acked != acked {
		j.acked, want = acked, 1
		w.hit("dead letter acknowledged, or not any more")
	}
	w.check(got == want, "Ack", "it says %d, want %d", got, want)
}

// note keeps the ended jobs of a queue, as an unfinished run does.
func (w *world) note() {
	n := settle.Note{Queue: pickOne(w, []string{settle.DefaultQueue, side}), Text: fmt.Appendf(nil, "note %d", w.rng.IntN(100)), Keep: w.between(0, 2*time.Minute)}
	at := w.any()
	w.must(w.store[at].SetNote(w.ctx, n), "SetNote")
	w.dirty = true
	w.m.keep[n.Queue] = w.m.now + micros(n.Keep)
	got, err := w.store[at].Note(w.ctx, n.Queue)
	w.must(err, "Note")
	w.check(string(got.Text) == string(n.Text) && got.Keep == n.Keep, "Note", "got %+v, want %+v", got, n)
	w.hit("queue kept for a time")
}

// ---- clocks

// wait lets time pass while nobody sweeps.
func (w *world) wait() {
	d := w.between(0, 3*time.Second)
	switch w.rng.IntN(12) {
	case 0:
		d = w.between(0, 40*time.Second)
	case 1:
		d = w.between(0, 15*time.Minute)
	}
	w.advance(d)
	w.say("%s pass", d)
}

// attend lets time pass while workers renew and sweep as they should.
func (w *world) attend() {
	for range 1 + w.rng.IntN(4) {
		w.advance(w.between(0, settle.SweepInterval))
		for _, h := range w.hands {
			if !w.one(3) {
				w.renewAll(h, false)
			}
		}
		w.pass(pickOne(w, w.hands[:]), 50)
	}
	w.hit("time passes while sweeps run")
}

// leap moves the store's clock against those of the processes.
func (w *world) leap() {
	d := pickOne(w, []time.Duration{w.between(0, 4*time.Second), w.between(6*time.Second, time.Minute), w.between(time.Minute, 2*time.Hour), 30 * 24 * time.Hour})
	if w.one(2) {
		d = -d
	}
	w.jump(d)
	w.say("the clock jumps by %s", d)
	switch {
	case d > 5*time.Second:
		w.hit("clock jumps forward")
	case d < -5*time.Second:
		w.hit("clock jumps back")
	default:
		w.hit("clock slips")
	}
	if d > 0 && w.one(2) { // a clock that is ahead for a while and then put right
		w.sweep()
		w.advance(w.between(0, time.Minute))
		w.sweep()
		w.jump(-d)
		w.hit("clock put right")
	}
}
