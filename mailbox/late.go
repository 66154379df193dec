package mailbox

import (
	"container/list"
	"time"
)

// maxLate is how many submissions without an answer are remembered. The oldest
// is forgotten first; its late answer then expires by itself.
const maxLate = 10_000

// late remembers the waits that ended without an answer, so that one which comes
// after all, and is nudged, does not lie there until it expires. It is removed
// some time after its nudge only: another process may have waited longer.
type late struct {
	keys   map[string]*list.Element
	all    list.List // *lateWait, the oldest first
	nudged []*lateWait
}

type lateWait struct {
	key    string
	ticket Ticket
	due    time.Time // zero = not nudged
}

func (l *late) add(key string, t Ticket) {
	if l.keys == nil {
		l.keys = map[string]*list.Element{}
	}
	l.forget(key)
	if l.all.Len() >= maxLate {
		l.forget(l.all.Front().Value.(*lateWait).key)
	}
	l.keys[key] = l.all.PushBack(&lateWait{key: key, ticket: t})
}

// forget drops a key: somebody waits for it again, or its answer is gone.
func (l *late) forget(key string) {
	if e := l.keys[key]; e != nil {
		l.all.Remove(e)
		delete(l.keys, key)
	}
}

// nudge marks a key as worth a look at due, if it is remembered and not marked
// yet.
func (l *late) nudge(key string, due time.Time) bool {
	e := l.keys[key]
	if e == nil {
		return false
	}
	w := e.Value.(*lateWait)
	if !w.due.IsZero() {
		return false
	}
	w.due = due
	l.nudged = append(l.nudged, w)
	return true
}

// take takes those that are due, or says when the first will be; the zero time
// is never.
func (l *late) take(now time.Time) (waits []*lateWait, wake time.Time) {
	for len(l.nudged) > 0 && len(waits) < batch {
		w := l.nudged[0]
		if w.due.After(now) {
			return waits, w.due
		}
		l.nudged[0] = nil
		l.nudged = l.nudged[1:]
		if e := l.keys[w.key]; e != nil && e.Value == w {
			w.due = time.Time{} // a later nudge counts anew
			waits = append(waits, w)
		}
	}
	return waits, time.Time{}
}
