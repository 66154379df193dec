package xrun

import (
	"sync"

	"github.com/settle-go/settle"
)

// tally counts what happens to the items of one start. Its methods may be
// called from any number of goroutines, and in any order: an item may end
// before it is known to stand in the input.
type tally struct {
	mu sync.Mutex
	// tracked: the queue was not empty at the start, so items may be left from
	// an earlier input. Only then the ids are kept.
	tracked bool
	live    map[settle.ID]bool         // in the input, not ended
	unfed   map[settle.ID]settle.State // ended in this start, not (yet) in the input
	mine    map[settle.ID]bool         // in the input, dead or cancelled
	own     map[string]bool            // items that are settle's own files

	counts
}

// counts are the numbers of a tally.
type counts struct {
	Fed     int64                  // items in the input
	New     int64                  // of them: not known before
	Refused int64                  // items that are too long to be stored
	Skipped int64                  // items that are settle's own files
	Before  map[settle.State]int64 // in the input, had ended before this start
	Now     map[settle.State]int64 // ended in this start
	Open    int64                  // not ended, as far as is known here
}

func newTally(open int64, tracked bool) *tally {
	t := &tally{tracked: tracked, live: map[settle.ID]bool{}, unfed: map[settle.ID]settle.State{}, mine: map[settle.ID]bool{}, own: map[string]bool{}}
	t.Open = open
	t.Before, t.Now = map[settle.State]int64{}, map[settle.State]int64{}
	return t
}

// fed notes that an item stands in the input, and what the store said of it.
// It returns true if the item is still to end.
func (t *tally) fed(in settle.Inserted) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Fed++
	if !in.Existing {
		t.New++
		t.Open++
	}
	if end, ended := t.unfed[in.ID]; ended { // it was faster than its line
		delete(t.unfed, in.ID)
		t.note(in.ID, end)
		return false
	}
	if in.Existing && in.State.Ended() {
		t.Before[in.State]++
		t.note(in.ID, in.State)
		return false
	}
	if t.tracked {
		t.live[in.ID] = true
	}
	return true
}

// refused notes an item of the input that cannot be stored.
func (t *tally) refused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Refused++
}

// skip notes an item that is one of settle's own files, and reports whether it
// is the first time.
func (t *tally) skip(item string) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = !t.own[item]
	t.own[item] = true
	if first {
		t.Skipped++
	}
	return first
}

// dropped notes that an item that had been stored was taken out of the run.
func (t *tally) dropped(id settle.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Open--
	if t.live[id] || !t.tracked { // it was counted when it was stored
		t.Fed--
	}
	delete(t.live, id)
}

// ended notes that an item has ended in this start.
func (t *tally) ended(id settle.ID, to settle.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Now[to]++
	t.Open--
	switch {
	case !t.tracked: // it stands in the input, where else
	case t.live[id]:
		delete(t.live, id)
		t.note(id, to)
	default:
		t.unfed[id] = to
	}
}

// note remembers the ends that are listed at the end.
func (t *tally) note(id settle.ID, end settle.State) {
	if t.tracked && end != settle.Succeeded {
		t.mine[id] = true
	}
}

// where an item that has ended badly belongs.
type origin int

const (
	fromInput   origin = iota // it stands in this input
	fromLeft                  // it is left from an earlier input and ended in this start
	fromEarlier               // it is not in this input and had ended before
)

// origin says where an item belongs, once the input has ended.
func (t *tally) origin(id settle.ID) origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.tracked || t.mine[id] || t.live[id] {
		return fromInput
	}
	if _, left := t.unfed[id]; left {
		return fromLeft
	}
	return fromEarlier
}

// now returns the numbers.
func (t *tally) now() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.Before, c.Now = copyOf(t.Before), copyOf(t.Now)
	return c
}

// left counts the items that ended in this start and do not stand in the
// input, once that has ended.
func (t *tally) left() map[settle.State]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := map[settle.State]int64{}
	for _, end := range t.unfed {
		left[end]++
	}
	return left
}

func copyOf(m map[settle.State]int64) map[settle.State]int64 {
	out := make(map[settle.State]int64, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func sum(m map[settle.State]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}
