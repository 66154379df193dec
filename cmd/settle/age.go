package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// ageJSON is one line of ages.
type ageJSON struct {
	Queue      string    `json:"queue"`
	Kind       string    `json:"kind"`
	Unfinished float64   `json:"unfinished_seconds"`
	Oldest     settle.ID `json:"oldest"`
	Waiting    float64   `json:"waiting_seconds"`
}

// agesJSON is the answer of age --json.
type agesJSON struct {
	At      time.Time `json:"at"`
	Ages    []ageJSON `json:"ages"`
	Max     float64   `json:"max_seconds,omitempty"`
	Healthy bool      `json:"healthy"`
}

// newAgeCmd shows both ages.
func newAgeCmd(a *app) *cobra.Command {
	var f filterFlags
	var most time.Duration
	c := &cobra.Command{
		Use:   "age",
		Short: "show how old the oldest work is, per queue and kind",
		Long: `Show two ages of every queue and kind that has live jobs:

  unfinished  the oldest live job, since it was first due; retries, holds and
              pauses never reset it: the headline
  waiting     the oldest job that a worker could take now, since it was due

With --max the exit code is 3 when an unfinished age exceeds it. No line means
no live job, which proves nothing about the past: see settle status.`,
		Example: `  settle age
  settle age --queue mail --max 5m || page-somebody`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkMax(c, most); err != nil {
				return err
			}
			filter, err := f.filter()
			if err != nil {
				return err
			}
			return a.read(c.Context(), func(st settle.Store) error { return a.age(c.Context(), st, filter, most) })
		},
	}
	c.Flags().StringVar(&f.queue, "queue", "", "only this queue")
	c.Flags().StringVar(&f.kind, "kind", "", "only this kind")
	spanVar(c.Flags(), &most, "max", 0, "exit with 3 when an unfinished age exceeds this")
	a.jsonFlag(c)
	return c
}

// checkMax refuses a bound that cannot be one.
func checkMax(c *cobra.Command, most time.Duration) error {
	if c.Flags().Changed("max") && most <= 0 {
		return usagef("--max %s: want more than 0", span(most))
	}
	return nil
}

func (a *app) age(ctx context.Context, st settle.Store, f settle.Filter, most time.Duration) error {
	if err := knownQueue(ctx, st, a.db, f.Queue); err != nil {
		return err
	}
	ages, err := st.Ages(ctx)
	if err != nil {
		return err
	}
	at, err := st.Clock(ctx)
	if err != nil {
		return err
	}
	ages = slices.DeleteFunc(ages, func(g settle.Age) bool {
		return f.Queue != "" && g.Queue != f.Queue || f.Kind != "" && g.Kind != f.Kind
	})
	sortAges(ages)
	old := tooOld(ages, most)
	if a.json {
		err = writeJSON(a.out, agesJSON{at.UTC(), viewAges(ages), most.Seconds(), len(old) == 0})
	} else {
		err = showAges(a.out, ages)
	}
	if err != nil {
		return err
	}
	return a.unhealthy(old)
}

// sortAges puts the oldest work first.
func sortAges(ages []settle.Age) {
	slices.SortFunc(ages, func(x, y settle.Age) int {
		return cmp.Or(cmp.Compare(y.Unfinished, x.Unfinished), cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.Kind, y.Kind))
	})
}

// tooOld names what is older than most; 0 = no bound.
func tooOld(ages []settle.Age, most time.Duration) (problems []string) {
	for _, g := range ages {
		if most > 0 && g.Unfinished > most {
			problems = append(problems, fmt.Sprintf("queue %s, kind %s: unfinished for %s, more than %s (job %s)",
				cell(g.Queue), cell(g.Kind), span(g.Unfinished), span(most), g.Oldest))
		}
	}
	return problems
}

// unhealthy prints problems and makes exit code 3 of them.
func (a *app) unhealthy(problems []string) error {
	for _, p := range problems {
		fmt.Fprintln(a.err, "settle: unhealthy: "+p)
	}
	if len(problems) > 0 {
		return &exitError{exitUnhealthy, nil}
	}
	return nil
}

func viewAges(ages []settle.Age) []ageJSON {
	out := make([]ageJSON, len(ages))
	for i, g := range ages {
		out[i] = ageJSON{g.Queue, g.Kind, g.Unfinished.Seconds(), g.Oldest, g.Waiting.Seconds()}
	}
	return out
}

func showAges(w io.Writer, ages []settle.Age) error {
	if len(ages) == 0 {
		_, err := fmt.Fprintln(w, "no live job")
		return err
	}
	t := newTable(w, "QUEUE", "KIND", "UNFINISHED", "WAITING", "OLDEST")
	for _, g := range ages {
		if g.Oldest.IsZero() { // all of it is scheduled for later
			t.row(cell(g.Queue), cell(g.Kind), "-", "-", "-")
			continue
		}
		t.row(cell(g.Queue), cell(g.Kind), span(g.Unfinished), span(g.Waiting), g.Oldest.String())
	}
	return t.flush()
}
