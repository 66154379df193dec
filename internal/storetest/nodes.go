package storetest

import (
	"time"
	"unicode/utf8"

	"github.com/settle-go/settle"
)

var waitClauses = []clause{
	{"Waits reads what answers are decided on as a reader of one job does", waitsDecide},
	{"Waits answers in the given order and with nothing for what has ended", waitsOrder},
	{"Waits brings neither payloads nor history", waitsNarrow},
}

func waitsDecide(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.tryStep(c, "s", true)
	c = r.again(c.ID)
	r.submits(&c, submission("t"))
	r.sameDecision("Waits of a running job", r.waits(c.ID), r.job(c.ID))
	r.moves(on(c, settle.Parked{Wait: submission("t")}))
	r.advance(time.Second)
	r.sameDecision("Waits of a parked job", r.waits(c.ID), r.job(c.ID))
	is(r, "attempts of the step that have ended", r.waits(c.ID)[0].StepSpent, 1)
	got, want := r.waits(c.ID)[0], r.job(c.ID)
	is(r, "state", got.State, want.State)
	is(r, "queue", got.Queue, want.Queue)
	is(r, "kind", got.Kind, want.Kind)
	is(r, "deadline", got.Deadline, want.Deadline)
	is(r, "alarm", got.Alarm, want.Alarm)
	near(r, "now", got.Now, r.now())
	n := r.add(tenant("a"))
	pending := r.waits(n)[0]
	is(r, "a pending job", pending.State, settle.Pending)
	is(r, "tenant of a pending job", pending.Tenant, "a")
	check(r, pending.Wait == nil, "a pending job waits for nothing: got %+v", pending.Wait)
}

func waitsOrder(r *rig) {
	a, b := r.add(task(settle.EnqueueOpts{Delay: time.Hour})), r.add(task(settle.EnqueueOpts{Delay: time.Hour}))
	over := r.ended(task(settle.EnqueueOpts{}), succeeded("1"))
	gone := r.died(task(settle.EnqueueOpts{}))
	is(r, "removed", r.remove(gone), 1)
	asked := []settle.ID{b, id("nobody"), a, over, b, gone, {}}
	same(r, "jobs", ids(r.waits(asked...)), []settle.ID{b, {}, a, {}, b, {}, {}})
	for i, j := range r.waits(asked...) {
		check(r, !j.ID.IsZero() || j.State == "" && j.Wait == nil && j.Now.IsZero(), "number %d is the zero job: got %+v", i, j)
	}
	is(r, "jobs for no ids", len(r.waits()), 0)
}

func waitsNarrow(r *rig) {
	c := r.started(task(settle.EnqueueOpts{}))
	r.moves(on(c, parked("one", "t1")))
	r.moves(r.seen(c.ID, answered("t1", "out")))
	c = r.claimOne()
	r.moves(on(c, failed("no")))
	c = r.again(c.ID)
	r.moves(on(c, parked("two", "t2")))
	j := r.waits(c.ID)[0]
	is(r, "input", string(j.Input), "")
	is(r, "output", string(j.Output), "")
	is(r, "attempts", len(j.Attempts), 0)
	is(r, "steps", len(j.Steps), 0)
}

// ---- what processes say of their nodes

var nodeClauses = []clause{
	{"reports of nodes are listed by pool and node and process", nodesListed},
	{"a report takes the place of all that its process said before", nodesReplaced},
	{"a report is forgotten after its time unless it is said again", nodesForgotten},
	{"another handle sees what is said of nodes", nodesElsewhere},
	{"a text of a report that nobody made safe does not stop it", nodesText},
}

func (r *rig) report(w int64, keep time.Duration, nodes ...settle.NodeReport) {
	r.Helper()
	ok(r, "ReportNodes", r.store.ReportNodes(r.ctx, w, nodes, keep))
}

func (r *rig) nodes() []settle.NodeReport {
	r.Helper()
	got, err := r.store.Nodes(r.ctx)
	ok(r, "Nodes", err)
	return got
}

// names of reports, as pool/node of process.
func (r *rig) nodeNames() (out []string) {
	r.Helper()
	for _, n := range r.nodes() {
		out = append(out, n.Pool+"/"+n.Node+" of "+string(rune('0'+n.Worker)))
	}
	return out
}

func node(pool, name string) settle.NodeReport {
	return settle.NodeReport{Pool: pool, Node: name, State: "closed"}
}

func nodesListed(r *rig) {
	is(r, "reports of nobody", len(r.nodes()), 0)
	r.report(2, time.Minute, node("b", "y"), node("a", "z"), node("a", ""))
	r.advance(time.Second)
	r.report(1, time.Minute, settle.NodeReport{Pool: "a", Node: "z", State: "open", Probe: 10 * time.Second, Failures: 5, Text: "no route",
		Worker: 9, At: Start.Add(time.Hour), ProbeAt: Start})
	same(r, "reports", r.nodeNames(), []string{"a/ of 2", "a/z of 1", "a/z of 2", "b/y of 2"})
	got := r.nodes()[1]
	is(r, "state", got.State, "open")
	is(r, "failures", got.Failures, 5)
	is(r, "text", got.Text, "no route")
	near(r, "when it was said", got.At, r.now())
	near(r, "when the breaker admits a call", got.ProbeAt, r.now().Add(10*time.Second))
	is(r, "until it admits one", got.Probe, 10*time.Second)
	near(r, "when the other one was said", r.nodes()[2].At, Start)
	check(r, r.nodes()[2].ProbeAt.IsZero() && r.nodes()[2].Probe == 0, "a breaker that admits calls has no time when it will")
	r.advance(4 * time.Second)
	is(r, "until it admits one, later", r.nodes()[1].Probe, 6*time.Second)
	r.advance(10 * time.Second)
	is(r, "until it admits one, when it has", r.nodes()[1].Probe, 0)
	r.balanced()
}

func nodesReplaced(r *rig) {
	r.report(1, time.Minute, node("a", "x"), node("a", "y"))
	r.report(2, time.Minute, node("a", "x"))
	r.report(1, time.Minute, node("a", "y"), node("b", "x"))
	same(r, "reports", r.nodeNames(), []string{"a/x of 2", "a/y of 1", "b/x of 1"})
	r.report(1, time.Minute)
	same(r, "reports after one of nothing", r.nodeNames(), []string{"a/x of 2"})
}

func nodesForgotten(r *rig) {
	r.report(1, 10*time.Second, node("a", "x"), node("a", "y"))
	r.report(2, time.Minute, node("a", "x"))
	r.advance(9 * time.Second)
	r.prune(settle.Keep{}, page)
	is(r, "reports within their time, after Prune", len(r.nodes()), 3)
	r.report(1, 10*time.Second, node("a", "x"))
	r.advance(2 * time.Second)
	same(r, "reports", r.nodeNames(), []string{"a/x of 1", "a/x of 2"})
	r.advance(9 * time.Second)
	same(r, "reports without a Prune", r.nodeNames(), []string{"a/x of 2"})
	r.prune(settle.Keep{}, page)
	same(r, "reports after Prune", r.nodeNames(), []string{"a/x of 2"})
	r.advance(time.Hour)
	is(r, "reports after an hour", len(r.nodes()), 0)
	r.balanced()
}

func nodesElsewhere(r *rig) {
	b := r.beside()
	r.report(1, time.Minute, node("a", "x"))
	same(r, "reports there", b.nodeNames(), []string{"a/x of 1"})
	b.report(2, time.Minute, node("a", "x"))
	same(r, "reports here", r.nodeNames(), []string{"a/x of 1", "a/x of 2"})
}

func nodesText(r *rig) {
	n := node("a", "x")
	n.Text = "a\x00b\xff"
	r.report(1, time.Minute, n, node("a", "y"))
	got := r.nodes()
	is(r, "reports", len(got), 2)
	check(r, utf8.ValidString(got[0].Text), "what is shown is text: got %q", got[0].Text)
}
