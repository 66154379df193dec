package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// holdFlags are what pause and hold share.
type holdFlags struct {
	span  time.Duration
	why   string
	force bool
}

func (f *holdFlags) add(c *cobra.Command) {
	spanVar(c.Flags(), &f.span, "for", 24*time.Hour, "how long; it passes by itself; at most 30d")
	c.Flags().StringVar(&f.why, "why", "", "reason, for people")
	c.Flags().BoolVar(&f.force, "force", false, "also when the database knows no such queue yet")
}

// check refuses what the client would read as its default.
func (f *holdFlags) check() error {
	if f.span <= 0 {
		return usagef("--for %s: want more than 0, at most 30d", span(f.span))
	}
	return nil
}

// newPauseCmd keeps a queue from being claimed.
func newPauseCmd(a *app) *cobra.Command {
	var f holdFlags
	c := &cobra.Command{
		Use:   "pause QUEUE",
		Short: "keep a queue from being claimed for a while",
		Long: `Keep a whole queue from being claimed until a time that passes by itself. Jobs
that run go on; deadlines do not move; ages go on counting. Pausing again
replaces the end.`,
		Example: `  settle pause mail --for 2h --why "mail server is moved"
  settle resume mail`,
		Args: wantArgs(1, 1, "the name of one queue"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.hold(c.Context(), args[0], &f, func(client *settle.Client) error {
				return client.Pause(c.Context(), args[0], f.span, f.why)
			}, settle.Hold{Queue: args[0], Whole: true})
		},
	}
	f.add(c)
	return c
}

// newHoldCmd keeps one tenant's lane from being claimed.
func newHoldCmd(a *app) *cobra.Command {
	var f holdFlags
	var queue, tenant string
	c := &cobra.Command{
		Use:   "hold --tenant TENANT [--queue QUEUE]",
		Short: "keep one tenant's jobs of a queue from being claimed for a while",
		Long: `Keep one tenant's lane of a queue from being claimed until a time that passes by
itself. Jobs that run go on; deadlines do not move. Holding again replaces the
end. --tenant "" means the jobs that have no tenant.`,
		Example: `  settle hold --queue mail --tenant acme --for 12h
  settle release --queue mail --tenant acme`,
		Args: wantArgs(0, 0, "no words: the lane is named by --queue and --tenant"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") {
				return usagef(`want --tenant; a whole queue is kept by "settle pause QUEUE"`)
			}
			return a.hold(c.Context(), queue, &f, func(client *settle.Client) error {
				return client.Hold(c.Context(), queue, tenant, f.span, f.why)
			}, settle.Hold{Queue: queue, Tenant: tenant})
		},
	}
	f.add(c)
	laneFlags(c, &queue, &tenant)
	return c
}

func laneFlags(c *cobra.Command, queue, tenant *string) {
	c.Flags().StringVar(queue, "queue", settle.DefaultQueue, "queue")
	c.Flags().StringVar(tenant, "tenant", "", "tenant")
}

// hold checks, holds and says until when.
func (a *app) hold(ctx context.Context, queue string, f *holdFlags, do func(*settle.Client) error, want settle.Hold) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := checkNames(queue, "", want.Tenant, ""); err != nil || queue == "" {
		return orEmpty(err)
	}
	return a.change(ctx, true, func(st settle.Store) error {
		if err := knownQueue(ctx, st, a.db, queue); err != nil && !f.force {
			return fmt.Errorf("%w; --force holds it all the same", err)
		}
		if err := do(settle.NewClient(st)); err != nil {
			return err
		}
		holds, err := st.Holds(ctx)
		if err != nil {
			return err
		}
		for _, h := range holds {
			if h.Queue == want.Queue && h.Tenant == want.Tenant && h.Whole == want.Whole {
				fmt.Fprintf(a.out, "%s until %s (in %s)\n", holdTitle(h), stamp(h.Until), span(h.For))
			}
		}
		return nil
	})
}

func orEmpty(err error) error {
	if err == nil {
		return usagef("the name of the queue is empty")
	}
	return err
}

// holdTitle says of a hold what it holds.
func holdTitle(h settle.Hold) string {
	if h.Whole {
		return "queue " + cell(h.Queue) + " is paused"
	}
	return laneTitle(h.Queue, h.Tenant) + " is held"
}

// laneTitle names a lane.
func laneTitle(queue, tenant string) string {
	if tenant == "" {
		return "the lane without a tenant in queue " + cell(queue)
	}
	return "tenant " + cell(tenant) + " in queue " + cell(queue)
}

// newResumeCmd ends a pause.
func newResumeCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "resume QUEUE",
		Short:   "end a pause",
		Example: `  settle resume mail`,
		Args:    wantArgs(1, 1, "the name of one queue"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkNames(args[0], "", "", ""); err != nil || args[0] == "" {
				return orEmpty(err)
			}
			return a.change(c.Context(), true, func(st settle.Store) error {
				was, err := settle.NewClient(st).Resume(c.Context(), args[0])
				return a.released(c.Context(), st, args[0], "queue "+cell(args[0]), was, err)
			})
		},
	}
}

// newReleaseCmd ends a hold.
func newReleaseCmd(a *app) *cobra.Command {
	var queue, tenant string
	c := &cobra.Command{
		Use:     "release --tenant TENANT [--queue QUEUE]",
		Short:   "end a hold",
		Example: `  settle release --queue mail --tenant acme`,
		Args:    wantArgs(0, 0, "no words: the lane is named by --queue and --tenant"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") {
				return usagef(`want --tenant; the pause of a whole queue is ended by "settle resume QUEUE"`)
			}
			if err := checkNames(queue, "", tenant, ""); err != nil || queue == "" {
				return orEmpty(err)
			}
			return a.change(c.Context(), true, func(st settle.Store) error {
				was, err := settle.NewClient(st).Release(c.Context(), queue, tenant)
				return a.released(c.Context(), st, queue, laneTitle(queue, tenant), was, err)
			})
		},
	}
	laneFlags(c, &queue, &tenant)
	return c
}

// released says what the end of a hold came to.
func (a *app) released(ctx context.Context, st settle.Store, queue, what string, was bool, err error) error {
	if err != nil {
		return err
	}
	if was {
		fmt.Fprintf(a.out, "%s is claimed again\n", what)
		return nil
	}
	if err := knownQueue(ctx, st, a.db, queue); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s was not held\n", what)
	return nil
}
