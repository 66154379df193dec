package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/xrun"
)

// newDeadCmd holds the commands for dead letters.
func newDeadCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "look after dead letters: list, show, redrive, drop, export, ack",
		Long: `A dead letter is a job that ended dead: it will not be tried again without a
person. It keeps its input and every attempt's error until it is redriven or
dropped, or until a stated retention removes it.`,
		Example: `  settle dead list
  settle dead redrive --kind mail.send
  settle dead ack --all`,
		Args: unknownCommand,
		RunE: showHelp,
	}
	c.AddCommand(newDeadListCmd(a), newDeadShowCmd(a), newDeadRedriveCmd(a), newDeadDropCmd(a), newDeadExportCmd(a), newDeadAckCmd(a))
	return c
}

func newDeadListCmd(a *app) *cobra.Command {
	var f filterFlags
	var unacked bool
	limit := 100
	c := &cobra.Command{
		Use:   "list",
		Short: "list dead letters with their last error",
		Long: `List dead letters with their last error. Those of a "settle run" are shown with
their items if --queue names the run's.`,
		Example: `  settle dead list --unacked
  settle dead list --kind mail.send --json | jq -r .last_error | sort | uniq -c`,
		Args: wantArgs(0, 0, `no words, only flags (one job: "settle dead show ID")`),
		RunE: func(c *cobra.Command, _ []string) error {
			f.states = []string{"dead"}
			filter, err := f.filter()
			if err != nil {
				return err
			}
			filter.Unacked = unacked
			if limit < 1 {
				return usagef("--limit %d: want 1 or more, or --all", limit)
			}
			if f.all {
				limit = 0
			}
			return a.read(c.Context(), func(st settle.Store) error { return a.listDead(c.Context(), st, filter, limit) })
		},
	}
	f.add(c)
	c.Flags().BoolVar(&unacked, "unacked", false, "only those that nobody has acknowledged")
	c.Flags().IntVar(&limit, "limit", limit, "list at most this many")
	c.Flags().BoolVar(&f.all, "all", false, "list all of them, however many")
	a.jsonFlag(c)
	return c
}

// listDead lists dead letters with their attempts, which only a read by id
// brings.
func (a *app) listDead(ctx context.Context, st settle.Store, f settle.Filter, limit int) error {
	return a.list(ctx, deadStore{st}, f, limit, "no dead letter matches", func() (func(settle.Job) error, func() error) { return a.deadWriter(f) })
}

// deadStore fills in the attempts of every job of a page.
type deadStore struct{ settle.Store }

// Jobs is the store's Jobs with attempts.
func (d deadStore) Jobs(ctx context.Context, f settle.Filter) ([]settle.Job, settle.Cursor, error) {
	page, next, err := d.Store.Jobs(ctx, f)
	if err != nil {
		return nil, next, err
	}
	full := page[:0]
	for _, j := range page {
		j, err := d.Job(ctx, j.ID)
		switch {
		case errors.Is(err, settle.ErrNotFound) || err == nil && j.State != settle.Dead:
			continue // dropped or redriven since the page was read
		case err != nil:
			return nil, next, err
		}
		full = append(full, j)
	}
	return full, next, nil
}

func (a *app) deadWriter(f settle.Filter) (write func(settle.Job) error, flush func() error) {
	if a.json {
		return a.jobWriter(f)
	}
	head, cells := []string{"KIND", "QUEUE", "TENANT"}, func(j settle.Job) []string { return []string{cell(j.Kind), cell(j.Queue), cell(j.Tenant)} }
	if xrun.IsRun(f.Queue) {
		head, cells = []string{"ITEM"}, func(j settle.Job) []string { return []string{xrun.ItemText(j.Input)} }
	}
	t := newTable(a.out, slices.Concat([]string{"ID"}, head, []string{"ENDED", "SEEN", "WHY"})...)
	return func(j settle.Job) error {
		seen := "no"
		if j.Acked {
			seen = "yes"
		}
		t.row(slices.Concat([]string{j.ID.String()}, cells(j), []string{span(j.Now.Sub(j.EndedAt)) + " ago", seen, clipped(endText(j), 100)})...)
		return t.err
	}, t.flush
}

func newDeadShowCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "show one dead letter with every attempt's error",
		Example: `  settle dead show 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a`,
		Args:    wantArgs(1, 1, "the id of one job"),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.read(c.Context(), func(st settle.Store) error {
				j, err := a.deadJob(c.Context(), st, ids[0])
				switch {
				case err != nil:
					return err
				case a.json:
					return writeJSON(a.out, viewJob(j))
				}
				return showJob(a.out, j)
			})
		},
	}
	a.jsonFlag(c)
	return c
}

// deadJob reads a job that must be dead.
func (a *app) deadJob(ctx context.Context, st settle.Store, id settle.ID) (settle.Job, error) {
	j, err := settle.NewClient(st).Get(ctx, id)
	if err == nil && j.State != settle.Dead {
		err = fmt.Errorf("job %s %s, it is not dead", id, stands(j.State))
	}
	return j, a.plain(id, err)
}

func newDeadRedriveCmd(a *app) *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "redrive ID… | --queue Q --kind K --tenant T | --all",
		Short: "give dead letters a new, bounded chance",
		Long: `Give dead letters a new, bounded chance: as many attempts as their policy says
and a new deadline; history and finished steps stay, attempts go on counting.
By id, cancelled jobs too. A job whose key a live job has taken meanwhile is
left alone.`,
		Example: `  settle dead redrive 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a
  settle dead redrive --kind mail.send --tenant acme`,
		RunE: func(c *cobra.Command, args []string) error {
			f.states = []string{"dead"}
			p, err := f.pick(args, true, "redrive")
			if err != nil {
				return err
			}
			return a.change(c.Context(), true, func(st settle.Store) error {
				client := settle.NewClient(st)
				return a.each(c.Context(), st, p, func(id settle.ID) (string, error) {
					j, err := client.Redrive(c.Context(), id)
					return fmt.Sprintf("%s redriven: %s, ends by %s", j.ID, plural(j.Tries-j.Charged(), "attempt"), stamp(j.EndsBy)), a.plain(id, err)
				})
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.all, "all", false, "all dead letters")
	return c
}
