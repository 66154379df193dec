package xrun

import (
	"context"
	"errors"
	"sync"

	"github.com/settle-go/settle"
)

// order lets items through in the order of the input (-k). An item waits until
// every item placed before it has ended. One that has no place yet waits until
// it has one, or until the input has ended: then it is left from an earlier
// input and may pass at any time.
//
// At most window items wait, and at most window are placed and have not passed:
// so an item that failed, and is now behind all the others in the queue, finds
// a free slot when it comes up again.
type order struct {
	window int
	moved  chan struct{} // the head has moved; holds one

	mu     sync.Mutex
	line   []settle.ID // placed and not yet passed, in order; ended ones too
	head   int         // where in line the first that has not ended stands
	placed map[settle.ID]bool
	ended  map[settle.ID]bool // ended, but not yet passed by head
	eof    bool
	turn   map[settle.ID]chan bool // who waits; true = it may pass, false = it must go
}

func newOrder(window int) *order {
	return &order{window: window, moved: make(chan struct{}, 1), placed: map[settle.ID]bool{}, ended: map[settle.ID]bool{}, turn: map[settle.ID]chan bool{}}
}

// room waits until n more items may be placed; only the context ends it early.
func (o *order) room(ctx context.Context, n int) error {
	for {
		o.mu.Lock()
		ahead := len(o.line) - o.head
		o.mu.Unlock()
		if ahead == 0 || ahead+n <= o.window {
			return nil
		}
		select {
		case <-o.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// crowded reports whether an item had better not run now: as many as may wait
// do so already, and it is not the one that all wait for.
func (o *order) crowded(id settle.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, ok := o.first()
	return len(o.turn) >= o.window && (!ok || first != id)
}

// place puts an item behind all that were placed before it.
func (o *order) place(id settle.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = append(o.line, id)
	o.placed[id] = true
	o.advance()
}

// end says that an item has been written, or will never be.
func (o *order) end(id settle.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[id] = true
	o.advance()
}

// inputEnded says that nothing more will be placed.
func (o *order) inputEnded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.eof = true
	for id := range o.turn {
		if !o.placed[id] {
			o.pass(id)
		}
	}
}

var errEvicted = errors.New("sent away while waiting for its turn")

// evict sends everybody away who waits.
func (o *order) evict() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, turn := range o.turn {
		turn <- false
		delete(o.turn, id)
	}
}

// wait waits for an item's turn; only the context, or evict, ends it early.
func (o *order) wait(ctx context.Context, id settle.ID) error {
	o.mu.Lock()
	turn := make(chan bool, 1)
	o.turn[id] = turn
	if first, ok := o.first(); ok && first == id || o.eof && !o.placed[id] {
		o.pass(id)
	}
	o.mu.Unlock()
	select {
	case may := <-turn:
		if !may {
			return errEvicted
		}
		return nil
	case <-ctx.Done():
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.turn, id)
		return context.Cause(ctx)
	}
}

// first is the first item that has not ended.
func (o *order) first() (settle.ID, bool) {
	if o.head == len(o.line) {
		return settle.ID{}, false
	}
	return o.line[o.head], true
}

// stuck is the first item if nobody here waits with it.
func (o *order) stuck() (settle.ID, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.first()
	_, waits := o.turn[id]
	return id, ok && !waits
}

// advance moves the head over what has ended and lets the first pass.
func (o *order) advance() {
	for o.head < len(o.line) && o.ended[o.line[o.head]] {
		id := o.line[o.head]
		delete(o.ended, id)
		delete(o.placed, id)
		o.head++
		select {
		case o.moved <- struct{}{}:
		default:
		}
	}
	if o.head > 1000 && o.head > len(o.line)/2 { // give the memory back
		o.line = append([]settle.ID(nil), o.line[o.head:]...)
		o.head = 0
	}
	if id, ok := o.first(); ok {
		o.pass(id)
	}
}

func (o *order) pass(id settle.ID) {
	if turn, waits := o.turn[id]; waits {
		turn <- true
		delete(o.turn, id)
	}
}
