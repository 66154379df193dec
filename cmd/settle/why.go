package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// whyJSON is the answer of why --json.
type whyJSON struct {
	ID     settle.ID        `json:"id"`
	State  settle.State     `json:"state"`
	Label  string           `json:"label"`
	Reason settle.EndReason `json:"reason,omitempty"`
	Why    string           `json:"why"`
	EndsBy time.Time        `json:"ends_by,omitzero"`
}

// newWhyCmd explains one job.
func newWhyCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "why ID",
		Short: "say why a job is not running, or how it ended",
		Long: `Say in one paragraph why a job is not running or how it ended: scheduled,
held, put off because no node can be called, waiting for a worker or for the answer
of a node, running, or ended and for what reason; and by when it has ended at the
latest.`,
		Example: `  settle why 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a`,
		Args:    wantArgs(1, 1, "the id of one job"),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.read(c.Context(), func(st settle.Store) error {
				j, err := settle.NewClient(st).Get(c.Context(), ids[0])
				if err != nil {
					return a.plain(ids[0], err)
				}
				at, err := lookAround(c.Context(), st, j)
				if err != nil {
					return err
				}
				return a.showWhy(j, at)
			})
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) showWhy(j settle.Job, at around) error {
	if a.json {
		return writeJSON(a.out, whyJSON{j.ID, j.State, j.Label(), j.Reason, explain(j, at), utc(j.EndsBy)})
	}
	_, err := fmt.Fprintln(a.out, explain(j, at))
	return err
}

// lookAround reads what explain needs beside the job.
func lookAround(ctx context.Context, st settle.Store, j settle.Job) (at around, err error) {
	if j.State != settle.Pending && j.State != settle.Awaiting {
		return at, nil
	}
	if at.nodes, err = st.Nodes(ctx); err != nil || j.State == settle.Awaiting {
		return at, err
	}
	ages, err := st.Ages(ctx)
	if err != nil {
		return at, err
	}
	for _, g := range ages {
		if g.Queue == j.Queue && g.Kind == j.Kind {
			at.age = g
		}
	}
	if at.holds, err = st.Holds(ctx); err != nil {
		return at, err
	}
	busy := settle.Filter{Queue: j.Queue, Kind: j.Kind, States: []settle.State{settle.Running}}
	for _, err := range settle.NewClient(st).List(ctx, busy) {
		at.busy = err == nil
		return at, err
	}
	return at, nil
}
