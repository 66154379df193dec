package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// nodesJSON is the answer of nodes --json.
type nodesJSON struct {
	At      time.Time   `json:"at"`
	Nodes   []nodeJSON  `json:"nodes"`
	Inboxes []inboxJSON `json:"inboxes"`
}

// nodeJSON is what one process says of one node.
type nodeJSON struct {
	Pool     string    `json:"pool"`
	Node     string    `json:"node"`
	State    string    `json:"state"`
	Failures int       `json:"failures"`
	ProbeAt  time.Time `json:"probe_at,omitzero"` // the breaker admits a call then; absent = now
	Text     string    `json:"text,omitempty"`
	Worker   int64     `json:"worker,string"`
	Reported time.Time `json:"reported"`
	Age      float64   `json:"age_seconds"`
}

// inboxJSON is what one process says of an inbox.
type inboxJSON struct {
	Name     string    `json:"name"`
	Text     string    `json:"text"`
	Worker   int64     `json:"worker,string"`
	Reported time.Time `json:"reported"`
	Age      float64   `json:"age_seconds"`
}

// newNodesCmd shows what processes say of their nodes.
func newNodesCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "nodes",
		Short: "show the nodes of remote steps, as each process sees them",
		Long: `Show the nodes of all pools: the state of the breaker that each process has for
them, failures in a row, when an open breaker admits its first probe, and how old
the report is; and the inbox of each process, if answers come by one.

Processes that run remote steps report every 15 s, and at once when a breaker
opens or closes. A report is forgotten after a minute, or when its process ends.`,
		Example: `  settle nodes
  settle nodes --json | jq '.nodes[] | select(.state != "closed")'`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.read(c.Context(), func(st settle.Store) error { return a.nodes(c.Context(), st) })
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) nodes(ctx context.Context, st settle.Store) error {
	at, err := st.Clock(ctx)
	if err != nil {
		return err
	}
	reports, err := st.Nodes(ctx)
	if err != nil {
		return err
	}
	if a.json {
		nodes, inboxes := viewNodes(reports, at)
		return writeJSON(a.out, nodesJSON{at.UTC(), nodes, inboxes})
	}
	return showNodes(a.out, reports, at)
}

// ofInbox: the report is of an inbox, not of a node.
func ofInbox(n settle.NodeReport) bool { return n.Node == "" }

func viewNodes(reports []settle.NodeReport, at time.Time) ([]nodeJSON, []inboxJSON) {
	nodes, inboxes := []nodeJSON{}, []inboxJSON{}
	for _, n := range reports {
		age := at.Sub(n.At).Seconds()
		if ofInbox(n) {
			inboxes = append(inboxes, inboxJSON{n.State, n.Text, n.Worker, n.At.UTC(), age})
		} else {
			nodes = append(nodes, nodeJSON{n.Pool, n.Node, n.State, n.Failures, utc(probeAt(n)), n.Text, n.Worker, n.At.UTC(), age})
		}
	}
	return nodes, inboxes
}

// probeAt is when a breaker admits a call; zero = it does so now.
func probeAt(n settle.NodeReport) time.Time {
	if n.Probe <= 0 {
		return time.Time{}
	}
	return n.ProbeAt
}

// showNodes writes the table, and a line for each inbox.
func showNodes(w io.Writer, reports []settle.NodeReport, at time.Time) error {
	if len(reports) == 0 {
		_, err := fmt.Fprintln(w, "no process reports nodes: those that run remote steps do so, for as long as they run")
		return err
	}
	t, rows := newTable(w, "POOL", "NODE", "WORKER", "BREAKER", "FAILURES", "FIRST PROBE", "REPORTED"), 0
	for _, n := range reports {
		if ofInbox(n) {
			continue
		}
		rows++
		t.row(cell(n.Pool), cell(n.Node), strconv.FormatInt(n.Worker, 10), cell(n.State), failures(n), probe(n), span(at.Sub(n.At))+" ago")
	}
	if rows > 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	for _, n := range reports {
		if ofInbox(n) {
			if rows > 0 {
				fmt.Fprintln(w)
				rows = 0
			}
			fmt.Fprintf(w, "inbox %s of worker %d: %s (reported %s ago)\n", cell(n.State), n.Worker, clipped(n.Text, 600), span(at.Sub(n.At)))
		}
	}
	return nil
}

// failures are counted while the breaker is closed: they open it.
func failures(n settle.NodeReport) string {
	if n.State != closed && n.Failures == 0 {
		return "-"
	}
	return strconv.Itoa(n.Failures)
}

func probe(n settle.NodeReport) string {
	switch {
	case n.Probe > 0:
		return "in " + span(n.Probe)
	case n.State == open:
		return "now"
	}
	return "-"
}

// nodeView is one node as all processes together see it.
type nodeView struct {
	pool, node string
	all        int            // processes that report it
	states     map[string]int // of these, by the state of their breaker
	failures   int            // the most in a row
	probe      time.Time      // when the first process may call it; zero = now
}

// States of a breaker, as reports name them.
const (
	open   = "open"
	closed = "closed"
)

// nodeViews puts the reports of all processes together, in their order.
func nodeViews(reports []settle.NodeReport) (views []*nodeView) {
	known := map[[2]string]*nodeView{}
	for _, n := range reports {
		if ofInbox(n) {
			continue
		}
		v := known[[2]string{n.Pool, n.Node}]
		if v == nil {
			v = &nodeView{pool: n.Pool, node: n.Node, states: map[string]int{}, probe: probeAt(n)}
			known[[2]string{n.Pool, n.Node}] = v
			views = append(views, v)
		}
		v.all++
		v.states[n.State]++
		v.failures = max(v.failures, n.Failures)
		if p := probeAt(n); p.Before(v.probe) {
			v.probe = p
		}
	}
	return views
}

// troubled: some process has no closed breaker for it.
func (v *nodeView) troubled() bool { return v.states[closed] < v.all }

// says is one line about the node: "gpu-1 of pool gpu: open, 5 failures in a row …".
func (v *nodeView) says(now time.Time) string {
	var states []string
	for _, s := range []string{open, "half-open", closed} {
		switch n := v.states[s]; {
		case n == v.all:
			states = append(states, s)
		case n > 0 && s != closed:
			states = append(states, fmt.Sprintf("%s in %d of %d processes", s, n, v.all))
		}
	}
	if len(states) == 0 {
		states = append(states, "in a state that this program does not know")
	}
	text := fmt.Sprintf("%s of pool %s: %s", cell(v.node), cell(v.pool), strings.Join(states, ", "))
	if v.failures > 0 {
		text += ", " + plural(v.failures, "failure") + " in a row"
	}
	switch {
	case !v.probe.IsZero():
		text += ", first probe at " + ago(v.probe, now)
	case v.states[open] > 0:
		text += ", the next call is a probe"
	}
	return text
}

// inboxLines says how the inboxes are; what several processes say alike is one
// line.
func inboxLines(reports []settle.NodeReport) (lines []string) {
	count := map[string]int{}
	for _, n := range reports {
		if !ofInbox(n) {
			continue
		}
		line := fmt.Sprintf("inbox %s: %s", cell(n.State), clipped(n.Text, 600))
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		if n := count[line]; n > 1 {
			lines[i] += fmt.Sprintf(" (%d processes)", n)
		}
	}
	return lines
}
