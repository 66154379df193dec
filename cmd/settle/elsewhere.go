package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settle-go/settle"
)

// What explain says of work that is done elsewhere: waits, and deferrals.

// offBecause says in words why an attempt was put off.
var offBecause = map[settle.AttemptReason]string{
	settle.AttemptShutdown:    "its worker stopped",
	settle.AttemptSnoozed:     "its handler asked for it",
	settle.AttemptNoNode:      "no node could take it",
	settle.AttemptBusy:        "the node was busy",
	settle.AttemptRateLimited: "of a rate limit",
	settle.AttemptLaneHeld:    "its lane was held",
}

// putOff returns the last attempt if it was a deferral, not a failure.
func putOff(j settle.Job) (last settle.Attempt, off bool) {
	if len(j.Attempts) == 0 {
		return last, j.Label() == "deferred"
	}
	last = j.Attempts[len(j.Attempts)-1]
	return last, offBecause[last.Reason] != ""
}

// deferred is about a job that was put off and is not due yet.
func (p *paragraph) deferred(j settle.Job, last settle.Attempt, at around) {
	p.toldOff = true
	p.add("It was put off (deferral %d of %d)%s; it is due again at %s.",
		j.Deferred, j.Policy.WithDefaults().Deferrals, because(last), ago(j.Due, j.Now))
	if last.Error != "" {
		p.add("At %s: %s.", stamp(last.At), sentence(last.Error, 600))
	}
	switch last.Reason {
	case settle.AttemptNoNode, settle.AttemptBusy, settle.AttemptRateLimited:
		p.nodes(j, last, at)
	}
}

func because(last settle.Attempt) string {
	why := offBecause[last.Reason]
	if why == "" {
		return ""
	}
	if last.Reason == settle.AttemptBusy && last.Node != "" {
		why = "node " + cell(last.Node) + " was busy"
	}
	return " because " + why
}

// mostNodes is how many nodes one paragraph names.
const mostNodes = 5

// nodes says which nodes cannot be called now, as far as the job can have to do
// with them.
func (p *paragraph) nodes(j settle.Job, last settle.Attempt, at around) {
	reports := slices.DeleteFunc(slices.Clone(at.nodes), ofInbox)
	reports = ofPools(reports, poolsOf(j, last, reports))
	if len(reports) == 0 {
		p.add("No process reports nodes now.")
		return
	}
	var says []string
	for _, v := range nodeViews(reports) {
		if v.troubled() {
			says = append(says, v.says(j.Now))
		}
	}
	switch n := len(says); {
	case n == 0:
		p.add("By now the breakers of all its nodes are closed.")
	case n > mostNodes:
		p.add("Breakers now: %s; and %d more (settle nodes).", strings.Join(says[:mostNodes], "; "), n-mostNodes)
	default:
		p.add("Breakers now: %s.", strings.Join(says, "; "))
	}
}

// poolsOf are the pools that the job can have to do with: those that its last
// deferral names, else those whose nodes it was with. None = nobody knows.
func poolsOf(j settle.Job, last settle.Attempt, reports []settle.NodeReport) (named []string) {
	for _, n := range reports {
		if strings.Contains(last.Error+" ", "pool "+n.Pool+" ") || strings.Contains(last.Error, "pool "+n.Pool+":") {
			named = append(named, n.Pool)
		}
	}
	if len(named) > 0 {
		return named
	}
	for _, n := range reports {
		if slices.ContainsFunc(j.Attempts, func(a settle.Attempt) bool { return a.Node == n.Node }) {
			named = append(named, n.Pool)
		}
	}
	return named
}

func ofPools(reports []settle.NodeReport, pools []string) []settle.NodeReport {
	if len(pools) == 0 {
		return reports
	}
	return slices.DeleteFunc(reports, func(n settle.NodeReport) bool { return !slices.Contains(pools, n.Pool) })
}

func (p *paragraph) awaiting(j settle.Job, at around) {
	w := j.Wait
	if w == nil {
		p.add("It waits for a remote answer.")
		return
	}
	where, since := "", ""
	if w.Node != "" {
		where = " from node " + cell(w.Node)
	}
	if j.WaitEnds.Before(j.Deadline) { // else the wait was cut, and its length does not tell
		since = " since " + ago(j.WaitEnds.Add(-j.Policy.WithDefaults().Wait), j.Now)
	}
	p.add("It has been awaiting the answer of step %s%s%s, with attempt %d.", cell(w.Step), where, since, j.Attempt)
	p.add("It waits at most until %s.", ago(j.WaitEnds, j.Now))
	switch {
	case w.Silence > 0 && j.Alarm.Before(j.WaitEnds):
		p.add("It gives up sooner, at %s, unless the node gives a sign of life: the silence may last %s.", ago(j.Alarm, j.Now), span(w.Silence))
	case w.Silence > 0:
		p.add("The silence of the node may last %s.", span(w.Silence))
	}
	if late := j.Now.Sub(j.Alarm); late > unserved {
		p.add("The wait is over since %s, but no worker runs that would end it.", ago(j.Alarm, j.Now))
	}
	for _, line := range inboxLines(at.nodes) {
		p.add("Answers may come by the %s.", strings.TrimRight(line, "."))
	}
	for _, v := range nodeViews(ofPools(at.nodes, []string{w.Pool})) {
		if v.node == w.Node && v.troubled() {
			p.add("The breaker of %s.", v.says(j.Now))
		}
	}
}

// stepLeft says how many attempts are left to the step that failed last.
func (p *paragraph) stepLeft(j settle.Job) {
	if step, spent, most := stepBudget(j); step != "" {
		p.add("Step %s has %d of its %s left.", cell(step), max(most-spent, 0), plural(most, "attempt"))
	}
}

// stepBudget counts the submitted attempts since the last redrive of the step
// that failed last, and how many it may have. "" = no step failed last.
func stepBudget(j settle.Job) (step string, spent, most int) {
	last, _ := j.LastError()
	if last.Step == "" || last.N <= j.Base {
		return "", 0, 0
	}
	p := j.Policy.WithDefaults()
	for _, a := range j.Attempts {
		if a.Step == last.Step && !a.Ticket.IsZero() && a.N > j.Base {
			spent++
			most = p.StepAttempts
			if a.Retryable {
				most = max(most, p.StepAttemptsRetryable)
			}
		}
	}
	if spent == 0 {
		return "", 0, 0
	}
	return last.Step, spent, most
}

// steps names the steps that are finished.
func (p *paragraph) steps(j settle.Job) {
	var done []string
	for _, s := range j.Steps {
		done = append(done, stepDone(s))
	}
	if len(done) > 0 {
		p.add("Finished: %s.", strings.Join(done, ", "))
	}
}

// stepDone names a finished step and who did it.
func stepDone(s settle.StepResult) string {
	if s.Node == "" {
		return "step " + cell(s.Step)
	}
	return fmt.Sprintf("step %s on node %s", cell(s.Step), cell(s.Node))
}

// sentence is error text that a full stop follows.
func sentence(text string, limit int) string { return strings.TrimRight(clipped(text, limit), ".") }
