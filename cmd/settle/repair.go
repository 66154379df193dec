package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle/sqlite"
)

// newRepairCmd salvages a damaged database.
func newRepairCmd(a *app) *cobra.Command {
	var opts sqlite.RepairOpts
	c := &cobra.Command{
		Use:   "repair",
		Short: "move a damaged database aside and save what is readable",
		Long: `Move a damaged database aside, write what is readable of it into a new one at the
same place, and report what was lost. Stop every process that uses it first. A
sound database is left as it is, damaged indexes are made anew in place. The
damaged file is kept, unchanged, beside the new one. Jobs whose state was lost
become dead ones, so that a person can redrive or drop them.

The exit code is 0 if everything was saved, 1 if anything was lost: the report
says how much, and the audit counts it as written off.

A file in which nothing is settle's is refused, unless --force is given.`,
		Example: `  settle repair --db /var/lib/app/settle.db`,
		Args:    wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.look(true); err != nil {
				return err
			}
			report, err := sqlite.Repair(c.Context(), a.db, opts)
			if err != nil {
				return err
			}
			if err := showRepair(a.out, report); err != nil {
				return err
			}
			if !report.Whole() {
				return &exitError{code: exitFailed} // the report says why
			}
			return nil
		},
	}
	c.Flags().BoolVar(&opts.Force, "force", false, "move the file aside and begin a new one even if nothing in it is settle's")
	return c
}

// showRepair says what a repair found, did and lost.
func showRepair(w io.Writer, r sqlite.Report) error {
	for _, p := range r.Found() {
		fmt.Fprintln(w, "found: "+safeLine(p))
	}
	switch {
	case r.Reindexed:
		_, err := fmt.Fprintf(w, "%s: no row is damaged; its indexes have been made anew\n", safeLine(r.Path))
		return err
	case r.Sound:
		_, err := fmt.Fprintf(w, "%s is sound\n", safeLine(r.Path))
		return err
	}
	t := newTable(w, "TABLE", "ROWS SAVED", "ROWS DAMAGED", "PAGES UNREADABLE")
	for _, s := range r.Tables {
		t.row(cell(s.Table), strconv.Itoa(s.Kept), strconv.Itoa(s.Damaged), strconv.Itoa(s.Pages))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, l := range r.Losses() {
		fmt.Fprintln(w, safeLine(l))
	}
	if r.Whole() {
		fmt.Fprintln(w, "everything was saved")
	}
	_, err := fmt.Fprintf(w, "%s is new; the damaged file is kept as %s\n", safeLine(r.Path), safeLine(r.Moved))
	return err
}
