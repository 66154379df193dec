package sim

import (
	"time"

	"github.com/settle-go/settle"
)

// renew extends all leases of a worker; what is lost is dropped.
func (w *world) renew() { w.renewAll(pickOne(w, w.hands[:]), w.one(10)) }

func (w *world) renewAll(h *hand, lost bool) {
	held := make([]settle.Held, 0, len(h.held))
	for _, c := range h.held {
		held = append(held, settle.Held{Job: c.ID, Attempt: c.Attempt, Handle: c.Handle})
	}
	gone := w.renewed(h.at, h.id, held, h.lease)
	if lost {
		w.hit("lost answer: Renew")
		return
	}
	for _, id := range gone {
		w.drop(h, id)
	}
}

// renewed makes one Renew and compares its answer.
func (w *world) renewed(at int, worker int64, held []settle.Held, lease time.Duration) []settle.ID {
	got, err := w.store[at].Renew(w.ctx, worker, held, lease)
	w.must(err, "Renew")
	w.dirty = true
	want := w.m.renew(worker, held, lease)
	w.say("worker %d renews %d → lost %d", worker, len(held), len(got))
	w.same("Renew", differ(got, want))
	lost := map[settle.ID]bool{}
	for _, id := range got {
		lost[id] = true
		w.hit("renewal came late")
	}
	for _, hd := range held {
		if j := w.m.find(hd.Job, hd.Handle); j != nil && !lost[hd.Job] {
			j.lent(w, lease)
			w.hit("renewed")
		}
	}
	return got
}

// drop lets a job go; its handler may still speak.
func (w *world) drop(h *hand, id settle.ID) {
	for i, c := range h.held {
		if c.ID == id {
			w.haunt(ghost{job: *c, by: h.id})
			h.held = append(h.held[:i:i], h.held[i+1:]...)
			return
		}
	}
}

// haunt remembers an attempt that its worker no longer has.
func (w *world) haunt(g ghost) {
	if len(w.ghosts) < 40 {
		w.ghosts = append(w.ghosts, g)
		return
	}
	w.ghosts[w.rng.IntN(len(w.ghosts))] = g
}

// crash drops a worker's memory; sometimes its process closes the file as well.
func (w *world) crash() {
	h := pickOne(w, w.hands[:])
	w.hit("crash of a worker")
	if len(h.held) > 0 {
		w.hit("crash of a worker that held jobs")
	}
	w.kill(h)
}

func (w *world) kill(h *hand) {
	w.say("worker %d crashes with %d jobs and %d unsettled", h.id, len(h.held), len(h.offers))
	for _, c := range h.held {
		w.haunt(ghost{job: *c, by: h.id})
	}
	fresh := w.newHand(h.at)
	if w.one(4) {
		fresh.id = h.id // calls itself the same
	}
	w.hands[h.at] = fresh
}

// reopen closes the file in one process, or in all, and opens it anew.
func (w *world) reopen() {
	if i := w.rng.IntN(2); w.two && w.one(2) {
		w.kill(w.hands[i])
		w.must(w.store[i].Close(), "close")
		w.open(i)
		w.hit("reopen beside another process")
		return
	}
	for i, h := range w.hands {
		w.kill(h)
		w.must(w.store[i].Close(), "close")
	}
	w.look.close()
	w.openAll()
	w.look = openLook(w.path)
	w.hit("reopen of a file that nobody had open")
}
