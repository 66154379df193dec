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

// The whole of Passed: when the alarm and the deadline are, seen from now, and
// what may be acted upon (l: leases, e: waits and deadlines).
func TestP1P13EveryTimeThatPassesBringsItsEvent(t *testing.T) {
	const ago, now, later, much = -time.Minute, time.Duration(0), time.Minute, time.Hour
	lease, wait, deadline := Event(LeaseOver{}), Event(WaitOver{}), Event(DeadlineOver{})
	for _, c := range []struct {
		when            string
		in              []State
		alarm, end      time.Duration
		none, l, e, all Event
	}{
		{"the alarm is to come", States, later, much, nil, nil, nil, nil},
		{"the alarm is the deadline, which is to come", States, later, later, nil, nil, nil, nil},
		{"the lease is over", one(Running), ago, later, nil, lease, nil, lease},
		{"the lease is over this moment", one(Running), now, later, nil, lease, nil, lease},
		{"the lease was over before the deadline passed", one(Running), ago - 1, ago, nil, nil, nil, lease},
		{"the lease was over before the deadline that passes now", one(Running), ago, now, nil, nil, nil, lease},
		{"the lease reached to the deadline", one(Running), ago, ago, nil, nil, deadline, deadline},
		{"the wait is over", one(Awaiting), ago, later, nil, nil, wait, wait},
		{"the wait is over this moment", one(Awaiting), now, later, nil, nil, wait, wait},
		{"the wait was over before the deadline passed", one(Awaiting), ago - 1, ago, nil, nil, deadline, deadline},
		{"the deadline has passed", notRunning, ago, ago, nil, nil, deadline, deadline},
		{"the deadline passes this moment", []State{Pending, Running, Awaiting}, now, now, nil, nil, deadline, deadline},
		{"a pending job waits for its deadline alone", one(Pending), ago, later, nil, nil, nil, nil},
		{"the job has ended", ended, ago, ago, nil, nil, nil, nil},
		{"the state is none", []State{"", "nowhere"}, ago, ago, nil, nil, nil, nil},
	} {
		for _, s := range c.in {
			j := Job{State: s, Now: noon, Alarm: noon.Add(c.alarm), Deadline: noon.Add(c.end)}
			got := [...]Event{j.Passed(false, false), j.Passed(true, false), j.Passed(false, true), j.Passed(true, true)}
			if want := [...]Event{c.none, c.l, c.e, c.all}; got != want {
				t.Errorf("%s, %s:\n got %T\nwant %T", s, c.when, got, want)
			}
			if ev := got[3]; ev != nil && j.Decide(ev, 0, true).Refusal != "" {
				t.Errorf("%s, %s: Decide refuses %T", s, c.when, ev)
			}
		}
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
