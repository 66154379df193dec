package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// reported is what processes 77 and 78 say of two pools, and of their inbox.
var reported = []settle.NodeReport{
	{State: "redis", Text: "read, 3 waiting", Worker: 77, At: now.Add(-4 * time.Second)},
	{State: "redis", Text: "cannot be read: dial tcp: connection refused.", Worker: 78, At: now.Add(-2 * time.Second)},
	{Pool: "cpu", Node: "cpu-1", State: "closed", Worker: 77, At: now.Add(-4 * time.Second)},
	{Pool: "gpu", Node: "gpu-1", State: "open", Failures: 5, Probe: 12 * time.Second, ProbeAt: now.Add(12 * time.Second), Worker: 77, At: now.Add(-4 * time.Second)},
	{Pool: "gpu", Node: "gpu-1", State: "open", Failures: 7, Probe: 40 * time.Second, ProbeAt: now.Add(40 * time.Second), Worker: 78, At: now.Add(-2 * time.Second)},
	{Pool: "gpu", Node: "gpu-2", State: "closed", Failures: 2, Worker: 77, At: now.Add(-4 * time.Second)},
	{Pool: "gpu", Node: "gpu-2", State: "half-open", Failures: 5, Worker: 78, At: now.Add(-2 * time.Second), ProbeAt: now.Add(-time.Second)},
}

// healthy is reported without its troubles.
func healthy() []settle.NodeReport {
	list := slices.DeleteFunc(slices.Clone(reported), ofInbox)
	for i := range list {
		list[i].State, list[i].Failures, list[i].Probe, list[i].ProbeAt = closed, 0, 0, time.Time{}
	}
	return list
}

func offBy(r settle.AttemptReason, node, text string) func(*settle.Job) {
	return func(j *settle.Job) {
		dueSince(-4 * time.Second)(j)
		j.Attempt, j.Excused, j.Deferred = 5, 4, 4
		j.Attempts = []settle.Attempt{{N: 1, Reason: settle.AttemptStepError, Step: "render", Ticket: ticket, Node: "gpu-2", Error: "gpu_oom: CUDA out of memory", At: now.Add(-time.Minute)},
			{N: 5, Reason: r, Node: node, Error: text, At: now.Add(-2 * time.Second)}}
	}
}

var ticket = settle.DeriveID([]byte("ticket"))

const noNode = "no node of pool gpu can be called (gpu-1 open, gpu-2 half-open); the first probe is in 12s"

func parked(change func(*settle.Job)) settle.Job {
	return sample(func(j *settle.Job) {
		j.State, j.Attempt, j.WaitEnds, j.Alarm = settle.Awaiting, 1, now.Add(40*time.Minute), now.Add(40*time.Minute)
		j.Wait = &settle.Wait{Step: "render", Ticket: ticket, Node: "gpu-2", Pool: "gpu"}
		if change != nil {
			change(j)
		}
	})
}

var explainElsewhereCases = []explained{
	{"no node", sample(offBy(settle.AttemptNoNode, "", noNode)), around{nodes: reported}},
	{"no node, they recovered", sample(offBy(settle.AttemptNoNode, "", noNode)), around{nodes: healthy()}},
	{"no node, nobody reports", sample(offBy(settle.AttemptNoNode, "", noNode)), around{}},
	{"no node, and it never failed", sample(func(j *settle.Job) { offBy(settle.AttemptNoNode, "", noNode)(j); j.Attempts = j.Attempts[1:] }), around{nodes: reported}},
	{"no node, due again, nobody serves it", sample(func(j *settle.Job) {
		offBy(settle.AttemptNoNode, "", noNode)(j)
		j.Attempts = j.Attempts[1:]
		j.Due = now.Add(-time.Minute)
	}), around{nodes: reported}},
	{"busy", sample(offBy(settle.AttemptBusy, "gpu-2", "HTTP 503 Service Unavailable: two jobs are at work")), around{nodes: reported}},
	{"rate limited", sample(offBy(settle.AttemptRateLimited, "", "pool gpu: too many of its submissions are repeats of failed ones")), around{nodes: healthy()}},
	{"many nodes", sample(offBy(settle.AttemptNoNode, "", "no node of pool big can be called")), around{nodes: manyNodes()}},
	{"a step failed, and a retry helps", sample(func(j *settle.Job) {
		dueSince(-time.Second)(j)
		j.Attempt = 2
		j.Attempts = []settle.Attempt{{N: 2, Reason: settle.AttemptStepError, Step: "render", Ticket: ticket, Node: "gpu-1", Error: "gpu_oom: CUDA out of memory", Retryable: true, At: now}}
	}), around{}},
	{"awaiting, silence, open breaker, inbox", parked(func(j *settle.Job) { j.Wait.Silence, j.Alarm = time.Minute, now.Add(20*time.Second) }), around{nodes: reported}},
	{"awaiting, healthy", parked(nil), around{nodes: healthy()}},
	{"awaiting until the deadline", parked(func(j *settle.Job) { j.WaitEnds, j.Alarm = j.Deadline, j.Deadline }), around{}},
	{"awaiting a second step", parked(func(j *settle.Job) { j.Steps = []settle.StepResult{{Step: "probe", Node: "cpu-1"}} }), around{}},
	{"awaiting, and nobody sweeps", parked(func(j *settle.Job) { j.Alarm, j.WaitEnds = now.Add(-time.Hour), now.Add(-time.Hour) }), around{}},
	{"dead: a node's words", ended(settle.Dead, settle.EndExhausted, func(j *settle.Job) {
		j.Attempt = 2
		j.Attempts = []settle.Attempt{{N: 1, Reason: settle.AttemptProtocol, Step: "render", Ticket: ticket, Node: "a", Error: "empty answer", At: now},
			{N: 2, Reason: settle.AttemptStepError, Step: "render", Ticket: ticket, Node: "b", Error: "out of memory", At: now}}
	}), around{}},
	{"dead: the last word is generic", ended(settle.Dead, settle.EndExhausted, func(j *settle.Job) {
		j.Attempt = 2
		j.Attempts = []settle.Attempt{{N: 1, Reason: settle.AttemptStepError, Step: "render", Ticket: ticket, Node: "b", Error: "out of memory", At: now},
			{N: 2, Reason: settle.AttemptNoResult, Step: "render", Ticket: ticket, Node: "c", Error: "no answer in time", At: now}}
	}), around{}},
}

func manyNodes() (list []settle.NodeReport) {
	for i := range 8 {
		list = append(list, settle.NodeReport{Pool: "big", Node: fmt.Sprint("n", i), State: "open", Failures: 1, Probe: time.Second, ProbeAt: now.Add(time.Second), At: now})
	}
	return list
}

// TestTheNodesScreen.
func TestTheNodesScreen(t *testing.T) {
	var b strings.Builder
	passed := []settle.NodeReport{{Pool: "gpu", Node: "gpu-1", State: "open", ProbeAt: now.Add(-time.Second), Worker: 77, At: now}}
	for _, list := range [][]settle.NodeReport{reported, reported[:2], reported[2:], passed, nil} {
		if err := showNodes(&b, list, now); err != nil {
			t.Fatal(err)
		}
		b.WriteString("----\n")
	}
	o := evilFree()
	o.nodes = append(slices.Clone(reported), settle.NodeReport{State: "redis", Text: "read, 3 waiting", Worker: 79, At: now})
	if err := o.show(&b); err != nil {
		t.Fatal(err)
	}
	o = overview{db: "settle.db", at: now, nodes: passed}
	if err := o.show(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "nodes.golden", b.String())
}

// TestB055NodesWriteNothingOnTheScreen: their names and texts come from outside.
func TestB055NodesWriteNothingOnTheScreen(t *testing.T) {
	list := []settle.NodeReport{{Pool: evil, Node: evil, State: evil, Text: evil, At: now}, {State: evil, Text: evil, At: now}}
	j := sample(offBy(settle.AttemptNoNode, evil, evil))
	var b bytes.Buffer
	if err := showNodes(&b, list, now); err != nil {
		t.Fatal(err)
	}
	nodes, inboxes := viewNodes(list, now)
	if err := writeJSON(&b, nodesJSON{now, nodes, inboxes}); err != nil {
		t.Fatal(err)
	}
	o := evilFree()
	o.nodes = list
	if err := o.show(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString(explain(j, around{nodes: list}))
	b.WriteString(explain(parked(func(j *settle.Job) { j.Wait.Node, j.Wait.Pool = evil, evil }), around{nodes: list}))
	j.Steps = []settle.StepResult{{Step: evil, Node: evil}}
	if err := showJob(&b, j); err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(b.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(l, "\n"), invisible) || strings.HasPrefix(l, "level=INFO") {
			t.Errorf("%q", l)
		}
	}
}

// TestNodesAndWhyReadWhatProcessesReport, from a real store.
func TestNodesAndWhyReadWhatProcessesReport(t *testing.T) {
	db := newDB(t)
	id := strings.TrimSpace(must(t, db, "", "enqueue", "video.render", "{}"))
	if out := must(t, db, "", "nodes"); out != "no process reports nodes: those that run remote steps do so, for as long as they run\n" {
		t.Errorf("no report: %q", out)
	}
	st, err := sqlite.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.ReportNodes(t.Context(), 77, reported[:4], time.Minute); err != nil {
		t.Fatal(err)
	}
	out := must(t, db, "", "nodes")
	for _, w := range []string{"gpu-1", "open", "in 1", "cpu-1", "inbox redis of worker 77: "} {
		if !strings.Contains(out, w) {
			t.Errorf("nodes: no %q in %s", w, out)
		}
	}
	out = must(t, db, "", "status")
	if !strings.Contains(out, "node gpu-1 of pool gpu: open, 5 failures in a row, first probe at ") || strings.Contains(out, "cpu-1") || !strings.Contains(out, "inbox redis: ") {
		t.Errorf("status: %s", out)
	}
	var v nodesJSON
	if err := json.Unmarshal([]byte(must(t, db, "", "nodes", "--json")), &v); err != nil || len(v.Nodes) != 2 || len(v.Inboxes) != 1 || v.Nodes[1].ProbeAt.IsZero() || !v.Nodes[0].ProbeAt.IsZero() {
		t.Errorf("nodes --json: %+v, %v", v, err)
	}
	claimAndPark(t, st, id)
	if why := must(t, db, "", "why", id); !strings.Contains(why, "awaiting the answer of step render from node gpu-1 since 20") || !strings.Contains(why, "The breaker of gpu-1 of pool gpu: open") {
		t.Errorf("why: %s", why)
	}
}

// claimAndPark brings a job to a node.
func claimAndPark(t *testing.T, st *sqlite.Store, id string) {
	t.Helper()
	got, err := st.Claim(t.Context(), settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: []string{"video.render"}, Limit: 1, Lease: time.Minute, Worker: 77})
	if err != nil || len(got.Jobs) != 1 || got.Jobs[0].ID.String() != id {
		t.Fatal(got, err)
	}
	j, err := settle.NewClient(st).Get(t.Context(), got.Jobs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	m := j.Decide(settle.Parked{Wait: settle.Wait{Ticket: settle.NewID(), Step: "render", Node: "gpu-1", Pool: "gpu"}}, 0, false)
	if said, err := st.Apply(t.Context(), []settle.Transition{m}); err != nil || said[0] != settle.Done {
		t.Fatal(said, err)
	}
}
