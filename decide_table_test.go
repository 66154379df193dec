package settle

import (
	"slices"
	"time"
)

// A row of the table of arrows: Decide is asked for every state in from.
type row struct {
	proves string // the promises of which this row is a proof, if any
	from   []State
	event  Event
	when   string
	snap   func(*Snapshot)
	policy Policy
}

var (
	ended      = []State{Succeeded, Dead, Cancelled}
	notRunning = []State{Pending, Awaiting}
	ticketA    = DeriveID([]byte("ticket a"))
	ticketB    = DeriveID([]byte("ticket b"))
)

// baseSnapshot is what a row starts from: the third attempt of ten, a day left.
func baseSnapshot(s State) Snapshot {
	snap := Snapshot{ID: DeriveID([]byte("job")), Kind: "mail.send", Queue: "default", Tenant: "acme",
		State: s, Counters: Counters{Attempt: 3, Tries: 10}, Remaining: 24 * time.Hour}
	if s == Awaiting {
		snap.Wait = &Wait{Ticket: ticketA, Step: "render", Node: "a"}
		snap.WaitLeft = 30 * time.Minute
	}
	return snap
}

func settled(v Verdict, r AttemptReason, text string) Settled {
	return Settled{Outcome: Outcome{Verdict: v, Reason: r, Error: text}}
}

// refused says that the step was provably not begun.
func refused(s Settled) Settled { s.Refused = true; return s }

func retry(r AttemptReason) Settled { return settled(VerdictRetry, r, "it broke") }

func retryIn(d time.Duration) Settled {
	return Settled{Outcome: Outcome{Verdict: VerdictRetry, Error: "it broke", After: d}}
}

func answer(v Verdict, r AttemptReason) Delivered {
	return Delivered{Ticket: ticketA, Outcome: Outcome{Verdict: v, Reason: r, Error: "it broke", Output: []byte(`{}`)}}
}

func helps(d Delivered) Delivered { d.Retryable = true; return d }

// Changes to the base.
func spent(s *Snapshot)      { s.Attempt = s.Tries }
func lastLeft(s *Snapshot)   { s.Attempt = s.Tries - 1 }
func overdue(s *Snapshot)    { s.Remaining = -time.Second }
func nearEnd(s *Snapshot)    { s.Remaining = time.Second }
func withTicket(s *Snapshot) { s.Wait = &Wait{Ticket: ticketA, Step: "render", Node: "a"} }

// recalled: the node wants to be told when nobody waits any more.
func recalled(s *Snapshot) {
	s.Wait = &Wait{Ticket: ticketA, Step: "render", Node: "a", Pool: "gpu", Recall: true}
}

func crashed(n int) func(*Snapshot)   { return func(s *Snapshot) { s.Crashed = n } }
func deferred(n int) func(*Snapshot)  { return func(s *Snapshot) { s.Deferred = n } }
func redriven(n int) func(*Snapshot)  { return func(s *Snapshot) { s.Redrives = n } }
func stepSpent(n int) func(*Snapshot) { return func(s *Snapshot) { s.StepSpent = n } }

func all(fs ...func(*Snapshot)) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, f := range fs {
			f(s)
		}
	}
}

func one(s State) []State { return []State{s} }

var hook = Policy{OnEnd: "mail.ended"}

// table is every arrow of Decide, by event.
var table = slices.Concat(claimRows, settleRows, deferRows, stepRows, sweepRows, personRows)

var claimRows = []row{
	{"P2", one(Pending), Claimed{}, "attempts are left", nil, Policy{}},
	{"P2", one(Pending), Claimed{}, "one attempt is left", lastLeft, Policy{}},
	{"P2 P10", one(Pending), Claimed{}, "the attempts are spent", spent, Policy{}},
	{"P1 P2", one(Pending), Claimed{}, "the deadline has passed", overdue, Policy{}},
	{"P3", []State{Running, Awaiting}, Claimed{}, "", nil, Policy{}},
	{"", ended, Claimed{}, "", nil, Policy{}},
}

var settleRows = []row{
	{"P5", one(Running), settled(VerdictOK, "", ""), "", nil, Policy{}},
	{"P5", one(Running), settled(VerdictOK, "", ""), "it was the last attempt", spent, Policy{}},
	{"P5", one(Running), settled(VerdictOK, "", ""), "the deadline has passed, but no sweep was faster", overdue, Policy{}},
	{"", one(Running), settled(VerdictOK, "", ""), "the policy names a hook", nil, hook},
	{"P3", notRunning, settled(VerdictOK, "", ""), "", nil, Policy{}},
	{"P3", ended, settled(VerdictOK, "", ""), "", nil, Policy{}},

	{"P5", one(Running), retry(AttemptError), "attempts are left", nil, Policy{}},
	{"P5", one(Running), retry(AttemptPanic), "attempts are left", nil, Policy{}},
	{"P5", one(Running), retry(AttemptGoexit), "attempts are left", nil, Policy{}},
	{"P5", one(Running), retry(AttemptTimedOut), "attempts are left", nil, Policy{}},
	{"P5", one(Running), settled("maybe", "", "it broke"), "an unknown verdict is never success", nil, Policy{}},
	{"P5", one(Running), settled("", AttemptOK, "it broke"), "no verdict at all, whatever the reason says", nil, Policy{}},
	{"P12", one(Running), retry("words of a server"), "the reason is not on the list", nil, Policy{}},
	{"P10", one(Running), retry(AttemptError), "12 attempts, 3 of them excused: not spent", func(s *Snapshot) { s.Attempt, s.Excused = 12, 3 }, Policy{}},
	{"P1 P10", one(Running), retry(AttemptError), "it was the last attempt", spent, Policy{}},
	{"", one(Running), retry(AttemptError), "it was the last attempt, and the policy names a hook", spent, hook},
	{"", one(Running), retry(AttemptError), "attempts are left, and the policy names a hook", nil, hook},
	{"", one(Running), retry(AttemptError), "a suspect fails without a crash", crashed(2), Policy{}},
	{"P1", one(Running), retry(AttemptError), "the deadline comes before the backoff: half of what is left", nearEnd, Policy{}},
	{"P1", one(Running), retry(AttemptError), "the deadline has passed", overdue, Policy{}},
	{"", one(Running), retryIn(2 * time.Hour), "before the deadline", nil, Policy{}},
	{"P1", one(Running), retryIn(24 * time.Hour), "at the deadline", nil, Policy{}},
	{"P1", one(Running), retryIn(48 * time.Hour), "after the deadline", nil, Policy{}},
	{"", one(Running), retryIn(-time.Hour), "a wait below zero is none: the usual backoff", nil, Policy{}},
	{"P1", one(Running), retryIn(2 * time.Hour), "it was the last attempt", spent, Policy{}},
	{"P3", notRunning, retry(AttemptError), "", nil, Policy{}},
	{"P3", ended, retry(AttemptError), "", nil, Policy{}},

	{"P5", one(Running), settled(VerdictTerminal, AttemptError, "it broke"), "attempts are left", nil, Policy{}},
	{"P5", one(Running), settled(VerdictTerminal, AttemptUndecodable, "it broke"), "attempts are left", nil, Policy{}},
	{"P5", one(Running), settled(VerdictTerminal, AttemptOutput, "it broke"), "attempts are left", nil, Policy{}},
	{"P5", one(Running), settled(VerdictTerminal, AttemptRefused, "it broke"), "attempts are left", nil, Policy{}},
	{"P5", one(Running), settled(VerdictTerminal, "", ""), "without a reason or a text", nil, Policy{}},
	{"", one(Running), settled(VerdictTerminal, AttemptError, "it broke"), "the policy names a hook", nil, hook},
	{"P3", notRunning, settled(VerdictTerminal, AttemptError, "it broke"), "", nil, Policy{}},
	{"P3", ended, settled(VerdictTerminal, AttemptError, "it broke"), "", nil, Policy{}},
}

var deferRows = []row{
	{"P10", one(Running), Deferred{Reason: AttemptSnoozed, After: time.Hour}, "deferrals are left", nil, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptNoNode, After: time.Minute}, "deferrals are left", nil, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptBusy, After: 5 * time.Second, Error: "busy"}, "deferrals are left", nil, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptRateLimited}, "at least one second", nil, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptLaneHeld, After: -time.Hour}, "at least one second", nil, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptShutdown, After: time.Hour}, "due again at once", nil, Policy{}},
	{"P12", one(Running), Deferred{Reason: "words of a server", After: time.Minute}, "the reason is not on the list", nil, Policy{}},
	{"P10", one(Running), Deferred{Reason: AttemptSnoozed, After: time.Hour}, "it was the last attempt: it is given back", spent, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptSnoozed, After: time.Hour}, "a suspect stays one", crashed(2), Policy{}},
	{"P1", one(Running), Deferred{Reason: AttemptSnoozed, After: time.Hour}, "the last deferral", deferred(999), Policy{}},
	{"P1", one(Running), Deferred{Reason: AttemptSnoozed, After: time.Hour}, "the deferrals are spent", deferred(1000), Policy{}},
	{"P1", one(Running), Deferred{Reason: AttemptSnoozed, After: 24 * time.Hour}, "at the deadline", nil, Policy{}},
	{"P1", one(Running), Deferred{Reason: AttemptShutdown}, "the deadline has passed", overdue, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptLaneHeld, After: time.Minute, Uncounted: true}, "charged to the lane", nil, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptLaneHeld, After: time.Minute, Uncounted: true}, "charged to the lane, the deferrals are used up", deferred(1000), Policy{}},
	{"P3", notRunning, Deferred{Reason: AttemptSnoozed, After: time.Hour}, "", nil, Policy{}},
	{"P3", ended, Deferred{Reason: AttemptSnoozed, After: time.Hour}, "", nil, Policy{}},
}

var stepRows = []row{
	{"P9", one(Running), Submitting{Wait{Ticket: ticketA, Step: "render", Node: "a"}}, "before anything is sent", nil, Policy{}},
	{"P9", one(Running), Submitting{Wait{Ticket: ticketB, Step: "render", Node: "b"}}, "another node after a refusal", withTicket, Policy{}},
	{"P3", notRunning, Submitting{Wait{Ticket: ticketA, Step: "render"}}, "", nil, Policy{}},
	{"P3", ended, Submitting{Wait{Ticket: ticketA, Step: "render"}}, "", nil, Policy{}},
	{"P10", one(Running), retry(AttemptSubmitFailed), "the node may have begun: first of the step's 2 attempts", withTicket, Policy{}},
	{"P1 P10", one(Running), retry(AttemptSubmitFailed), "the node may have begun: second of the step's 2 attempts", all(withTicket, stepSpent(1)), Policy{}},
	{"P10", one(Running), refused(retry(AttemptSubmitFailed)), "the node has not begun: only the job is charged", all(withTicket, stepSpent(1)), Policy{}},
	{"P5", one(Running), settled(VerdictTerminal, AttemptRefused, "it broke"), "a ticket was out", withTicket, Policy{}},
	{"", one(Running), retry(AttemptSubmitFailed), "the node may have begun, and can be told to stop", recalled, Policy{}},
	{"", one(Running), refused(retry(AttemptSubmitFailed)), "the node has not begun, and need not be told", recalled, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptShutdown}, "a ticket was out, and the node can be told to stop", recalled, Policy{}},
	{"", one(Running), Deferred{Reason: AttemptBusy, After: time.Minute}, "the node has not begun, and need not be told", recalled, Policy{}},
	{"", one(Running), Deferred{Reason: "words of a handler", After: time.Minute}, "a ticket was out: who only says wait leaves the node at work", recalled, Policy{}},
	{"", one(Running), Parked{Wait{Ticket: ticketA, Step: "render", Node: "a"}}, "", nil, Policy{}},
	{"", one(Running), Parked{Wait{Ticket: ticketA, Step: "render", Silence: time.Minute}}, "the node says that it is at work every minute", nil, Policy{}},
	{"P1", one(Running), Parked{Wait{Ticket: ticketA, Step: "render", Silence: time.Minute}}, "the deadline is the ceiling", nearEnd, Policy{}},
	{"P1", one(Running), Parked{Wait{Ticket: ticketA, Step: "render"}}, "the deadline has passed: looked at once", overdue, Policy{}},
	{"P3", notRunning, Parked{Wait{Ticket: ticketA, Step: "render"}}, "", nil, Policy{}},
	{"P3", ended, Parked{Wait{Ticket: ticketA, Step: "render"}}, "", nil, Policy{}},

	{"P10", one(Awaiting), answer(VerdictOK, ""), "the ticket is the one waited for", nil, Policy{}},
	{"P10", one(Awaiting), answer(VerdictOK, ""), "it was the last attempt: it is given back", spent, Policy{}},
	{"P13", one(Awaiting), answer(VerdictOK, ""), "the deadline has passed: left to the sweep", overdue, Policy{}},
	{"", one(Running), answer(VerdictOK, ""), "the lease is over, the park was never written", withTicket, Policy{}},
	{"P3", []State{Running}, answer(VerdictOK, ""), "no ticket was recorded", nil, Policy{}},
	{"P3", []State{Awaiting}, Delivered{Ticket: ticketB, Outcome: Outcome{Verdict: VerdictOK}}, "the ticket is another's", nil, Policy{}},
	{"P3", []State{Awaiting}, Delivered{Outcome: Outcome{Verdict: VerdictOK}}, "there is no ticket", nil, Policy{}},
	{"P3", one(Pending), answer(VerdictOK, ""), "", nil, Policy{}},
	{"P3", ended, answer(VerdictOK, ""), "", nil, Policy{}},
	{"P10", one(Awaiting), answer(VerdictRetry, AttemptStepError), "first of the step's 2 attempts", stepSpent(0), Policy{}},
	{"P1 P10", one(Awaiting), answer(VerdictRetry, AttemptStepError), "second of the step's 2 attempts", stepSpent(1), Policy{}},
	{"P10", one(Awaiting), helps(answer(VerdictRetry, AttemptStepError)), "the node says that a retry helps: fourth of 5", stepSpent(3), Policy{}},
	{"P1 P10", one(Awaiting), helps(answer(VerdictRetry, AttemptStepError)), "the node says that a retry helps: fifth of 5", stepSpent(4), Policy{}},
	{"P5", one(Awaiting), answer(VerdictRetry, AttemptProtocol), "first of the step's 2 attempts", nil, Policy{}},
	{"P5", one(Awaiting), answer("maybe", AttemptProtocol), "an unknown verdict is never success", nil, Policy{}},
	{"P10", one(Awaiting), helps(answer(VerdictRetry, AttemptStepError)), "the job's attempts are spent first", spent, Policy{}},
	{"", one(Running), answer(VerdictRetry, AttemptStepError), "the lease is over, the park was never written", withTicket, Policy{}},
	{"P5", one(Awaiting), answer(VerdictTerminal, AttemptStepError), "the node says that no retry helps", nil, Policy{}},
	{"P5", one(Awaiting), answer(VerdictTerminal, AttemptRefused), "the far end refuses the item", nil, Policy{}},

	{"P9", one(Running), Kept{answer(VerdictOK, "")}, "the attempt that holds the ticket still runs", withTicket, Policy{}},
	{"P3", []State{Running}, Kept{answer(VerdictOK, "")}, "no ticket was recorded", nil, Policy{}},
	{"P3", []State{Pending, Awaiting}, Kept{answer(VerdictOK, "")}, "", nil, Policy{}},
	{"P3", ended, Kept{answer(VerdictOK, "")}, "", nil, Policy{}},
	{"", one(Awaiting), answer(VerdictRetry, AttemptStepError), "the node has had its say, and need not be told", recalled, Policy{}},

	{"", one(Awaiting), Progressed{Ticket: ticketA}, "no silence is watched", nil, Policy{}},
	{"", one(Awaiting), Progressed{Ticket: ticketA}, "resets the silence", func(s *Snapshot) { s.Wait.Silence = time.Minute }, Policy{}},
	{"P1", one(Awaiting), Progressed{Ticket: ticketA}, "the ceiling does not move", func(s *Snapshot) { s.Wait.Silence, s.WaitLeft = time.Minute, time.Second }, Policy{}},
	{"P1", one(Awaiting), Progressed{Ticket: ticketA}, "the ceiling has passed", func(s *Snapshot) { s.Wait.Silence, s.WaitLeft = time.Minute, 0 }, Policy{}},
	{"P3", one(Awaiting), Progressed{Ticket: ticketB}, "the ticket is another's", nil, Policy{}},
	{"P3", []State{Pending, Running}, Progressed{Ticket: ticketA}, "", nil, Policy{}},
	{"P3", ended, Progressed{Ticket: ticketA}, "", nil, Policy{}},
}

var sweepRows = []row{
	{"P1 P2", one(Running), LeaseOver{}, "first crash of 3", nil, Policy{}},
	{"", one(Running), LeaseOver{}, "second crash of 3: the next one would end it", crashed(1), Policy{}},
	{"P1", one(Running), LeaseOver{}, "third crash of 3", crashed(2), Policy{}},
	{"P1", one(Running), LeaseOver{}, "the policy allows one crash", nil, Policy{Crashes: 1}},
	{"P1 P10", one(Running), LeaseOver{}, "it was the last attempt", spent, Policy{}},
	{"P1", one(Running), LeaseOver{}, "attempts and crashes are spent at once", all(spent, crashed(2)), Policy{}},
	{"P10", one(Running), LeaseOver{}, "a ticket was out: first of the step's 2 attempts", withTicket, Policy{}},
	{"P10", one(Running), LeaseOver{}, "a ticket was out: second of the step's 2 attempts", all(withTicket, stepSpent(1)), Policy{}},
	{"P1", one(Running), LeaseOver{}, "the deadline has passed as well", overdue, Policy{}},
	{"", one(Running), LeaseOver{}, "third crash of 3, and the policy names a hook", crashed(2), hook},
	{"", notRunning, LeaseOver{}, "", nil, Policy{}},
	{"P3", ended, LeaseOver{}, "", nil, Policy{}},

	{"P1", one(Awaiting), WaitOver{}, "first of the step's 2 attempts", nil, Policy{}},
	{"P1 P10", one(Awaiting), WaitOver{}, "second of the step's 2 attempts", stepSpent(1), Policy{}},
	{"P10", one(Awaiting), WaitOver{}, "an earlier answer said that a retry helps: second of 5", func(s *Snapshot) { s.StepSpent, s.Wait.Retryable = 1, true }, Policy{}},
	{"P1 P10", one(Awaiting), WaitOver{}, "the job's attempts are spent", spent, Policy{}},
	{"P1", one(Awaiting), WaitOver{}, "the deadline has passed as well", overdue, Policy{}},
	{"", one(Awaiting), WaitOver{}, "the node can be told to stop", recalled, Policy{}},
	{"", one(Running), LeaseOver{}, "a ticket was out, and the node can be told to stop", recalled, Policy{}},
	{"", one(Awaiting), DeadlineOver{}, "the node can be told to stop", all(overdue, recalled), Policy{}},
	{"", []State{Pending, Running}, WaitOver{}, "", nil, Policy{}},
	{"P3", ended, WaitOver{}, "", nil, Policy{}},

	{"P1", one(Pending), DeadlineOver{}, "", overdue, Policy{}},
	{"P1", one(Running), DeadlineOver{}, "", overdue, Policy{}},
	{"P1", one(Awaiting), DeadlineOver{}, "", overdue, Policy{}},
	{"", one(Pending), DeadlineOver{}, "the policy names a hook", overdue, hook},
	{"P3", ended, DeadlineOver{}, "", nil, Policy{}},
}

var personRows = []row{
	{"P1", one(Pending), CancelAsked{Why: "a duplicate"}, "", nil, Policy{}},
	{"P1", one(Running), CancelAsked{Why: "a duplicate"}, "", nil, Policy{}},
	{"P1", one(Running), CancelAsked{}, "nobody says why", nil, Policy{}},
	{"P1", one(Awaiting), CancelAsked{Why: "a duplicate"}, "", nil, Policy{}},
	{"", one(Running), CancelAsked{Why: "a duplicate"}, "the policy names a hook", nil, hook},
	{"", one(Awaiting), CancelAsked{Why: "a duplicate"}, "the node can be told to stop", recalled, Policy{}},
	{"P3", ended, CancelAsked{}, "", nil, Policy{}},

	{"P10", []State{Dead, Cancelled}, RedriveAsked{}, "redrives are left: 10 more attempts, 30 more days", func(s *Snapshot) {
		s.Counters = Counters{Attempt: 12, Excused: 2, Deferred: 7, Crashed: 2, Tries: 10}
	}, Policy{}},
	{"P10", []State{Dead, Cancelled}, RedriveAsked{}, "it ended before its attempts were spent", nil, Policy{}},
	{"P1 P10", []State{Dead, Cancelled}, RedriveAsked{}, "the last redrive", redriven(19), Policy{}},
	{"P1 P10", []State{Dead, Cancelled}, RedriveAsked{}, "the redrives are spent", redriven(20), Policy{}},
	{"", one(Succeeded), RedriveAsked{}, "", nil, Policy{}},
	{"", []State{Pending, Running, Awaiting}, RedriveAsked{}, "", nil, Policy{}},
}
