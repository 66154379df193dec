package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// statusJSON is the answer of status --json.
type statusJSON struct {
	At       time.Time     `json:"at"`
	Healthy  bool          `json:"healthy"`
	Problems []string      `json:"problems"`
	Ages     []ageJSON     `json:"ages"`
	Counts   []countJSON   `json:"counts"`
	Removed  []removedJSON `json:"removed"`
	Holds    []holdJSON    `json:"holds"`
	Nodes    []nodeJSON    `json:"nodes"` // whose breakers are not closed
	Inboxes  []inboxJSON   `json:"inboxes"`
}

// countJSON counts the jobs of one queue in one state. Capped: there are more.
type countJSON struct {
	Queue  string       `json:"queue"`
	State  settle.State `json:"state"`
	Count  int          `json:"count"`
	Capped bool         `json:"capped"`
	Acked  int          `json:"acked"`
}

type removedJSON struct {
	Queue string       `json:"queue"`
	State settle.State `json:"state"`
	Count int64        `json:"count"`
}

type holdJSON struct {
	Queue  string    `json:"queue"`
	Tenant string    `json:"tenant"`
	Whole  bool      `json:"whole"`
	Reason string    `json:"reason"`
	Text   string    `json:"text"`
	Began  time.Time `json:"began"`
	Until  time.Time `json:"until"`
	Left   float64   `json:"left_seconds"`
}

// overview is everything that status shows.
type overview struct {
	db      string
	at      time.Time
	ages    []settle.Age
	counts  []settle.Count
	removed []settle.Removal
	holds   []settle.Hold
	nodes   []settle.NodeReport
}

// newStatusCmd shows one screen.
func newStatusCmd(a *app) *cobra.Command {
	var most time.Duration
	var check bool
	c := &cobra.Command{
		Use:   "status",
		Short: "show one screen: ages, live jobs, ends, dead letters, holds, nodes",
		Long: `Show one screen: both ages, the live jobs by state, what became of all others
(succeeded, dead, cancelled, removed), dead letters that nobody has acknowledged,
holds, nodes whose breakers are not closed, and inboxes. Numbers are counted up to 100000: "100000+" means that there are more.

With --check the exit code is 3 when there are dead letters that nobody has
acknowledged, or when an unfinished age exceeds --max.`,
		Example: `  settle status
  settle status --check --max 1h
  settle status --json | jq .healthy`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkMax(c, most); err != nil {
				return err
			}
			return a.read(c.Context(), func(st settle.Store) error {
				o, err := gather(c.Context(), st, a.db)
				if err != nil {
					return err
				}
				return a.status(o, most, check)
			})
		},
	}
	c.Flags().BoolVar(&check, "check", false, "exit with 3 when something needs a person")
	spanVar(c.Flags(), &most, "max", 0, "with --check: the highest healthy unfinished age")
	a.jsonFlag(c)
	return c
}

// gather reads what status shows.
func gather(ctx context.Context, st settle.Store, db string) (o overview, err error) {
	o.db = db
	if o.at, err = st.Clock(ctx); err != nil {
		return o, err
	}
	if o.ages, err = st.Ages(ctx); err != nil {
		return o, err
	}
	if o.counts, err = st.Counts(ctx, 0); err != nil {
		return o, err
	}
	if o.removed, err = st.Removed(ctx); err != nil {
		return o, err
	}
	if o.holds, err = st.Holds(ctx); err != nil {
		return o, err
	}
	o.nodes, err = st.Nodes(ctx)
	sortAges(o.ages)
	return o, err
}

// status renders the overview and judges it.
func (a *app) status(o overview, most time.Duration, check bool) (err error) {
	problems := o.problems(most)
	if a.json {
		err = writeJSON(a.out, o.view(problems))
	} else {
		err = o.show(a.out)
	}
	if err != nil || !check {
		return err
	}
	return a.unhealthy(problems)
}

// problems lists what needs a person.
func (o overview) problems(most time.Duration) []string {
	problems := tooOld(o.ages, most)
	for _, c := range o.counts {
		if n := c.N - c.Acked; c.State == settle.Dead && n > 0 {
			problems = append(problems, fmt.Sprintf("queue %s: dead letters that nobody has acknowledged: %s (settle dead list --unacked --queue %s)",
				cell(c.Queue), upTo(n, c.More), child.Quote(cell(c.Queue))))
		}
	}
	return problems
}

// upTo writes a count that may have been cut.
func upTo(n int, more bool) string {
	if more {
		return strconv.Itoa(n) + "+"
	}
	return strconv.Itoa(n)
}

func (o overview) view(problems []string) statusJSON {
	v := statusJSON{At: o.at.UTC(), Healthy: len(problems) == 0, Problems: append([]string{}, problems...),
		Ages: viewAges(o.ages), Counts: []countJSON{}, Removed: []removedJSON{}, Holds: []holdJSON{}}
	for _, c := range o.counts {
		v.Counts = append(v.Counts, countJSON{c.Queue, c.State, c.N, c.More, c.Acked})
	}
	for _, r := range o.removed {
		v.Removed = append(v.Removed, removedJSON{r.Queue, r.State, r.N})
	}
	for _, h := range o.holds {
		v.Holds = append(v.Holds, holdJSON{h.Queue, h.Tenant, h.Whole, h.Reason, h.Text, utc(h.Began), utc(h.Until), h.For.Seconds()})
	}
	v.Nodes, v.Inboxes = viewNodes(o.nodes, o.at)
	v.Nodes = slices.DeleteFunc(v.Nodes, func(n nodeJSON) bool { return n.State == closed })
	return v
}

// show writes the screen.
func (o overview) show(w io.Writer) error {
	fmt.Fprintf(w, "%s at %s\n\n", safeLine(o.db), stamp(o.at))
	if err := showAges(w, o.ages); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := o.showCounts(w); err != nil {
		return err
	}
	for _, p := range o.problems(0) {
		fmt.Fprintln(w, "\n"+p)
	}
	if len(o.holds) > 0 {
		fmt.Fprintln(w)
	}
	for _, h := range o.holds {
		fmt.Fprintf(w, "%s until %s (in %s): %s\n", holdTitle(h), stamp(h.Until), span(h.For), clipped(h.Text, 200))
	}
	lines := inboxLines(o.nodes)
	for _, v := range nodeViews(o.nodes) {
		if v.troubled() {
			lines = append(lines, "node "+v.says(o.at))
		}
	}
	if len(lines) > 0 {
		_, err := fmt.Fprintln(w, "\n"+strings.Join(lines, "\n"))
		return err
	}
	return nil
}

// showCounts writes one line for each queue: live, ended, removed.
func (o overview) showCounts(w io.Writer) error {
	cells, queues := map[string]map[settle.State]string{}, []string{}
	row := func(queue string) map[settle.State]string {
		if cells[queue] == nil {
			cells[queue] = map[settle.State]string{}
			queues = append(queues, queue)
		}
		return cells[queue]
	}
	for _, c := range o.counts {
		row(c.Queue)[c.State] = upTo(c.N, c.More)
	}
	gone := map[string]int64{}
	for _, r := range o.removed {
		row(r.Queue)
		gone[r.Queue] += r.N
	}
	if len(queues) == 0 {
		_, err := fmt.Fprintln(w, "no job has ever been accepted here")
		return err
	}
	slices.Sort(queues)
	t := newTable(w, "QUEUE", "PENDING", "RUNNING", "AWAITING", "SUCCEEDED", "DEAD", "CANCELLED", "REMOVED")
	for _, q := range queues {
		line := []string{cell(q)}
		for _, s := range settle.States {
			line = append(line, orZero(cells[q][s]))
		}
		t.row(append(line, strconv.FormatInt(gone[q], 10))...)
	}
	return t.flush()
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}
