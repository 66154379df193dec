package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/settle-go/settle"
)

// showJob writes one job for people. Inputs and outputs are only measured:
// they are data of a user, not text for an operator.
func showJob(w io.Writer, j settle.Job) error {
	t := newTable(w)
	t.row("job", j.ID.String())
	t.row("kind", cell(j.Kind))
	t.row("queue", cell(j.Queue))
	optional(t, "tenant", j.Tenant)
	optional(t, "key", j.Key)
	t.row("state", stateLine(j))
	t.row("attempts", fmt.Sprintf("%d of %d (crashed %d, put off %d, redriven %d)", j.Charged(), j.Tries, j.Crashed, j.Deferred, j.Redrives))
	t.row("enqueued", ago(j.Enqueued, j.Now))
	if j.State.Live() {
		t.row("due", ago(j.Due, j.Now))
		t.row("ends by", ago(j.EndsBy, j.Now))
	} else {
		t.row("ended", ago(j.EndedAt, j.Now))
	}
	for _, s := range j.Steps {
		t.row("finished", stepDone(s))
	}
	t.row("input", size(len(j.Input), j, "--input"))
	if j.State == settle.Succeeded {
		t.row("output", size(len(j.Output), j, "--output"))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return showAttempts(w, j)
}

func optional(t *table, name, value string) {
	if value != "" {
		t.row(name, cell(value))
	}
}

// size says how large data is and how to see it.
func size(n int, j settle.Job, flag string) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d bytes (settle job %s %s)", n, j.ID, flag)
}

// stateLine is the state with its reason and last error.
func stateLine(j settle.Job) string {
	if j.State == settle.Dead || j.State == settle.Cancelled {
		s := string(j.State) + ", " + endText(j)
		if j.Acked {
			s += " (acknowledged)"
		}
		return s
	}
	return j.Label()
}

// endText puts the end reason and the last real error together; of a cancelled
// job, what was said when it was called off.
func endText(j settle.Job) string {
	last, _ := j.LastError()
	if j.State == settle.Cancelled {
		last = settle.Attempt{}
	}
	return clipped(settle.EndText(j.Reason, last.Reason, last.Node, cmp.Or(last.Error, j.Note)), 600)
}

// showAttempts lists the attempts that were recorded; with steps and nodes where
// there are any.
func showAttempts(w io.Writer, j settle.Job) error {
	if len(j.Attempts) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if !slices.ContainsFunc(j.Attempts, func(a settle.Attempt) bool { return a.Step != "" || a.Node != "" }) {
		t := newTable(w, "ATTEMPT", "AT", "REASON", "ERROR")
		for _, at := range j.Attempts {
			t.row(fmt.Sprint(at.N), stamp(at.At), string(at.Reason), clipped(at.Error, 300))
		}
		return t.flush()
	}
	t := newTable(w, "ATTEMPT", "AT", "STEP", "NODE", "REASON", "ERROR")
	for _, at := range j.Attempts {
		t.row(fmt.Sprint(at.N), stamp(at.At), cell(at.Step), cell(at.Node), string(at.Reason), clipped(at.Error, 300))
	}
	return t.flush()
}

// plain says in an operator's words what the store says in a worker's.
func (a *app) plain(id settle.ID, err error) error {
	var stale *settle.StaleError
	switch {
	case errors.Is(err, settle.ErrNotFound):
		return &plainError{fmt.Sprintf("%s has no job %s: it was never accepted here, or it was removed after its end", a.db, id), err}
	case errors.As(err, &stale):
		text := fmt.Sprintf("job %s %s", id, stands(stale.State))
		switch stale.Detail {
		case "":
			text += ": it has just changed"
		case string(settle.RefusedEnded), string(settle.RefusedDone): // it says so already
		default:
			text += ": " + stale.Detail
		}
		return &plainError{text, err}
	}
	return err
}

// stands says in words where a job stands.
func stands(st settle.State) string {
	switch st {
	case settle.Succeeded:
		return "has succeeded"
	case settle.Cancelled:
		return "has been cancelled"
	}
	return "is " + string(st)
}

// plainError shows another text than the error that it stands for.
type plainError struct {
	text string
	err  error
}

// Error returns the text.
func (e *plainError) Error() string { return e.text }

// Unwrap returns the error that it stands for.
func (e *plainError) Unwrap() error { return e.err }
