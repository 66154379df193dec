package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// sample is a pending job that has been due for a second.
func sample(change func(*settle.Job)) settle.Job {
	j := settle.Job{ID: settle.DeriveID([]byte("sample")), Kind: "mail.send", Queue: "mail", Tenant: "acme",
		State: settle.Pending, Counters: settle.Counters{Tries: 10}, Policy: settle.DefaultPolicy(),
		Enqueued: now.Add(-time.Hour), FirstDue: now.Add(-time.Second), Due: now.Add(-time.Second),
		Deadline: now.Add(48 * time.Hour), Alarm: now.Add(48 * time.Hour), EndsBy: settle.EndsBy(now.Add(48 * time.Hour)), Now: now}
	if change != nil {
		change(&j)
	}
	return j
}

func ended(state settle.State, reason settle.EndReason, change func(*settle.Job)) settle.Job {
	return sample(func(j *settle.Job) {
		j.State, j.Reason, j.EndedAt = state, reason, now.Add(-3*time.Hour)
		j.EndsBy, j.Alarm = time.Time{}, time.Time{}
		j.Attempt = 1
		if change != nil {
			change(j)
		}
	})
}

func failedAt(n int, r settle.AttemptReason, text string) settle.Attempt {
	return settle.Attempt{N: n, Reason: r, Error: text, At: now.Add(-time.Minute)}
}

func dueSince(d time.Duration) func(*settle.Job) {
	return func(j *settle.Job) { j.Due, j.FirstDue = now.Add(-d), now.Add(-d) }
}

var pause = settle.Hold{Queue: "mail", Whole: true, For: 2 * time.Hour, Until: now.Add(2 * time.Hour), Text: "server is moved"}
var hold = settle.Hold{Queue: "mail", Tenant: "acme", For: time.Hour, Until: now.Add(time.Hour), Text: "operator"}

type explained struct {
	name string
	job  settle.Job
	at   around
}

var explainPendingCases = []explained{
	{"just due", sample(nil), around{}},
	{"scheduled", sample(dueSince(-90 * time.Minute)), around{}},
	{"nobody serves it", sample(dueSince(5 * time.Minute)), around{age: settle.Age{Waiting: 2 * time.Hour}}},
	{"nobody serves it, odd names", sample(func(j *settle.Job) { dueSince(time.Minute)(j); j.Kind, j.Queue = "it's mine", "a b" }), around{}},
	{"waits for its turn", sample(dueSince(5 * time.Minute)), around{age: settle.Age{Waiting: 6 * time.Minute}, busy: true}},
	{"queue paused", sample(func(j *settle.Job) { j.Held = pause.Until }), around{holds: []settle.Hold{hold, pause}}},
	{"lane held", sample(func(j *settle.Job) { j.Held = hold.Until }), around{holds: []settle.Hold{{Queue: "other", Whole: true, Until: now.Add(9 * time.Hour)}, hold}}},
	{"held, hold not listed", sample(func(j *settle.Job) { j.Held = hold.Until }), around{}},
	{"held and scheduled for later", sample(func(j *settle.Job) { j.Held = hold.Until; j.Due = now.Add(24 * time.Hour) }), around{holds: []settle.Hold{hold}}},
	{"retrying", sample(func(j *settle.Job) {
		dueSince(-time.Minute)(j)
		j.Attempt, j.Attempts = 3, []settle.Attempt{failedAt(2, settle.AttemptError, "first"), failedAt(3, settle.AttemptPanic, "boom.")}
	}), around{}},
	{"retrying for the last time", sample(func(j *settle.Job) {
		dueSince(-time.Minute)(j)
		j.Attempt, j.Attempts = 9, []settle.Attempt{failedAt(9, settle.AttemptTimedOut, "timed out")}
	}), around{}},
	{"put off", sample(func(j *settle.Job) {
		dueSince(-time.Minute)(j)
		j.Attempt, j.Excused, j.Deferred = 5, 4, 4
		j.Attempts = []settle.Attempt{failedAt(1, settle.AttemptError, "boom"), failedAt(5, settle.AttemptSnoozed, "")}
	}), around{}},
	{"handed back at shutdown", sample(func(j *settle.Job) {
		j.Attempt, j.Excused, j.Deferred = 1, 1, 1
		j.Attempts = []settle.Attempt{failedAt(1, settle.AttemptShutdown, "")}
	}), around{}},
	{"suspect", sample(func(j *settle.Job) {
		dueSince(20 * time.Second)(j)
		j.Suspect, j.Crashed, j.Attempt = true, 2, 2
		j.Attempts = []settle.Attempt{failedAt(2, settle.AttemptWorkerLost, "the lease ran out")}
	}), around{busy: true}},
	{"overdue: nobody sweeps", sample(func(j *settle.Job) { dueSince(72 * time.Hour)(j); j.EndsBy = now.Add(-time.Hour) }), around{}},
	{"unknown state", sample(func(j *settle.Job) { j.State = "melting" }), around{}},
}

var explainOtherCases = []explained{
	{"running", sample(func(j *settle.Job) {
		j.State, j.Attempt, j.Worker, j.Alarm = settle.Running, 1, 77, now.Add(20*time.Second)
	}), around{}},
	{"running its last attempt", sample(func(j *settle.Job) {
		j.State, j.Attempt, j.Worker, j.Alarm = settle.Running, 10, 77, now.Add(20*time.Second)
		j.Attempts = []settle.Attempt{{N: 9, Reason: settle.AttemptStepError, Node: "b", Error: "out of memory"}}
	}), around{}},
	{"lease over", sample(func(j *settle.Job) {
		j.State, j.Attempt, j.Worker, j.Alarm = settle.Running, 1, 77, now.Add(-12*time.Second)
	}), around{}},
	{"awaiting", sample(func(j *settle.Job) {
		j.State, j.Attempt, j.WaitEnds = settle.Awaiting, 1, now.Add(40*time.Minute)
		j.Wait = &settle.Wait{Step: "render", Node: "gpu-2", Silence: time.Minute}
	}), around{}},
	{"awaiting, nothing known", sample(func(j *settle.Job) { j.State, j.Attempt = settle.Awaiting, 1 }), around{}},
	{"succeeded", ended(settle.Succeeded, settle.EndOK, nil), around{}},
	{"succeeded after failures", ended(settle.Succeeded, settle.EndOK, func(j *settle.Job) {
		j.Attempt, j.Attempts = 3, []settle.Attempt{failedAt(1, settle.AttemptError, "boom"), failedAt(2, settle.AttemptShutdown, "")}
	}), around{}},
	{"never started", ended(settle.Dead, settle.EndExpired, func(j *settle.Job) { j.Attempt, j.Note = 0, "the deadline passed" }), around{}},
	{"cancelled while pending", ended(settle.Cancelled, settle.EndCancelled, func(j *settle.Job) {
		j.Attempts, j.Note = []settle.Attempt{failedAt(1, settle.AttemptError, "boom")}, "not wanted"
	}), around{}},
	{"cancelled while running", ended(settle.Cancelled, settle.EndCancelled, func(j *settle.Job) {
		j.Attempts, j.Note = []settle.Attempt{failedAt(1, settle.AttemptCancelled, "wrong customer")}, "wrong customer"
	}), around{}},
	{"no redrive left", ended(settle.Dead, settle.EndExhausted, func(j *settle.Job) {
		j.Attempt, j.Redrives, j.Tries = 210, 20, 210
		j.Attempts = []settle.Attempt{failedAt(210, settle.AttemptError, "boom")}
	}), around{}},
	{"hostile text (B-055)", ended(settle.Dead, settle.EndTerminal, func(j *settle.Job) {
		j.Attempts = []settle.Attempt{failedAt(1, settle.AttemptError, "\x1b[2Jboom \u202egnp.exe\r\ntime=now level=INFO forged مرحبا 👍")}
	}), around{}},
}

// TestExplainSaysWhy holds every paragraph as a golden file.
func TestExplainSaysWhy(t *testing.T) {
	cases := slices.Concat(explainPendingCases, explainOtherCases, explainElsewhereCases)
	for _, r := range settle.EndReasons {
		if r != settle.EndOK && r != settle.EndCancelled {
			cases = append(cases, explained{"dead: " + string(r), ended(settle.Dead, r, func(j *settle.Job) {
				j.Attempts = []settle.Attempt{failedAt(1, settle.AttemptError, "boom")}
			}), around{}})
		}
	}
	var b strings.Builder
	for _, c := range cases {
		text := explain(c.job, c.at)
		fmt.Fprintf(&b, "## %s\n%s\n\n", c.name, text)
		if strings.ContainsFunc(text, invisible) {
			t.Errorf("%s: invisible characters: %q", c.name, text)
		}
		if c.job.State.Live() && !strings.Contains(text, "ended by") {
			t.Errorf("P1: %s: does not say by when it ends", c.name)
		}
	}
	golden(t, "explain.golden", b.String())
}

// TestEveryEndReasonHasWords: a new reason must be explained.
func TestEveryEndReasonHasWords(t *testing.T) {
	for _, r := range settle.EndReasons {
		if r != settle.EndOK && endMeans[r] == "" {
			t.Errorf("%s is not explained", r)
		}
	}
}
