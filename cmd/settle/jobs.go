package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/xrun"
)

// newJobsCmd lists jobs.
func newJobsCmd(a *app) *cobra.Command {
	var f filterFlags
	limit := 100
	c := &cobra.Command{
		Use:   "jobs",
		Short: "list jobs, in the order in which they were accepted",
		Example: `  settle jobs
  settle jobs --state live --queue mail
  settle jobs --state dead,cancelled --json | jq -r .id
  settle jobs --all --json > everything.jsonl`,
		Long: `List jobs, in the order in which they were accepted. Those of a "settle run" are
shown with their items if --queue names the run's. Attempts and errors are not
read here, nor are they in --json: see "settle job ID" and "settle dead list".`,
		Args: wantArgs(0, 0, `no words, only flags (one job: "settle job ID")`),
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			if c.Flags().Changed("key") && f.key == "" {
				return errNoKey
			}
			if limit < 1 {
				return usagef("--limit %d: want 1 or more, or --all", limit)
			}
			if f.all {
				limit = 0
			}
			return a.read(c.Context(), func(st settle.Store) error {
				return a.listJobs(c.Context(), st, filter, limit)
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.key, "key", "", "only jobs with this key")
	c.Flags().StringSliceVar(&f.states, "state", nil, "only these states: pending, running, awaiting, succeeded, dead, cancelled, live, ended")
	c.Flags().IntVar(&limit, "limit", limit, "list at most this many")
	c.Flags().BoolVar(&f.all, "all", false, "list all of them, however many")
	a.jsonFlag(c)
	return c
}

// listJobs writes the jobs that the filter chooses, at most limit (0 = all).
func (a *app) listJobs(ctx context.Context, st settle.Store, f settle.Filter, limit int) error {
	return a.list(ctx, st, f, limit, "no job matches", func() (func(settle.Job) error, func() error) { return a.jobWriter(f) })
}

// list walks the jobs of a filter, at most limit (0 = all), and says on standard
// error when there are more, or none.
func (a *app) list(ctx context.Context, st settle.Store, f settle.Filter, limit int, none string, writer func() (func(settle.Job) error, func() error)) error {
	if err := knownQueue(ctx, st, a.db, f.Queue); err != nil {
		return err
	}
	write, flush := writer()
	n := 0
	for j, err := range settle.NewClient(st).List(ctx, f) {
		if err != nil {
			return errors.Join(err, flush())
		}
		if limit > 0 && n == limit {
			fmt.Fprintf(a.err, "settle: there are more than %d: choose with --queue, --kind or --tenant, or use --limit or --all\n", limit)
			break
		}
		if err := write(j); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		fmt.Fprintln(a.err, "settle: "+none)
		return nil
	}
	return flush()
}

// jobWriter returns how to write one job of a list, and what ends the list.
func (a *app) jobWriter(f settle.Filter) (write func(settle.Job) error, flush func() error) {
	if a.json {
		return func(j settle.Job) error { return writeJSON(a.out, viewJob(j)) }, func() error { return nil }
	}
	if xrun.IsRun(f.Queue) {
		t := newTable(a.out, "ID", "ITEM", "STATE", "ATTEMPT", "WHEN")
		return func(j settle.Job) error {
			t.row(j.ID.String(), xrun.ItemText(j.Input), label(j), attempts(j), when(j))
			return t.err
		}, t.flush
	}
	t := newTable(a.out, "ID", "KIND", "QUEUE", "TENANT", "KEY", "STATE", "ATTEMPT", "WHEN")
	return func(j settle.Job) error {
		t.row(j.ID.String(), cell(j.Kind), cell(j.Queue), cell(j.Tenant), cell(j.Key), label(j), attempts(j), when(j))
		return t.err
	}, t.flush
}

// label is the state with what an operator wants to know first.
func label(j settle.Job) string {
	if j.State == settle.Dead && j.Reason != "" {
		return fmt.Sprintf("dead (%s)", j.Reason)
	}
	return j.Label()
}

// attempts is "charged/allowed".
func attempts(j settle.Job) string { return fmt.Sprintf("%d/%d", j.Charged(), j.Tries) }

// when is the instant that matters in this state.
func when(j settle.Job) string {
	switch {
	case j.State.Ended():
		return "ended " + span(j.Now.Sub(j.EndedAt)) + " ago"
	case j.Due.After(j.Now):
		return "due in " + span(j.Due.Sub(j.Now))
	default:
		return "due " + span(j.Now.Sub(j.FirstDue)) + " ago"
	}
}

// newJobCmd shows one job.
func newJobCmd(a *app) *cobra.Command {
	var in, out bool
	c := &cobra.Command{
		Use:   "job ID",
		Short: "show one job with its attempts",
		Example: `  settle job 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a
  settle job 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a --json
  settle job 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a --output > result.json`,
		Args: wantArgs(1, 1, "the id of one job"),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			if in && out || a.json && (in || out) {
				return usagef("--input, --output and --json exclude each other")
			}
			return a.read(c.Context(), func(st settle.Store) error {
				j, err := settle.NewClient(st).Get(c.Context(), ids[0])
				if err != nil {
					return a.plain(ids[0], err)
				}
				switch {
				case in:
					return writeBytes(a.out, j.Input)
				case out:
					return writeBytes(a.out, j.Output)
				case a.json:
					return writeJSON(a.out, viewJob(j))
				}
				return showJob(a.out, j)
			})
		},
	}
	c.Flags().BoolVar(&in, "input", false, "write only the input, byte for byte (on a terminal: made safe to show)")
	c.Flags().BoolVar(&out, "output", false, "write only the output, byte for byte (on a terminal: made safe to show)")
	a.jsonFlag(c)
	return c
}

// writeBytes passes bytes on exactly, except to a terminal, which they might
// steer.
func writeBytes(w io.Writer, b []byte) error {
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		_, err := fmt.Fprintln(w, safeLine(string(b)))
		return err
	}
	_, err := w.Write(b)
	return err
}

// table aligns columns.
type table struct {
	tw   *tabwriter.Writer
	rows int
	err  error // of the blocks so far
}

// tableBlock is how many rows are aligned together: a long list begins to appear
// at once, and is not held in memory.
const tableBlock = 500

// newTable begins a table with a head line.
func newTable(w io.Writer, head ...string) *table {
	t := &table{tw: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(head) > 0 {
		t.row(head...)
	}
	return t
}

// row adds one line; cells are safe already. What cannot be written is reported
// by flush.
func (t *table) row(cells ...string) {
	fmt.Fprintln(t.tw, strings.Join(cells, "\t"))
	if t.rows++; t.rows%tableBlock == 0 {
		t.err = errors.Join(t.err, t.tw.Flush())
	}
}

func (t *table) flush() error { return errors.Join(t.err, t.tw.Flush()) }
