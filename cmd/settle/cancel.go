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

// Bounds of what is said while flags choose the jobs: a store that fails says
// the same of every one of them.
const (
	maxSaidAlone = 5 // lines of jobs that were left alone
	maxFailed    = 3 // failures in a row, after which the walk ends
)

// each calls act for every picked job, prints what it says, and goes on after a
// failure. Jobs of a filter that move meanwhile are left alone.
func (a *app) each(ctx context.Context, st settle.Store, p picked, act func(settle.ID) (string, error)) error {
	if p.ids == nil {
		return a.eachOf(ctx, st, p, act)
	}
	failed := false
	for _, id := range p.ids {
		said, err := act(id)
		if err != nil {
			fmt.Fprintf(a.err, "settle: %s\n", safeLine(err.Error()))
			failed = true
			continue
		}
		fmt.Fprintln(a.out, said)
	}
	if failed {
		return &exitError{exitFailed, nil}
	}
	return nil
}

// eachOf is each for the jobs of a filter.
func (a *app) eachOf(ctx context.Context, st settle.Store, p picked, act func(settle.ID) (string, error)) error {
	if err := a.sure(ctx, st, p); err != nil {
		return err
	}
	done, alone, failed, inRow := 0, 0, 0, 0
	var last error
	for j, err := range settle.NewClient(st).List(ctx, p.filter) {
		said := ""
		if err == nil {
			said, err = act(j.ID)
		} else {
			inRow = maxFailed // the list itself
		}
		switch {
		case err == nil:
			fmt.Fprintln(a.out, said)
			done, inRow = done+1, 0
		case settle.IsStale(err) || errors.Is(err, settle.ErrNotFound):
			if alone++; alone <= maxSaidAlone {
				fmt.Fprintf(a.err, "settle: left alone: %s\n", safeLine(err.Error()))
			}
		default:
			failed, inRow, last = failed+1, inRow+1, err
		}
		if inRow >= maxFailed {
			break
		}
	}
	sum := fmt.Sprintf("settle: %s: %s", p.verb, plural(done, "job"))
	if alone > 0 {
		sum += fmt.Sprintf(", %d left alone", alone)
	}
	if failed == 0 {
		fmt.Fprintln(a.err, sum)
		return nil
	}
	sum += fmt.Sprintf(", %d failed", failed)
	if inRow >= maxFailed {
		sum += ", then stopped (the same command goes on)"
	}
	fmt.Fprintf(a.err, "%s: %s\n", sum, safeLine(last.Error()))
	return &exitError{exitFailed, nil}
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
