package sqlite

import (
	"fmt"
	"slices"
	"strings"
)

// shownProblems is how many faults a report shows.
const shownProblems = 5

// Whole reports whether everything that was in the file is there now. What is
// not, Losses names.
func (r Report) Whole() bool {
	return r.Sound || r.Lost == 0 && !r.EndUnknown && !r.RemovedUnknown && r.Stale+r.Stateless+r.Queues+r.Policies+len(r.Undone) == 0 &&
		!slices.ContainsFunc(r.Tables, func(t Saved) bool { return !counted[t.Table] && t.Damaged+t.Pages > 0 })
}

// counted are tables whose losses are known job by job: a page that cannot be
// read may be one whose rows were found all the same.
var counted = map[string]bool{"body": true, "live": true, "ended": true}

// Found are the first of the Problems, one a line, for people.
func (r Report) Found() []string {
	if more := len(r.Problems) - shownProblems; more > 0 {
		return append(slices.Clone(r.Problems[:shownProblems]), fmt.Sprintf("… and %d more", more))
	}
	return r.Problems
}

// Losses says, one a line, what was lost and what became of what was left.
func (r Report) Losses() (lines []string) {
	if r.Whole() {
		return nil
	}
	lines = r.jobsLost()
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Stale, "jobs were found in pages that may be old: they may have been removed before"},
		{r.Stateless, "jobs had lost their state and are dead now: settle dead list, then redrive or drop them"},
		{r.Queues, "queues had lost their names and are called lost-queue-N now"},
		{r.Policies, "jobs had lost their policies and have the default one now"},
	} {
		if c.n > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	var more []string
	for _, t := range r.Tables {
		if !counted[t.Table] && t.Damaged+t.Pages > 0 {
			more = append(more, t.Table)
		}
	}
	if len(more) > 0 {
		lines = append(lines, "rows of other tables may be lost: "+strings.Join(more, ", "))
	}
	for _, u := range r.Undone {
		lines = append(lines, "not done: "+u)
	}
	return lines
}

func (r Report) jobsLost() (lines []string) {
	switch {
	case r.EndUnknown && r.Highest == 0:
		return []string{"an unknown number of jobs is lost: not one job number could be read"}
	case r.EndUnknown && r.Lost == 0:
		lines = []string{"an unknown number of jobs may be lost"}
	case r.Lost > 0 && (r.EndUnknown || r.Stale > 0):
		lines = []string{fmt.Sprintf("at least %d jobs are lost", r.Lost)}
	case r.Lost > 0:
		lines = []string{fmt.Sprintf("%d jobs are lost", r.Lost)}
	default:
		return nil
	}
	if n := min(int64(r.Bodiless), r.Lost); n > 0 {
		lines[0] += fmt.Sprintf(" (of %d only the state could be read)", n)
	}
	if r.Lost > 0 {
		lines[0] += "; the books count them as written off"
	}
	if r.EndUnknown {
		lines = append(lines, fmt.Sprintf("the last job number could not be read: nothing is known of jobs stored after number %d", r.Highest))
	}
	if r.RemovedUnknown && r.Lost > 0 {
		lines = append(lines, "some of the lost jobs may have been removed before: that count could not be read in full")
	}
	return lines
}

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
	for _, p := range r.Found() {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "table %-8s %d rows saved", t.Table+":", t.Kept)
		if t.Damaged > 0 {
			fmt.Fprintf(&b, ", %d damaged", t.Damaged)
		}
		if t.Pages > 0 {
			fmt.Fprintf(&b, ", %d pages unreadable", t.Pages)
		}
		b.WriteByte('\n')
	}
	for _, l := range r.Losses() {
		b.WriteString(l + "\n")
	}
	return b.String()
}
