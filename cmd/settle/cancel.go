package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// newCancelCmd ends live jobs.
func newCancelCmd(a *app) *cobra.Command {
	var f filterFlags
	var yes bool
	var why string
	c := &cobra.Command{
		Use:   "cancel ID… | --queue Q [--kind K] [--tenant T] --yes",
		Short: "end live jobs at once, also while they run",
		Long: `End live jobs at once. A job that runs is ended too: its worker learns of it at
its next renewal or sooner, and what it still reports changes nothing. A
cancelled job can be redriven for 7 days: settle dead redrive ID.`,
		Example: `  settle cancel 0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a --why "wrong customer"
  settle cancel --queue mail --tenant acme --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			f.states = []string{"live"}
			pick, err := f.pick(args, yes, "cancel")
			if err != nil {
				return err
			}
			return a.change(c.Context(), true, func(st settle.Store) error {
				client := settle.NewClient(st)
				return a.each(c.Context(), st, pick, func(id settle.ID) (string, error) {
					j, err := client.Cancel(c.Context(), id, why)
					return fmt.Sprintf("%s cancelled", j.ID), a.plain(id, err)
				})
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&yes, "yes", false, "really cancel all jobs that the flags choose")
	c.Flags().StringVar(&why, "why", "", "reason, for people")
	return c
}

// picked is what a command acts on: ids, or all jobs of a filter.
type picked struct {
	ids    []settle.ID
	filter settle.Filter
	yes    bool
	verb   string // for messages
}

// pick reads ids or filter flags, of which exactly one must be given.
func (f *filterFlags) pick(args []string, yes bool, verb string) (picked, error) {
	p := picked{yes: yes, verb: verb}
	switch {
	case len(args) > 0 && f.any():
		return p, usagef("ids and flags that choose jobs exclude each other")
	case len(args) == 0 && !f.any():
		return p, usagef("want the ids of jobs, or flags that choose them")
	case len(args) > 0:
		ids, err := parseIDs(args)
		p.ids = ids
		return p, err
	}
	filter, err := f.filter()
	p.filter = filter
	return p, err
}

// maxCounted bounds how far a walk only counts.
const maxCounted = 100_000

// each calls act for every picked job, prints what it says, and goes on after a
// failure. Jobs of a filter that move meanwhile are left alone.
func (a *app) each(ctx context.Context, st settle.Store, p picked, act func(settle.ID) (string, error)) error {
	failed, done := false, 0
	one := func(id settle.ID, skipStale bool) {
		said, err := act(id)
		switch {
		case err == nil:
			fmt.Fprintln(a.out, said)
			done++
		case skipStale && (settle.IsStale(err) || errors.Is(err, settle.ErrNotFound)):
			fmt.Fprintf(a.err, "settle: left alone: %s\n", safeLine(err.Error()))
		default:
			fmt.Fprintf(a.err, "settle: %s\n", safeLine(err.Error()))
			failed = true
		}
	}
	for _, id := range p.ids {
		one(id, false)
	}
	if p.ids == nil {
		if err := a.sure(ctx, st, p); err != nil {
			return err
		}
		for j, err := range settle.NewClient(st).List(ctx, p.filter) {
			if err != nil {
				return err
			}
			one(j.ID, true)
		}
		fmt.Fprintf(a.err, "settle: %s: %s\n", p.verb, plural(done, "job"))
	}
	if failed {
		return &exitError{exitFailed, nil}
	}
	return nil
}

// sure refuses to act on many jobs without --yes, and says on how many.
func (a *app) sure(ctx context.Context, st settle.Store, p picked) error {
	if err := knownQueue(ctx, st, a.db, p.filter.Queue); err != nil || p.yes {
		return err
	}
	n, more := 0, ""
	for _, err := range settle.NewClient(st).List(ctx, p.filter) {
		if err != nil {
			return err
		}
		if n++; n == maxCounted {
			more = " or more"
			break
		}
	}
	if n == 0 {
		return nil
	}
	return usagef("this would %s %s%s; add --yes if that is meant", p.verb, plural(n, "job"), more)
}
