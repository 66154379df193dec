package sqlite

import (
	"fmt"
	"strings"
)

// shownProblems is how many faults a report shows.
const shownProblems = 5

// String tells a person what happened.
func (r Report) String() string {
	var b strings.Builder
	switch {
	case r.Reindexed:
		fmt.Fprintf(&b, "%s: indexes were damaged and have been made anew; no row is lost\n", r.Path)
	case r.Sound:
		fmt.Fprintf(&b, "%s is sound: nothing was changed\n", r.Path)
	default:
		fmt.Fprintf(&b, "%s was damaged: what could be read is in a new file there\nthe damaged file is kept as %s\n", r.Path, r.Moved)
	}
	for i, p := range r.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "  … and %d more\n", len(r.Problems)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(p))
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "table %-8s %d rows saved", t.Table+":", t.Kept)
		if t.Lost > 0 {
			fmt.Fprintf(&b, ", %d lost", t.Lost)
		}
		if t.Pages > 0 {
			fmt.Fprintf(&b, ", %d pages unreadable", t.Pages)
		}
		b.WriteByte('\n')
	}
	r.counts(&b)
	return b.String()
}

func (r Report) counts(b *strings.Builder) {
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Stateless, "jobs had lost their state and are dead now: settle dead list, then redrive or drop them"},
		{r.Bodiless, "jobs had lost their payload: they are gone"},
		{r.Queues, "queues had lost their names and are called lost-queue-N now"},
		{r.Policies, "jobs had lost their policies and have the default one now"},
	} {
		if c.n > 0 {
			fmt.Fprintf(b, "%d %s\n", c.n, c.what)
		}
	}
}
