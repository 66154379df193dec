package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// auditJSON is the answer of audit --json.
type auditJSON struct {
	Balanced   bool          `json:"balanced"`
	Accepted   int64         `json:"accepted"`
	Live       int64         `json:"live"`
	Succeeded  int64         `json:"succeeded"`
	Dead       int64         `json:"dead"`
	Cancelled  int64         `json:"cancelled"`
	Removed    int64         `json:"removed"`
	WrittenOff int64         `json:"written_off"`
	Vanished   int64         `json:"vanished"`
	Strays     int64         `json:"strays"`
	Lost       []settle.ID   `json:"lost"`
	Doubled    []settle.ID   `json:"doubled"`
	Overdue    []overdueJSON `json:"overdue"`
	Cut        bool          `json:"cut"` // a list was cut at --limit
}

type overdueJSON struct {
	ID     settle.ID    `json:"id"`
	Kind   string       `json:"kind"`
	Queue  string       `json:"queue"`
	State  settle.State `json:"state"`
	EndsBy time.Time    `json:"ends_by"`
}

// newAuditCmd proves that the books balance.
func newAuditCmd(a *app) *cobra.Command {
	limit := 1000
	c := &cobra.Command{
		Use:   "audit",
		Short: "prove that every job ever accepted is accounted for",
		Long: `Compare all rows: every job ever accepted is live, has ended, or was counted
when it was removed. Name each job of which that is not true, and list live jobs
that should have ended by now.

The exit code is 3 when the books do not balance or a job is overdue. A repair
counts as written off what it could not save; it named its losses then.`,
		Example: `  settle audit
  settle audit --json | jq .lost`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef("--limit %d: want 1 or more", limit)
			}
			return a.read(c.Context(), func(st settle.Store) error { return a.audit(c.Context(), st, limit) })
		},
	}
	c.Flags().IntVar(&limit, "limit", limit, "name at most so many jobs of each fault")
	a.jsonFlag(c)
	return c
}

func (a *app) audit(ctx context.Context, st settle.Store, limit int) error {
	b, err := st.Audit(ctx, limit)
	if err != nil {
		return err
	}
	if a.json {
		err = writeJSON(a.out, viewBooks(b))
	} else {
		err = showBooks(a.out, b)
	}
	if err != nil {
		return err
	}
	return a.unhealthy(bookFaults(b))
}

func viewBooks(b settle.Books) auditJSON {
	v := auditJSON{Balanced: b.Balanced(), Accepted: b.Accepted, Live: b.Live, Succeeded: b.Succeeded, Dead: b.Dead,
		Cancelled: b.Cancelled, Removed: b.Removed, WrittenOff: b.WrittenOff, Vanished: b.Vanished, Strays: b.Strays,
		Lost: append([]settle.ID{}, b.Lost...), Doubled: append([]settle.ID{}, b.Doubled...), Overdue: []overdueJSON{}, Cut: b.More}
	for _, j := range b.Overdue {
		v.Overdue = append(v.Overdue, overdueJSON{j.ID, j.Kind, j.Queue, j.State, j.EndsBy})
	}
	return v
}

func showBooks(w io.Writer, b settle.Books) error {
	t := newTable(w, "ACCEPTED", "LIVE", "SUCCEEDED", "DEAD", "CANCELLED", "REMOVED", "WRITTEN OFF")
	var row []string
	for _, n := range []int64{b.Accepted, b.Live, b.Succeeded, b.Dead, b.Cancelled, b.Removed, b.WrittenOff} {
		row = append(row, fmt.Sprint(n))
	}
	t.row(row...)
	if err := t.flush(); err != nil || !b.Balanced() {
		return err
	}
	_, err := fmt.Fprintln(w, "the books balance")
	return err
}

// bookFaults says what is wrong, a line each.
func bookFaults(b settle.Books) (problems []string) {
	for _, id := range b.Lost {
		problems = append(problems, fmt.Sprintf("job %s was accepted, is not live, and has no end: settle repair makes it a dead letter", id))
	}
	for _, id := range b.Doubled {
		problems = append(problems, fmt.Sprintf("job %s is live and has ended", id))
	}
	if b.Vanished > 0 {
		problems = append(problems, fmt.Sprintf("%d jobs were accepted, and nothing is left of them: rows were removed by hand", b.Vanished))
	}
	if b.Strays > 0 {
		problems = append(problems, fmt.Sprintf("%d rows belong to no job: settle repair sets the state right", b.Strays))
	}
	for _, j := range b.Overdue {
		problems = append(problems, fmt.Sprintf("job %s of kind %s in queue %s is %s, and should have ended by %s: no process sweeps; run settle work",
			j.ID, cell(j.Kind), cell(j.Queue), j.State, stamp(j.EndsBy)))
	}
	if b.More {
		problems = append(problems, "there are more: see --limit")
	}
	return problems
}
