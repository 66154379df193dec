package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

func newDeadDropCmd(a *app) *cobra.Command {
	var f filterFlags
	var yes bool
	c := &cobra.Command{
		Use:   "drop ID… | --queue Q --kind K --tenant T --yes | --all --yes",
		Short: "remove dead letters for good; each is counted as removed",
		Example: `  settle dead export --kind mail.send > dead.jsonl
  settle dead drop --kind mail.send --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			f.states = []string{"dead"}
			p, err := f.pick(args, yes, "drop")
			if err != nil {
				return err
			}
			return a.change(c.Context(), true, func(st settle.Store) error {
				return a.each(c.Context(), st, p, func(id settle.ID) (string, error) { return a.drop(c.Context(), st, id) })
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.all, "all", false, "all dead letters")
	c.Flags().BoolVar(&yes, "yes", false, "really drop all that the flags choose")
	return c
}

// drop removes one dead letter.
func (a *app) drop(ctx context.Context, st settle.Store, id settle.ID) (string, error) {
	if _, err := a.deadJob(ctx, st, id); err != nil {
		return "", err
	}
	n, err := st.Remove(ctx, []settle.ID{id})
	if err == nil && n == 0 {
		err = fmt.Errorf("job %s has just been redriven or removed by another", id)
	}
	return fmt.Sprintf("%s dropped", id), err
}

func newDeadExportCmd(a *app) *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "export [ID…] [--queue Q --kind K --tenant T]",
		Short: "write dead letters with everything about them, one JSON object a line",
		Long: `Write dead letters with everything about them, one JSON object a line: the fields
of "settle job --json" with every attempt. An input that is JSON stands in
"input"; where that is not the input byte for byte, or no JSON at all, the exact
bytes stand in "input_base64". Without ids or flags all are exported. Nothing is
removed.

To bring inputs back as new jobs: settle enqueue KIND --lines - (see examples).
To give the same jobs a new chance, redrive them instead.`,
		Example: `  settle dead export > dead.jsonl
  jq -c 'select(.kind=="mail.send") | .input' dead.jsonl | settle enqueue mail.send --lines -
  jq -r 'select(.id=="…") | .input_base64' dead.jsonl | base64 -d | settle enqueue blob.scan - --raw`,
		RunE: func(c *cobra.Command, args []string) error {
			f.states, f.all = []string{"dead"}, len(args) == 0
			if len(args) > 0 && f.any() {
				return usagef("ids and flags that choose jobs exclude each other")
			}
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			filter, err := f.filter()
			if err != nil {
				return err
			}
			return a.read(c.Context(), func(st settle.Store) error { return a.export(c.Context(), st, ids, filter) })
		},
	}
	f.add(c)
	c.Flags().Bool("json", true, "the only format")
	_ = c.Flags().MarkHidden("json")
	return c
}

// export writes the dead jobs with these ids, or those of the filter.
func (a *app) export(ctx context.Context, st settle.Store, ids []settle.ID, f settle.Filter) error {
	for _, id := range ids {
		j, err := a.deadJob(ctx, st, id)
		if err != nil {
			return err
		}
		if err := writeJSON(a.out, exportJob(j)); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		return nil
	}
	return a.list(ctx, deadStore{st}, f, 0, "no dead letter matches", func() (func(settle.Job) error, func() error) {
		return func(j settle.Job) error { return writeJSON(a.out, exportJob(j)) }, func() error { return nil }
	})
}

func newDeadAckCmd(a *app) *cobra.Command {
	var f filterFlags
	var undo bool
	c := &cobra.Command{
		Use:   "ack ID… | --queue Q --kind K --tenant T | --all",
		Short: "mark dead letters as seen, so that status --check no longer counts them",
		Example: `  settle dead ack 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a
  settle dead ack --queue mail`,
		RunE: func(c *cobra.Command, args []string) error {
			f.states = []string{"dead"}
			p, err := f.pick(args, true, "acknowledge")
			if err != nil {
				return err
			}
			p.filter.Unacked = !undo
			return a.change(c.Context(), true, func(st settle.Store) error {
				return a.each(c.Context(), st, p, func(id settle.ID) (string, error) { return a.ack(c.Context(), st, id, !undo) })
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.all, "all", false, "all dead letters")
	c.Flags().BoolVar(&undo, "undo", false, "mark them as not seen again")
	return c
}

// ack marks one dead letter.
func (a *app) ack(ctx context.Context, st settle.Store, id settle.ID, seen bool) (string, error) {
	if _, err := a.deadJob(ctx, st, id); err != nil {
		return "", err
	}
	n, err := st.Ack(ctx, []settle.ID{id}, seen)
	switch {
	case err != nil:
		return "", err
	case n == 0 && seen:
		return fmt.Sprintf("%s was acknowledged before", id), nil
	case n == 0:
		return fmt.Sprintf("%s was not acknowledged", id), nil
	case seen:
		return fmt.Sprintf("%s acknowledged", id), nil
	}
	return fmt.Sprintf("%s no longer acknowledged", id), nil
}
