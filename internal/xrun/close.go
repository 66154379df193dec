package xrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// firstErrors is how many items are shown for each reason.
const firstErrors = 3

// close says how the start ended and returns its exit code.
func (s *start) close(ctx context.Context, end ending) (int, error) {
	if usage(end.err) {
		return ExitFailed, end.err
	}
	sum, err := s.summarise(ctx, end)
	if err != nil {
		return ExitFailed, errors.Join(end.err, err)
	}
	if end.complete && s.note.Finished.IsZero() {
		s.note.Finished = time.Now().UTC()
		if err := writeNote(ctx, s.store, s.queue(), s.note); err != nil {
			return ExitFailed, err
		}
	}
	if s.JSON {
		b, err := json.Marshal(sum)
		if err != nil {
			return ExitFailed, err
		}
		fmt.Fprintf(s.Err, "%s\n", b)
	} else {
		fmt.Fprint(s.Err, sum.String())
	}
	switch {
	case !end.complete:
		return ExitFailed, nil
	case sum.bad()+sum.Left[settle.Dead]+sum.Left[settle.Cancelled] > 0:
		return ExitDead, nil
	default:
		return ExitOK, nil
	}
}

// summarise gathers what the closing table shows: what this process counted,
// and of those that did not succeed what the store knows.
func (s *start) summarise(ctx context.Context, end ending) (summary, error) {
	c := s.tally.now()
	left := s.tally.left()
	sum := summary{Run: s.Name, Queue: s.queue(), DB: s.DB, Took: time.Since(s.began).Seconds(), Complete: end.complete, Why: end.why,
		Again: s.Again, Items: c.Fed, Succeeded: c.Before[settle.Succeeded] + c.Now[settle.Succeeded],
		Before: c.Before[settle.Succeeded], Refused: c.Refused, Skipped: c.Skipped}
	if end.complete {
		sum.Left = left
		sum.Succeeded -= left[settle.Succeeded]
	} else {
		rows, err := countRows(ctx, s.store, s.queue())
		if err != nil {
			return sum, err
		}
		sum.Open = live(rows)
	}
	switch {
	case end.err != nil:
		sum.Why = end.err.Error()
	case end.input != nil:
		sum.Why = end.input.Error()
	}
	return sum, s.addBad(ctx, end, &sum)
}

// addBad adds the items that are dead or cancelled.
func (s *start) addBad(ctx context.Context, end ending, sum *summary) error {
	return eachPage(ctx, s.store, s.queue(), badStates, func(jobs []settle.Job) error {
		for _, j := range jobs {
			groups := &sum.Bad
			if end.complete { // else it is not known what the input still holds
				switch s.tally.origin(j.ID) {
				case fromEarlier:
					sum.Earlier++
					continue
				case fromLeft:
					groups = &sum.LeftBad
				}
			}
			g := group(groups, j.State, j.Reason)
			g.N++
			if len(g.First) == firstErrors {
				continue
			}
			full, err := s.store.Job(ctx, j.ID) // with its attempts
			if errors.Is(err, settle.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			last, _ := full.LastError()
			g.First = append(g.First, badItem{Number: itemNumber(j.Key), Item: itemText(j.Input), Job: j.ID, Error: last.Error})
		}
		return nil
	})
}
