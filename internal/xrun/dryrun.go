package xrun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/xrun/split"
)

// DryRun shows on standard output, for each item, what a start would do, and
// changes nothing. st is nil when there is no database yet.
func (p *Plan) DryRun(ctx context.Context, st settle.Store) error {
	out := bufio.NewWriter(p.Out)
	f := &feeder{s: &start{Plan: p}, seen: map[uint64]uint64{}}
	if err := p.items.Check(); err != nil {
		return &UsageError{err}
	}
	own, err := p.ownFiles(false)
	if err != nil {
		return err
	}
	run, ours, skip := int64(0), int64(0), map[settle.State]int64{}
	for {
		item, err := p.items.Next()
		var long *split.TooLongError
		switch {
		case errors.Is(err, io.EOF):
			if err := out.Flush(); err != nil {
				return &outputError{err}
			}
			text := endsText(skip)
			if ours > 0 {
				if text != "" {
					text += ", "
				}
				text += humanize.Comma(ours) + " of settle's own files"
			}
			if text == "" {
				text = "none"
			}
			_, err := fmt.Fprintf(p.Err, "settle: run %s would run %s and skip %s; nothing was changed\n", p.Name, items(run), text)
			return err
		case errors.As(err, &long):
			fmt.Fprintf(out, "refuse  %v\n", long)
			continue
		case err != nil:
			return errors.Join(fmt.Errorf("read the input: %w", err), out.Flush())
		case own.is(item):
			ours++
			fmt.Fprintf(out, "skip    %s (settle's own file)\n", itemText(item))
			continue
		}
		n := f.job(item)
		state, err := p.stateOf(ctx, st, n.ID)
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if state.Ended() {
			skip[state]++
			fmt.Fprintf(out, "skip    %s (%s)\n", itemText(item), state)
		} else {
			run++
			fmt.Fprintf(out, "run     %s\n", child.Line(p.tmpl.Fill(item, f.number)))
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(err, out.Flush())
		}
	}
}

// stateOf is where an item would stand when a start begins with it.
func (p *Plan) stateOf(ctx context.Context, st settle.Store, id settle.ID) (settle.State, error) {
	if st == nil || p.Forget {
		return settle.Pending, nil
	}
	j, err := st.Job(ctx, id)
	switch {
	case errors.Is(err, settle.ErrNotFound):
		return settle.Pending, nil
	case err != nil:
		return "", err
	case p.RetryDead && j.State == settle.Dead:
		return settle.Pending, nil
	}
	return j.State, nil
}
