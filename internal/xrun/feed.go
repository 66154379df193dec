package xrun

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/xrun/split"
)

// A batch of items is what has gathered while the last one was stored, up to
// these bounds: the first item of a slow input is stored at once.
const (
	batchItems = 500
	batchBytes = 4 << 20
)

// How long reading pauses when the store is full.
const (
	fullPauseMin = 50 * time.Millisecond
	fullPauseMax = 2 * time.Second
)

// feeder stores the items of the input.
type feeder struct {
	s      *start
	policy []byte // stored form
	seen   map[uint64]uint64
	number int64 // of the last item
	full   bool  // the store is full: said already
}

// line is one item of the input, or the end of it.
type line struct {
	item []byte
	err  error
}

// feed stores all items of the input. It returns at its end, with what is
// wrong with it, or when the context ends.
func (s *start) feed(ctx context.Context) error {
	policy, err := s.policy().AppendBinary(nil)
	if err != nil {
		return err
	}
	f := &feeder{s: s, policy: policy, seen: map[uint64]uint64{}}
	lines := make(chan line, 2*batchItems)
	go s.read(ctx, lines)
	for {
		batch, end, err := f.gather(ctx, lines)
		if s.order != nil {
			if e := s.order.room(ctx, len(batch)); e != nil {
				return e
			}
		}
		if e := f.store(ctx, batch); e != nil {
			return e
		}
		if end {
			return err
		}
	}
}

// read reads the input. It may stay in a read that nobody can interrupt; it
// touches nothing else.
func (s *start) read(ctx context.Context, lines chan<- line) {
	bad := s.items.Check()
	for {
		item, err := s.items.Next()
		if bad != nil {
			item, err = nil, &UsageError{bad}
		}
		select {
		case lines <- line{item, err}:
		case <-ctx.Done():
			return
		}
		var long *split.TooLongError
		if err != nil && !errors.As(err, &long) {
			return
		}
	}
}

// gather takes the next item and what has gathered behind it.
func (f *feeder) gather(ctx context.Context, lines <-chan line) (batch []settle.New, end bool, err error) {
	size := 0
	most := batchItems
	if f.s.order != nil {
		most = max(min(most, f.s.order.window/4), 1)
	}
	for len(batch) < most && size < batchBytes {
		var l line
		if len(batch) == 0 {
			select {
			case l = <-lines:
			case <-ctx.Done():
				return nil, true, context.Cause(ctx)
			}
		} else {
			select {
			case l = <-lines:
			default:
				return batch, false, nil
			}
		}
		var long *split.TooLongError
		switch {
		case errors.As(l.err, &long):
			f.s.con.say("%v: it is not run", long)
			f.s.tally.refused()
		case errors.Is(l.err, io.EOF):
			return batch, true, nil
		case usage(l.err):
			return nil, true, l.err
		case l.err != nil:
			return batch, true, fmt.Errorf("read the input: %w", l.err)
		case f.s.own.is(l.item):
			f.s.skipOwn(l.item)
		default:
			batch = append(batch, f.job(l.item))
			size += len(l.item)
		}
	}
	return batch, false, nil
}

func usage(err error) bool {
	var u *UsageError
	return errors.As(err, &u)
}

// job makes the job of an item.
func (f *feeder) job(item []byte) settle.New {
	f.number++
	id := jobID(f.s.Name, item, 0)
	short := binary.BigEndian.Uint64(id[8:])
	if n := f.seen[short]; n > 0 {
		id = jobID(f.s.Name, item, n)
	}
	f.seen[short]++
	return settle.New{Kind: kind, Input: item, RawPolicy: f.policy,
		EnqueueOpts: settle.EnqueueOpts{ID: id, Queue: f.s.queue(), Key: itemKey(f.number, id)}}
}

// store stores a batch. When the store is full it tries again, with less at a
// time, while the work makes room.
func (f *feeder) store(ctx context.Context, batch []settle.New) error {
	pause, tries := fullPauseMin, 0
	n := len(batch)
	for len(batch) > 0 {
		n = min(n, len(batch))
		got, err := f.s.store.Insert(ctx, batch[:n]...)
		switch {
		case errors.Is(err, settle.ErrFull):
			if n = max(n/2, 1); n > 1 {
				continue
			}
			f.sayFull()
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, fullPauseMax)
			continue
		case err != nil:
			if tries++; tries >= storeTries || hopeless(ctx, err) {
				return fmt.Errorf("store the items: %w", err)
			}
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, fullPauseMax)
			continue
		}
		tries = 0
		if err := f.note(ctx, got); err != nil {
			return err
		}
		batch = batch[n:]
		pause, n = fullPauseMin, 2*n
	}
	return nil
}

// storeTries is how often a store that fails is asked, over some ten seconds.
const storeTries = 10

// hopeless reports whether an error of the store is the same when asked again.
func hopeless(ctx context.Context, err error) bool {
	var invalid *settle.InvalidError
	var refused *settle.RefusedError
	return ctx.Err() != nil || errors.Is(err, settle.ErrClosed) || errors.As(err, &invalid) || errors.As(err, &refused)
}

func (f *feeder) sayFull() {
	if !f.full {
		f.full = true
		f.s.con.say("the store is full (%v): reading goes on as work makes room", f.s.DB)
	}
}

// note tells everybody what was stored.
func (f *feeder) note(ctx context.Context, got []settle.Inserted) error {
	for _, in := range got {
		if !in.Existing {
			if err := f.s.unfinished(ctx); err != nil {
				return err
			}
		}
		if live := f.s.tally.fed(in); live && f.s.order != nil {
			f.s.order.place(in.ID)
		}
	}
	f.s.wake()
	return nil
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
