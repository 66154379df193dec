package main

import (
	"fmt"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// around is what explain knows of the job's surroundings.
type around struct {
	age   settle.Age    // of its queue and kind; zero = unknown
	busy  bool          // a job of this kind runs in this queue
	holds []settle.Hold // that have not passed
	nodes []settle.NodeReport
}

// unserved is how long a due job waits before we say that nobody serves it:
// several polls and a renewal.
const unserved = settle.RenewInterval

// explain says in one paragraph why a job is not running, or how it ended. It
// is pure: everything it knows stands in its arguments.
func explain(j settle.Job, at around) string {
	p := &paragraph{}
	switch j.State {
	case settle.Pending:
		p.pending(j, at)
		p.past(j)
	case settle.Running:
		p.running(j)
		p.past(j)
	case settle.Awaiting:
		p.awaiting(j, at)
		p.past(j)
	case settle.Succeeded:
		p.add("It succeeded at %s, with attempt %d%s.", ago(j.EndedAt, j.Now), j.Attempt, failedBefore(j))
	case settle.Dead, settle.Cancelled:
		p.end(j)
	default:
		p.add("It is in the state %q, which this program does not know: a newer settle wrote it.", cell(string(j.State)))
	}
	if j.State.Live() {
		p.endsBy(j)
	}
	return strings.Join(append(p.say, p.next...), " ")
}

// paragraph gathers sentences, and what a person can do next.
type paragraph struct {
	say, next []string
	toldOff   bool // why the last attempt was put off
}

func (p *paragraph) add(format string, args ...any) {
	p.say = append(p.say, fmt.Sprintf(format, args...))
}

// advise ends the paragraph with a command: nothing follows that one could take
// for a part of it.
func (p *paragraph) advise(what, command string) { p.next = []string{what + ": " + command} }

func (p *paragraph) pending(j settle.Job, at around) {
	last, off := putOff(j)
	switch {
	case !j.Held.IsZero():
		p.add("%s until %s; that ends by itself.", heldBy(j, at.holds), ago(j.Held, j.Now))
		if j.Due.After(j.Held) {
			p.add("After that it is scheduled for %s.", ago(j.Due, j.Now))
		}
	case j.Due.After(j.Now) && off:
		p.deferred(j, last, at)
	case j.Due.After(j.Now) && j.Attempt > j.Base:
		p.add("Its last attempt failed; the next one is due at %s.", ago(j.Due, j.Now))
	case j.Due.After(j.Now):
		p.add("It is scheduled: due at %s.", ago(j.Due, j.Now))
	default:
		p.waiting(j, at)
	}
}

// waiting is about a job that a worker could take now.
func (p *paragraph) waiting(j settle.Job, at around) {
	waits := j.Now.Sub(j.Due)
	if j.Suspect {
		p.add("It has lost its worker %s and one more such crash would end it, so it waits for a worker process in which it can run alone.", times(j.Crashed))
	}
	switch {
	case waits >= unserved && !at.busy:
		p.add("It has been due for %s and no worker seems to serve this kind: no job of kind %s is running in queue %s, and the oldest has been waiting for %s.",
			span(waits), cell(j.Kind), cell(j.Queue), span(max(at.age.Waiting, waits)))
		p.advise("To start a worker", fmt.Sprintf("settle work --queue %s --exec %s=CMD", child.Quote(cell(j.Queue)), child.Quote(cell(j.Kind))))
	case waits >= unserved:
		p.add("It has been due for %s and waits for its turn: jobs of kind %s are running in queue %s, and the oldest that waits has been waiting for %s.",
			span(waits), cell(j.Kind), cell(j.Queue), span(max(at.age.Waiting, waits)))
	default:
		p.add("It has been due for %s; a worker that serves kind %s in queue %s takes it at its next look.", span(waits), cell(j.Kind), cell(j.Queue))
	}
}

// heldBy names the hold that keeps the job.
func heldBy(j settle.Job, holds []settle.Hold) string {
	what := "It is held"
	for _, h := range holds {
		if h.Queue != j.Queue || !h.Whole && h.Tenant != j.Tenant || h.Until.Before(j.Held) {
			continue
		}
		what = "It waits because " + holdTitle(h)
		if h.Text != "" {
			what += " (" + clipped(h.Text, 300) + ")"
		}
		return what
	}
	return what
}

func (p *paragraph) running(j settle.Job) {
	if left := j.Alarm.Sub(j.Now); left < 0 {
		p.add("Attempt %d is with worker %d, whose lease ran out %s ago: the worker died or lost the store. The next sweep of any worker decides what follows; if this lasts, no worker runs.",
			j.Attempt, j.Worker, span(-left))
		return
	}
	p.add("It is running: attempt %d, by worker %d, which holds the lease until %s and renews it while it works. The attempt may take %s.",
		j.Attempt, j.Worker, ago(j.Alarm, j.Now), span(j.Policy.WithDefaults().Timeout))
}

// past says what the attempts so far came to, and how many are left.
func (p *paragraph) past(j settle.Job) {
	p.steps(j)
	p.last(j)
	left := j.Tries - j.Charged()
	switch {
	case j.Attempt == 0:
	case j.State == settle.Pending && left == 1:
		p.add("It has one attempt left: if that fails, the job is dead.")
	case j.State == settle.Pending:
		p.add("%d of its %s are left.", left, plural(j.Tries, "attempt"))
		p.stepLeft(j)
	case left <= 0:
		p.add("This is its last attempt: if it fails, the job is dead.")
	}
}

// last names the last real error.
func (p *paragraph) last(j settle.Job) {
	last, ok := j.LastError()
	if !ok {
		return
	}
	on := ""
	if last.Node != "" {
		on = " on node " + cell(last.Node)
	}
	switch {
	case offBecause[last.Reason] != "" && p.toldOff:
	case offBecause[last.Reason] != "" && last.Error != "":
		p.add("Attempt %d was put off%s: %s.", last.N, because(last), sentence(last.Error, 600))
	case offBecause[last.Reason] != "":
		p.add("Attempt %d was put off%s.", last.N, because(last))
	case last.Error == "":
		p.add("Attempt %d%s ended with %s.", last.N, on, last.Reason)
	default:
		p.add("The last real error was attempt %d%s: %s: %s.", last.N, on, last.Reason, sentence(last.Error, 600))
	}
}

// endMeans says in words what an end reason stands for.
var endMeans = map[settle.EndReason]string{
	settle.EndTerminal:    "an attempt said that trying again is useless",
	settle.EndExhausted:   "its attempts are spent",
	settle.EndWorkerLost:  "it lost its worker as often as its policy allows",
	settle.EndDeferredOut: "it was put off as often as its policy allows",
	settle.EndExpired:     "its deadline passed",
	settle.EndUndecodable: "its payload is not an input of its kind",
	settle.EndRefused:     "the far end refused it for good",
	settle.EndCancelled:   "somebody called it off",
}

func (p *paragraph) end(j settle.Job) {
	means, ok := endMeans[j.Reason]
	if !ok {
		means = "for a reason that this program does not know"
	}
	if step, spent, most := stepBudget(j); j.Reason == settle.EndExhausted && step != "" && spent >= most {
		means = fmt.Sprintf("the %s of step %s are spent", plural(most, "attempt"), cell(step))
	}
	p.add("It is %s since %s because %s: %s.", j.State, ago(j.EndedAt, j.Now), means, strings.TrimRight(endText(j), "."))
	if last, ok := j.LastError(); ok && j.State == settle.Cancelled && last.Reason != settle.AttemptCancelled {
		p.last(j)
	}
	if j.Attempt == 0 {
		p.add("It was never started.")
	} else {
		p.add("It had %s: %d charged, %d allowed, %d lost their worker.", plural(j.Attempt, "attempt"), j.Charged(), j.Tries, j.Crashed)
	}
	if j.Redrives >= j.Policy.WithDefaults().Redrives {
		p.add("It has been redriven %s, as often as its policy allows.", times(j.Redrives))
	} else {
		p.advise("To give it a new chance", "settle dead redrive "+j.ID.String())
	}
}

func (p *paragraph) endsBy(j settle.Job) {
	if j.Now.After(j.EndsBy) {
		p.add("It should have ended by %s, but no worker runs that would end it.", ago(j.EndsBy, j.Now))
		return
	}
	p.add("Whatever happens, it will have ended by %s.", ago(j.EndsBy, j.Now))
}

// failedBefore counts the attempts before the one that succeeded.
func failedBefore(j settle.Job) string {
	last, ok := j.LastError()
	if !ok {
		return ""
	}
	return fmt.Sprintf("; failed or put off before: %d, the last real error was %s: %s", len(j.Attempts), last.Reason, sentence(last.Error, 300))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
