package settle

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

// checkTransition holds whatever Decide answers against what must be true of
// every arrow: the row can be stored (P2), it has a time by which something
// happens (P1), and each charge and each excuse has its one cause (P10).
func checkTransition(t *testing.T, s Snapshot, ev Event, p Policy, tr Transition) {
	t.Helper()
	if tr.Job != s.ID || tr.Fence != (Fence{Attempt: s.Attempt, State: s.State}) {
		t.Errorf("fenced with %s %+v, decided on %s %s %d", tr.Job, tr.Fence, s.ID, s.State, s.Attempt)
	}
	if tr.Refusal != "" {
		if !reflect.DeepEqual(tr, Transition{Job: tr.Job, Fence: tr.Fence, Refusal: tr.Refusal}) {
			t.Errorf("a refusal carries more than its reason: %+v", tr)
		}
		return
	}
	if s.State.Ended() && reflect.TypeOf(ev) != reflect.TypeFor[RedriveAsked]() {
		t.Errorf("an ended job moved to %s", tr.To)
	}
	checkTarget(t, s, p, tr)
	checkCounters(t, s, ev, tr)
	if r := tr.Record; r != nil && (r.Reason == AttemptOK || !slices.Contains(AttemptReasons, r.Reason)) {
		t.Errorf("an unsuccessful attempt is recorded as %q", r.Reason)
	}
}

func checkTarget(t *testing.T, s Snapshot, p Policy, tr Transition) {
	t.Helper()
	left := max(s.Remaining, 0)
	if tr.Deadline > 0 {
		left = tr.Deadline
	}
	if tr.After < 0 || tr.After > left {
		t.Errorf("After is %s, the deadline is %s away", tr.After, left)
	}
	submitting := s.State == Running && tr.To == Running && tr.Keep == nil
	if (tr.Wait != nil) != (tr.To == Awaiting || submitting) || tr.WaitLeft != 0 && tr.To != Awaiting {
		t.Errorf("to %s with wait %+v, ceiling %s", tr.To, tr.Wait, tr.WaitLeft)
	}
	switch tr.To {
	case Running:
		if s.State == Running && (submitting || tr.Keep != nil) {
			break // the attempt goes on
		}
		if s.State != Pending || s.Charged() >= s.Tries || s.Remaining <= 0 {
			t.Errorf("claimed a job that is %s, charged %d of %d, %s before its deadline", s.State, s.Charged(), s.Tries, s.Remaining)
		}
	case Pending:
		if tr.Charged() >= tr.Tries {
			t.Errorf("pending with %d of %d attempts charged: the store must refuse it", tr.Charged(), tr.Tries)
		}
	case Awaiting:
		if tr.After > tr.WaitLeft || tr.WaitLeft > maxTimeout && s.State == Running {
			t.Errorf("looked at in %s, ceiling in %s", tr.After, tr.WaitLeft)
		}
	case Succeeded, Dead, Cancelled:
		if (tr.End == EndOK) != (tr.To == Succeeded) || (tr.End == EndCancelled) != (tr.To == Cancelled) {
			t.Errorf("%s because of %s", tr.To, tr.End)
		}
	default:
		t.Errorf("to %q, which is no state", tr.To)
	}
	if tr.To.Live() == slices.Contains(EndReasons, tr.End) {
		t.Errorf("to %s with end reason %q", tr.To, tr.End)
	}
	if (tr.OnEnd != nil) != (tr.To.Ended() && p.OnEnd != "") {
		t.Errorf("to %s with hook %q: inserts %+v", tr.To, p.OnEnd, tr.OnEnd)
	}
	if tr.Suspect && (tr.To != Pending || tr.Crashed == 0) {
		t.Errorf("suspect: to %s after %d crashes", tr.To, tr.Crashed)
	}
}

func checkCounters(t *testing.T, s Snapshot, ev Event, tr Transition) {
	t.Helper()
	var claims, excuses int
	switch e := ev.(type) {
	case Claimed:
		claims = 1
	case Deferred:
		excuses = 1
	case Delivered:
		if e.Verdict == VerdictOK {
			excuses = 1
		}
	}
	if tr.Attempt != s.Attempt+claims {
		t.Errorf("%T moved the attempt from %d to %d", ev, s.Attempt, tr.Attempt)
	}
	if tr.Excused != s.Excused+excuses {
		t.Errorf("%T moved excused from %d to %d: only the holder excuses", ev, s.Excused, tr.Excused)
	}
	if _, redrive := ev.(RedriveAsked); !redrive && (tr.Tries != s.Tries || tr.Base != s.Base || tr.Redrives != s.Redrives || tr.Deadline != 0) {
		t.Errorf("%T moved a budget: %+v from %+v", ev, tr.Counters, s.Counters)
	}
	if tr.Redrives < s.Redrives || tr.Redrives > s.Redrives+1 {
		t.Errorf("redrives from %d to %d", s.Redrives, tr.Redrives)
	}
}

// FuzzDecide: total, pure, and every answer keeps what checkTransition asks.
func FuzzDecide(f *testing.F) {
	for i := range everyEvent() {
		for state := range States {
			f.Add(uint8(state), uint8(i), uint32(3), uint32(0), uint16(0), uint8(0), uint32(10), uint8(0), uint8(0), int64(time.Hour), int64(time.Minute), "ok", "error", int64(0), 0.5, uint8(0))
			f.Add(uint8(state), uint8(i), uint32(10), uint32(0), uint16(1000), uint8(2), uint32(10), uint8(20), uint8(4), int64(time.Second), int64(0), "retry", "", int64(math.MaxInt64), math.NaN(), uint8(255))
		}
	}
	f.Fuzz(func(t *testing.T, state, event uint8, attempt, excused uint32, deferred uint16, crashed uint8, tries uint32,
		redrives, stepSpent uint8, remaining, left int64, verdict, reason string, after int64, jitter float64, bits uint8) {
		s := Snapshot{ID: ID{1}, Kind: "k\xff", Queue: "q", Tenant: "t", State: State("nowhere"),
			Counters: Counters{Attempt: int(attempt), Excused: int(excused), Deferred: int(deferred), Crashed: int(crashed),
				Tries: int(tries), Redrives: int(redrives)},
			Remaining: time.Duration(remaining), WaitLeft: time.Duration(left), StepSpent: int(stepSpent)}
		if i := int(state) % (len(States) + 1); i < len(States) {
			s.State = States[i]
		}
		if bits&1 != 0 {
			s.Wait = &Wait{Ticket: ID{7}, Step: "s", Silence: time.Duration(after), Retryable: bits&2 != 0, Recall: bits&8 != 0}
		}
		o := Outcome{Verdict: Verdict(verdict), Reason: AttemptReason(reason), Error: reason, After: time.Duration(after)}
		evs := []Event{Claimed{}, Settled{o, bits&4 != 0}, Submitting{Wait{Ticket: ID{7}, Recall: true}}, Kept{Delivered{Ticket: ID{7 * (bits >> 4 & 1)}, Outcome: o}}, Deferred{Reason: o.Reason, After: o.After, Uncounted: bits&4 != 0},
			Parked{Wait{Ticket: ID{7}, Silence: time.Duration(after)}}, Delivered{Ticket: ID{7 * (bits >> 4 & 1)}, Outcome: o, Retryable: bits&8 != 0},
			Progressed{ID{7}}, LeaseOver{}, WaitOver{}, DeadlineOver{}, CancelAsked{reason}, RedriveAsked{}, nil}
		ev := evs[int(event)%len(evs)]
		var p Policy // bits choose from nonsense, the default and the smallest
		switch bits >> 6 {
		case 1:
			p = Policy{Attempts: -1, Crashes: math.MaxInt, BackoffMin: time.Duration(after), BackoffMax: time.Duration(left), Wait: time.Duration(left)}
		case 2:
			p = Policy{Attempts: 1, Crashes: 1, Deferrals: 1, Redrives: 1, StepAttempts: 1, OnEnd: "hook"}
		}
		before, _ := json.Marshal(s) // follows the pointer, as DeepEqual of a copy would not
		tr := Decide(s, ev, p, jitter)
		if now, _ := json.Marshal(s); string(now) != string(before) {
			t.Fatalf("Decide changed its snapshot:\n%s\n%s", before, now)
		}
		if again := Decide(s, ev, p, jitter); !reflect.DeepEqual(tr, again) {
			t.Fatalf("Decide answered twice differently:\n%+v\n%+v", tr, again)
		}
		checkTransition(t, s, ev, p, tr)
		if tr.Wait != nil && tr.Wait == s.Wait {
			t.Fatal("the transition shares its wait with the snapshot")
		}
		for _, n := range []*New{tr.OnEnd, tr.Recall} {
			if n == nil {
				continue
			}
			if _, _, err := n.Prepare(time.Now()); err != nil {
				t.Fatalf("the job %s that goes with it cannot be inserted, so this one can never move: %v", n.Kind, err)
			}
		}
	})
}

// FuzzPassed: total, and what it says is an arrow that Decide has; more trust
// never takes an event away.
func FuzzPassed(f *testing.F) {
	for state := range States {
		f.Add(uint8(state), int64(-time.Minute), int64(0), true, false)
		f.Add(uint8(state), int64(0), int64(math.MaxInt64), false, true)
		f.Add(uint8(state), int64(math.MinInt64), int64(math.MinInt64), true, true)
	}
	f.Fuzz(func(t *testing.T, state uint8, alarm, end int64, leases, ends bool) {
		j := Job{State: State("nowhere"), Now: noon, Alarm: noon.Add(time.Duration(alarm)), Deadline: noon.Add(time.Duration(end))}
		if i := int(state) % (len(States) + 1); i < len(States) {
			j.State = States[i]
		}
		ev, sure := j.Passed(leases, ends), j.Passed(true, true)
		if ev != nil && (ev != sure || j.Passed(false, false) != nil || alarm > 0) {
			t.Fatalf("%s: %T, with all trust %T, with none %T", j.State, ev, sure, j.Passed(false, false))
		}
		if sure == nil {
			if j.State.Live() && max(alarm, end) <= 0 {
				t.Fatalf("%s: nothing happens to it, and its deadline has passed", j.State)
			}
			return
		}
		tr := j.Decide(sure, 0, true)
		if tr.Refusal != "" || end <= 0 && tr.End != EndExpired && tr.End != EndWorkerLost && tr.End != EndExhausted {
			t.Fatalf("%s: %T came to %q %s %s", j.State, sure, tr.Refusal, tr.To, tr.End)
		}
	})
}

func TestNilEventIsRefused(t *testing.T) {
	for _, s := range append(slices.Clone(States), "", "nowhere") {
		if tr := Decide(baseSnapshot(s), nil, Policy{}, 0); tr.Refusal == "" {
			t.Errorf("%q: %+v", s, tr)
		}
	}
}

// P1 by play: whatever a job meets, it ends within the claims that its budgets
// allow, without the help of a deadline.
func TestP1BudgetsAloneEndEveryJob(t *testing.T) {
	p := Policy{Attempts: 4, Crashes: 2, Deferrals: 3, StepAttempts: 2}.WithDefaults()
	moves := []Event{retry(AttemptError), LeaseOver{}, Deferred{Reason: AttemptSnoozed},
		Parked{Wait{Ticket: ticketA, Step: "render"}}}
	var walk func(s Snapshot, depth int)
	walk = func(s Snapshot, depth int) {
		if depth > p.Attempts+p.Deferrals {
			t.Fatalf("still live after %d claims: %+v", depth, s)
		}
		claimed := Decide(s, Claimed{}, p, 0)
		if claimed.Refusal != "" {
			t.Fatalf("a pending job cannot be claimed: %+v: %s", s, claimed.Refusal)
		}
		run := s
		run.State, run.Counters = Running, claimed.Counters
		for _, ev := range moves {
			tr := Decide(run, ev, p, 0)
			if tr.To == Awaiting { // no answer comes
				wait := run
				wait.State, wait.Wait, wait.WaitLeft = Awaiting, tr.Wait, 0
				if tr = Decide(wait, WaitOver{}, p, 0); tr.To == Pending {
					wait.StepSpent++
				}
				run.StepSpent = wait.StepSpent
			}
			if tr.To == Pending {
				next := run
				next.State, next.Counters = Pending, tr.Counters
				walk(next, depth+1)
			}
			run.StepSpent = s.StepSpent
		}
	}
	walk(Snapshot{State: Pending, Counters: Counters{Tries: p.Attempts}, Remaining: p.Deadline}, 0)
}
