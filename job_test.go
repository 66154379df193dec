package settle

import (
	"errors"
	"testing"
	"time"
)

func TestLabelsAreDerivedFromThePendingState(t *testing.T) {
	later := noon.Add(time.Hour)
	for want, j := range map[string]Job{
		"pending":   {State: Pending, Due: noon},
		"scheduled": {State: Pending, Due: later},
		"retrying":  {State: Pending, Due: later, Counters: Counters{Attempt: 2, Excused: 1, Deferred: 1}},
		"deferred":  {State: Pending, Due: later, Counters: Counters{Attempt: 2, Excused: 2, Deferred: 2}},
		"held":      {State: Pending, Due: later, Held: later},
		"running":   {State: Running, Held: later},
		"dead":      {State: Dead},
	} {
		j.Now = noon
		if got := j.Label(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestP12LaterEndNeverHidesTheLastRealError(t *testing.T) {
	real := Attempt{N: 1, Reason: AttemptTimedOut, Error: "no answer from the scanner"}
	var after []Attempt
	for _, r := range AttemptReasons {
		if generic(r) {
			after = append(after, Attempt{N: 2, Reason: r, Error: "generic"})
		}
	}
	j := Job{ID: ID{1}, State: Dead, Reason: EndExpired, Counters: Counters{Attempt: 2}, Attempts: append([]Attempt{real}, after...)}
	if a, ok := j.LastError(); !ok || a != real {
		t.Errorf("%+v", a)
	}
	var end *EndError
	if !errors.As(j.EndError(), &end) || end.Message != real.Error || end.Last != real.Reason || end.Reason != EndExpired {
		t.Errorf("%+v", end)
	}
	j.Attempts = after[:1]
	if a, ok := j.LastError(); !ok || a != after[0] {
		t.Errorf("with nothing better: %+v", a)
	}
	if _, ok := (Job{}).LastError(); ok {
		t.Error("an error out of nothing")
	}
	for _, s := range []State{Pending, Running, Awaiting, Succeeded} {
		if err := (Job{State: s}).EndError(); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestP1EndsByIsDeadlineAndOneSweepAndOneRenewal(t *testing.T) {
	if got := EndsBy(noon).Sub(noon); got != SweepInterval+RenewInterval {
		t.Errorf("%s", got)
	}
}

func TestP13SnapshotTurnsInstantsIntoDurations(t *testing.T) {
	j := Job{ID: ID{1}, Kind: "k", Queue: "q", Tenant: "t", State: Awaiting, Counters: Counters{Attempt: 2, Tries: 3},
		Deadline: noon.Add(time.Hour), WaitEnds: noon.Add(time.Minute), Now: noon, StepSpent: 1,
		Wait: &Wait{Ticket: ticketA}, Fence: Fence{Seen: 7, Handle: 8}}
	s := j.Snapshot()
	if s.Remaining != time.Hour || s.WaitLeft != time.Minute || s.StepSpent != 1 || s.Wait != j.Wait || s.Counters != j.Counters {
		t.Errorf("%+v", s)
	}
	want := Fence{Attempt: 2, State: Awaiting, Handle: 8}
	if tr := j.Decide(WaitOver{}, 0, false); tr.Fence != want {
		t.Errorf("%+v", tr.Fence)
	}
	want.Seen = 7
	if tr := j.Decide(WaitOver{}, 0, true); tr.Fence != want {
		t.Errorf("P3: a sweep must compare the alarm it saw: %+v", tr.Fence)
	}
}
