package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// call is one caller's part of a transaction.
type call struct {
	run  func(*tx) error
	done chan answer
}

// answer is what a call came to.
type answer struct {
	err   error
	panic *panicked
}

// panicked carries a panic from the goroutine that led to the one that called.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.value, p.stack) }

// thrown is the error, or the panic, in the caller's own goroutine.
func (a answer) thrown() error {
	if a.panic != nil {
		panic(a.panic)
	}
	return a.err
}

func (c *call) answer(err error) {
	var p *panicked
	errors.As(err, &p)
	c.done <- answer{err, p}
}

// try runs the call's part.
func (c *call) try(t *tx) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	return c.run(t)
}

// do runs fn inside a transaction that others may share. fn may run again: it
// must set its results anew. An error of fn undoes what it changed, and only
// that. A call whose context ends before it is begun is not run at all.
func (w *writer) do(ctx context.Context, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	c := &call{fn, make(chan answer, 1)}
	w.mu.Lock()
	if w.s.closed.Load() { // Close answers what was appended before it
		w.mu.Unlock()
		return settle.ErrClosed
	}
	w.todo = append(w.todo, c)
	w.mu.Unlock()
	return w.wait(ctx, c).thrown()
}

// wait is until the call has been answered, by somebody who leads or by itself.
func (w *writer) wait(ctx context.Context, c *call) answer {
	select {
	case w.turn <- struct{}{}:
		w.lead(c)
		return <-c.done
	default:
	}
	limit := time.NewTimer(turnLimit)
	defer limit.Stop()
	select {
	case a := <-c.done:
		return a
	case w.turn <- struct{}{}:
		w.lead(c)
		return <-c.done
	case <-ctx.Done():
		return w.giveUp(c, context.Cause(ctx))
	case <-limit.C:
		return w.giveUp(c, held())
	}
}

func held() error {
	return fmt.Errorf("the writer was held for %s: is another call of this store made inside InTx?", turnLimit)
}

// giveUp takes a call back, unless it has been begun: then its answer counts.
func (w *writer) giveUp(c *call, cause error) answer {
	if w.takeBack(c) {
		return answer{err: cause}
	}
	select {
	case a := <-c.done:
		return a
	case w.turn <- struct{}{}: // it was put back because it did not fit
		defer func() { <-w.turn }()
		if w.takeBack(c) {
			return answer{err: cause}
		}
		return <-c.done
	}
}

func (w *writer) takeBack(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.todo, c)
	if i >= 0 {
		w.todo = slices.Delete(w.todo, i, i+1)
	}
	return i >= 0
}
