package mailbox

import (
	"container/heap"
	"container/list"
	"context"
	"errors"
	"time"
)

// errCeiling marks a wait whose time is up.
var errCeiling = errors.New("the ceiling is reached")

// wait is one wait. It stands in one of the rota's three rows, or is being
// looked at, or has ended.
type wait struct {
	ctx    context.Context
	key    string
	ticket Ticket
	began  time.Time
	until  time.Time
	tell   func(Delivery, error) // takes the end, once
	stop   func() bool           // no longer listens to ctx

	row  *list.List // nil while it is being looked at, and after its end
	elem *list.Element
	next time.Time // when it is to be polled
	at   int       // its place in the heap of ceilings; -1 = it has left it

	why   error // if not nil, the next look is the last, and this is what it ends with
	last  bool  // the look under way is that one
	again bool  // nudged while it was looked at
	stale bool  // what lies there was another submission's, when last seen
	blind error // of the latest look, if it failed
	deaf  bool  // some look failed
}

// rota says which waits are looked at next. It knows no clock and no lock.
//
//	ending   their next look is the last     first of all
//	asked    new, or nudged                  takes turns with what is due in the round
//	round    least recently looked at first  when due
type rota struct {
	keys                 map[string]*wait
	ending, asked, round list.List
	ceilings             ceilings
	wasAsked             bool // whose turn it is between asked and round
}

func newRota() *rota { return &rota{keys: map[string]*wait{}} }

// add takes a new wait, which asks to be looked at.
func (r *rota) add(w *wait) {
	r.keys[w.key] = w
	heap.Push(&r.ceilings, w)
	w.move(&r.asked)
}

// nudge has the wait for a key looked at soon, if there is one.
func (r *rota) nudge(key string) bool {
	w := r.keys[key]
	switch {
	case w == nil:
		return false
	case w.row == nil:
		w.again = true
	case w.row == &r.round:
		w.move(&r.asked)
	}
	return true
}

// end makes the next look of a wait its last: why is what it ends with, unless
// that look finds more. The first reason stays.
func (r *rota) end(w *wait, why error) {
	if w.why != nil || r.keys[w.key] != w {
		return
	}
	w.why = why
	if w.row != nil {
		w.move(&r.ending)
	}
}

// due makes every wait of the round due now.
func (r *rota) due(now time.Time) {
	for e := r.round.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*wait); w.next.After(now) {
			w.next = now
		}
	}
}

// take takes the waits that are looked at next, or says when there will be some;
// the zero time is never. Those of one batch all have their last look, or none
// has. ahead is how much before its time a wait is looked at in company.
func (r *rota) take(now time.Time, ahead time.Duration) (waits []*wait, wake time.Time) {
	for len(r.ceilings) > 0 && !r.ceilings[0].until.After(now) {
		w := r.ceilings[0]
		heap.Pop(&r.ceilings)
		r.end(w, errCeiling)
	}
	polls := r.round.Len() > 0 && !r.head().next.After(now)
	switch {
	case r.ending.Len() > 0:
		// All at once: the time for a last look is not spent on others first.
		return takeFrom(&r.ending, r.ending.Len(), func(*wait) bool { return true }), now
	case r.asked.Len() > 0 && !(polls && r.wasAsked):
		r.wasAsked = true
		return takeFrom(&r.asked, batch, func(*wait) bool { return true }), now
	case polls:
		r.wasAsked = false
		return takeFrom(&r.round, batch, func(w *wait) bool { return !w.next.After(now.Add(ahead)) }), now
	}
	if r.round.Len() > 0 {
		wake = r.head().next
	}
	if len(r.ceilings) > 0 && (wake.IsZero() || r.ceilings[0].until.Before(wake)) {
		wake = r.ceilings[0].until
	}
	return nil, wake
}

func (r *rota) head() *wait { return r.round.Front().Value.(*wait) }

// takeFrom takes up to so many waits from the beginning of a row while they are ok.
func takeFrom(row *list.List, most int, ok func(*wait) bool) (waits []*wait) {
	for row.Len() > 0 && len(waits) < most {
		w := row.Front().Value.(*wait)
		if !ok(w) {
			break
		}
		w.move(nil)
		w.last, w.again = w.why != nil, false
		waits = append(waits, w)
	}
	return waits
}

// back takes a wait that was looked at in vain, to be polled at next. ended says
// that this was its last look: it is out.
func (r *rota) back(w *wait, next time.Time) (ended bool) {
	switch {
	case w.last:
		r.remove(w)
		return true
	case w.why != nil:
		w.move(&r.ending)
	case w.again:
		w.move(&r.asked)
	default:
		w.next = next
		w.move(&r.round)
	}
	return false
}

// remove takes a wait out that has ended.
func (r *rota) remove(w *wait) {
	delete(r.keys, w.key)
	if w.at >= 0 {
		heap.Remove(&r.ceilings, w.at)
	}
	w.move(nil)
}

// move puts a wait at the end of a row; nil = of none.
func (w *wait) move(row *list.List) {
	if w.row != nil {
		w.row.Remove(w.elem)
		w.elem = nil
	}
	if w.row = row; row != nil {
		w.elem = row.PushBack(w)
	}
}

// ceilings is a heap of waits, the earliest ceiling first.
type ceilings []*wait

func (c ceilings) Len() int           { return len(c) }
func (c ceilings) Less(i, j int) bool { return c[i].until.Before(c[j].until) }
func (c ceilings) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].at, c[j].at = i, j
}

// Push is heap's.
func (c *ceilings) Push(x any) {
	w := x.(*wait)
	w.at = len(*c)
	*c = append(*c, w)
}

// Pop is heap's.
func (c *ceilings) Pop() any {
	last := len(*c) - 1
	w := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	w.at = -1
	return w
}
