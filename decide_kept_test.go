package settle

import (
	"reflect"
	"testing"
	"time"
)

// What the passing of time brings to an attempt whose step was answered before
// it could park: the answer, where it would have brought a crash, and else what
// it always brings.
func TestP9P13AKeptAnswerTakesThePlaceOfACrash(t *testing.T) {
	const ago, now, later, much = -time.Minute, time.Duration(0), time.Minute, time.Hour
	kept := answer(VerdictOK, "")
	for _, c := range []struct {
		when            string
		in              State
		alarm, end      time.Duration
		none, l, e, all Event
	}{
		{"the lease is to end", Running, later, much, nil, nil, nil, nil},
		{"the lease is over", Running, ago, later, nil, kept, nil, kept},
		{"the lease is over this moment", Running, now, later, nil, kept, nil, kept},
		{"the lease was over before the deadline passed", Running, ago - 1, ago, nil, nil, nil, kept},
		{"the lease reached to the deadline", Running, ago, ago, nil, nil, DeadlineOver{}, DeadlineOver{}},
		{"it waits, and an answer was left behind", Awaiting, ago, later, nil, nil, WaitOver{}, WaitOver{}},
		{"it is pending, and an answer was left behind", Pending, ago, ago, nil, nil, DeadlineOver{}, DeadlineOver{}},
		{"it has ended", Dead, ago, ago, nil, nil, nil, nil},
	} {
		snap := baseSnapshot(c.in)
		j := Job{ID: snap.ID, State: c.in, Counters: snap.Counters, Wait: &Wait{Ticket: ticketA, Step: "render"}, Answer: &kept,
			Now: noon, Alarm: noon.Add(c.alarm), Deadline: noon.Add(c.end)}
		got := []Event{j.Passed(false, false), j.Passed(true, false), j.Passed(false, true), j.Passed(true, true)}
		for i, want := range []Event{c.none, c.l, c.e, c.all} {
			if !reflect.DeepEqual(got[i], want) {
				t.Errorf("%s, trust %d: got %T, want %T", c.when, i, got[i], want)
			}
		}
		if ev := got[3]; ev != nil && j.Decide(ev, 0, true).Refusal != "" {
			t.Errorf("%s: Decide refuses %T", c.when, ev)
		}
	}
}

// Who brings an answer need not know where the job stands.
func TestAnsweredIsWhatAnAnswerMeansForTheJobAsItStands(t *testing.T) {
	d := answer(VerdictOK, "")
	for _, s := range append([]State{"", "nowhere"}, States...) {
		ev := Job{State: s}.Answered(d)
		if _, kept := ev.(Kept); kept != (s == Running) {
			t.Errorf("%q: %T", s, ev)
		}
	}
}

// Of all that ends an attempt with a ticket out, each tells its node to stop
// unless the node has had its say, or never began.
func TestOnlyANodeThatMayBeAtWorkIsRecalled(t *testing.T) {
	at := func(s State) Snapshot {
		snap := baseSnapshot(s)
		recalled(&snap)
		snap.WaitLeft = time.Minute
		return snap
	}
	for _, c := range []struct {
		from State
		ev   Event
		want bool
	}{
		{Running, settled(VerdictOK, "", ""), true},
		{Running, retry(AttemptError), true},
		{Running, refused(retry(AttemptError)), false},
		{Running, settled(VerdictTerminal, AttemptRefused, ""), true},
		{Running, refused(settled(VerdictTerminal, AttemptRefused, "")), false},
		{Running, Deferred{Reason: AttemptShutdown}, true},
		{Running, Deferred{Reason: AttemptSnoozed}, true},
		{Running, Deferred{Reason: "words of a handler"}, true},
		{Running, Deferred{Reason: AttemptNoNode}, false},
		{Running, Deferred{Reason: AttemptBusy}, false},
		{Running, Deferred{Reason: AttemptRateLimited}, false},
		{Running, Deferred{Reason: AttemptLaneHeld, Uncounted: true}, false},
		{Running, Submitting{Wait{Ticket: ticketB}}, false},
		{Running, Parked{Wait{Ticket: ticketA, Recall: true}}, false},
		{Running, Kept{answer(VerdictOK, "")}, false},
		{Running, answer(VerdictRetry, AttemptStepError), false},
		{Running, LeaseOver{}, true},
		{Running, DeadlineOver{}, true},
		{Running, CancelAsked{}, true},
		{Awaiting, answer(VerdictOK, ""), false},
		{Awaiting, answer(VerdictTerminal, AttemptStepError), false},
		{Awaiting, answer(VerdictRetry, AttemptProtocol), false},
		{Awaiting, Progressed{Ticket: ticketA}, false},
		{Awaiting, WaitOver{}, true},
		{Awaiting, DeadlineOver{}, true},
		{Awaiting, CancelAsked{}, true},
		{Awaiting, RedriveAsked{}, false},
	} {
		tr := Decide(at(c.from), c.ev, Policy{}, 0)
		if (tr.Recall != nil) != c.want {
			t.Errorf("%s, %T %+v: recalled %v, want %v", c.from, c.ev, c.ev, tr.Recall != nil, c.want)
		}
		silent := at(c.from)
		silent.Wait.Recall = false
		if tr := Decide(silent, c.ev, Policy{}, 0); tr.Recall != nil {
			t.Errorf("%s, %T: a node that wants no recall is told", c.from, c.ev)
		}
	}
}
