package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/settle-go/settle/sqlite"
)

// showRepair says what a repair found, did and lost.
func showRepair(w io.Writer, r sqlite.Report) error {
	for _, p := range r.Problems {
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
	t := newTable(w, "TABLE", "SAVED", "LOST", "UNREADABLE PAGES")
	for _, s := range r.Tables {
		t.row(cell(s.Table), strconv.Itoa(s.Kept), strconv.Itoa(s.Lost), strconv.Itoa(s.Pages))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, loss := range []struct {
		n    int
		what string
	}{
		{r.Bodiless, "jobs are lost: their payloads could not be read"},
		{r.Stateless, "jobs are dead now, as their states could not be read (settle dead list)"},
		{r.Queues, "queues have new names, as theirs could not be read"},
		{r.Policies, "jobs have the default policy, as theirs could not be read"},
	} {
		if loss.n > 0 {
			fmt.Fprintf(w, "%d %s\n", loss.n, loss.what)
		}
	}
	_, err := fmt.Fprintf(w, "%s is new; the damaged file is kept as %s\n", safeLine(r.Path), safeLine(r.Moved))
	return err
}
