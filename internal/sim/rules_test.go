package sim

import (
	"reflect"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/jump"
)

// account is the simulation's own count of what happened to a job, made from
// events alone: it holds Decide and the store to the budgets.
type account struct {
	claims, excuses, deferrals, crashes int
	tries, redrives, base, ends         int
	ticket                              settle.ID     // of the last submission
	out                                 settle.ID     // the same, while somebody waits for its answer
	ceiling                             int64         // of that wait
	leased                              time.Duration // monotonic: the last claim or renewal
	lease                               time.Duration
	creep, drift                        time.Duration // of the clock, as of then
	overdue                             bool
	neglect                             time.Duration // as of the moment when it became overdue
	delivered                           time.Duration // monotonic, and 1 more: a sweep brought it its answer
}

func (a account) charged() int { return a.claims - a.excuses }

// count enters an event that moved the job.
func (a *account) count(ev settle.Event, p settle.Policy) {
	switch e := ev.(type) {
	case settle.Deferred:
		a.excuses++
		if !e.Uncounted {
			a.deferrals++
		}
	case settle.Delivered:
		if e.Verdict == settle.VerdictOK {
			a.excuses++
		}
	case settle.LeaseOver:
		a.crashes++
	case settle.RedriveAsked:
		a.tries = a.charged() + p.Attempts
		a.crashes, a.deferrals, a.base = 0, 0, a.claims
		a.redrives++
	}
}

// moved holds one transition that was carried out to the promises.
func (w *world) moved(j *job, d deed) {
	a := &j.own
	a.count(d.ev, j.pol)
	got := settle.Counters{Attempt: a.claims, Excused: a.excuses, Deferred: a.deferrals, Crashed: a.crashes,
		Tries: a.tries, Redrives: a.redrives, Base: a.base}
	w.check(j.Counters == got, "counts", "%s after %T: the store counts %+v, the events say %+v", j, d.ev, j.Counters, got)
	w.check(a.charged() <= a.tries, "budget", "%s has charged %d of %d attempts", j, a.charged(), a.tries)
	w.check(a.redrives <= j.pol.Redrives, "budget", "%s was redriven %d times, its policy says %d", j, a.redrives, j.pol.Redrives)
	if verdict, _, _ := said(d.ev); verdict == settle.VerdictTerminal {
		w.check(j.state == settle.Dead, "outcome", "%s goes on although a terminal outcome was reported", j)
	}
	switch {
	case j.state.Ended():
		a.ends++
		w.check(a.ends == a.redrives+1, "one end", "%s has ended %d times with %d redrives", j, a.ends, a.redrives)
		w.check(w.justified(j, d), "end reason", "%s ended %s by %T %+v: nothing says so (%+v, policy %+v)", j, j.reason, d.ev, d.ev, *a, j.pol)
		w.inTime(j)
		w.hit("end: " + string(j.reason))
	case j.state == settle.Pending:
		w.check(charges(d).IsZero() || !w.stepSpent(j), "budget", "%s goes on although its step has spent its attempts", j)
		w.check(w.claimableAgain(j), "budget", "%s is pending although a budget is spent: %+v, policy %+v", j, *a, j.pol)
	}
	w.whoWasAlone(j, d.ev)
	w.answered(j, d)
	w.ofStep(j, d)
}

// answered: only the ticket that is waited for is taken, and no note that the
// node is at work moves the ceiling of the wait.
func (w *world) answered(j *job, d deed) {
	switch e := d.ev.(type) {
	case settle.Submitting:
		j.own.ticket = e.Wait.Ticket
	case settle.Kept:
		w.check(e.Ticket == j.own.ticket && j.state == settle.Running, "ticket", "%s keeps the answer of another submission", j)
	case settle.Parked:
		j.own.ticket, j.own.ceiling = e.Wait.Ticket, min(j.until, j.deadline)
		w.check(j.until <= w.m.now+micros(j.pol.Wait), "ceiling", "%s waits until %d, its policy allows %s", j, j.until, j.pol.Wait)
	case settle.Delivered:
		w.check(e.Ticket == j.own.ticket, "ticket", "%s took the answer of another submission", j)
	case settle.Progressed:
		w.check(e.Ticket == j.own.ticket, "ticket", "%s took a note of another submission", j)
		moved := min(j.until, j.deadline) - j.own.ceiling
		w.check(moved == 0, "ceiling", "%s: a note moved the ceiling of the wait by %s", j, span(moved))
	}
}

// claimableAgain: no budget is spent.
func (w *world) claimableAgain(j *job) bool {
	return j.own.charged() < j.own.tries && j.own.crashes < j.pol.Crashes && j.own.deferrals <= j.pol.Deferrals
}

// justified says whether the end's reason is what happened.
func (w *world) justified(j *job, d deed) bool {
	verdict, reason, after := said(d.ev)
	switch j.reason {
	case settle.EndOK:
		return verdict == settle.VerdictOK && j.state == settle.Succeeded
	case settle.EndTerminal, settle.EndUndecodable, settle.EndRefused:
		named := map[settle.AttemptReason]settle.EndReason{settle.AttemptUndecodable: settle.EndUndecodable, settle.AttemptRefused: settle.EndRefused}[reason]
		return verdict == settle.VerdictTerminal && (named == j.reason || named == "" && j.reason == settle.EndTerminal)
	case settle.EndExhausted:
		return j.own.charged() >= j.own.tries || w.stepSpent(j)
	case settle.EndWorkerLost:
		return j.own.crashes >= j.pol.Crashes
	case settle.EndDeferredOut:
		return j.own.deferrals > j.pol.Deferrals
	case settle.EndExpired:
		return d.left <= max(after, 0)
	case settle.EndCancelled:
		_, asked := d.ev.(settle.CancelAsked)
		return asked && j.state == settle.Cancelled
	}
	return false
}

// said is what an event says of an attempt.
func said(ev settle.Event) (settle.Verdict, settle.AttemptReason, time.Duration) {
	switch e := ev.(type) {
	case settle.Settled:
		return e.Verdict, e.Reason, e.After
	case settle.Delivered:
		return e.Verdict, e.Reason, e.After
	case settle.Deferred:
		if e.Reason == settle.AttemptShutdown {
			return "", e.Reason, 0
		}
		return "", e.Reason, max(e.After, time.Second)
	}
	return "", "", 0
}

// stepSpent says whether the step of the last attempt has spent its budget.
func (w *world) stepSpent(j *job) bool {
	if len(j.attempts) == 0 {
		return false
	}
	last := j.attempts[len(j.attempts)-1]
	budget := j.pol.StepAttempts
	if last.Retryable {
		budget = max(budget, j.pol.StepAttemptsRetryable)
	}
	return last.Step != "" && j.spent(last.Step) >= budget
}

// ---- time

// The most that a job may be live after its deadline.
const grace = settle.SweepInterval + settle.RenewInterval

// inTime: every job has ended by its ends_by, and by what nobody swept: that
// is the time beyond 5 s between two passes that may expire, beyond 15 s
// between two that may also end leases, and what the clock jumped over.
func (w *world) inTime(j *job) {
	late := span(j.ended - j.deadline)
	if late <= 0 {
		w.hit("ended before its deadline")
		return
	}
	allowed := grace + w.neglected() - j.own.neglect
	w.check(late <= allowed, "ends_by", "%s ended %s after its deadline, allowed are %s", j, late, allowed)
	if allowed == grace {
		w.hit("ended by ends_by, always swept")
	} else {
		w.hit("ended after time without a sweep")
	}
}

// neglected is how long, in all, no sweep worked as it should.
func (w *world) neglected() time.Duration {
	return w.neglect + max(0, w.mono-w.lastSweep-settle.SweepInterval, w.mono-w.lastFull-grace)
}

// passed notes a whole pass of a sweep.
func (w *world) passed(leases bool) {
	w.neglect += max(0, w.mono-w.lastSweep-settle.SweepInterval)
	w.lastSweep = w.mono
	if leases {
		w.neglect += max(0, w.mono-w.lastFull-grace)
		w.lastFull = w.mono
	}
}

// crossings notes which jobs have become overdue, or are no longer, because the
// clock moved.
func (w *world) crossings(neglect time.Duration) {
	for _, j := range w.m.jobs {
		over := j.state.Live() && j.deadline <= w.m.now
		if over && !j.own.overdue {
			j.own.neglect = neglect
		}
		j.own.overdue = over
	}
}

// sound holds what a sweep decides to the row and to the clock's rules: a process
// that lived through a jump ends nothing by the new time too early, and no lease
// is ended before its worker could renew it.
func (w *world) sound(s *sweeper, j *job, ev settle.Event) {
	w.check(reflect.DeepEqual(ev, w.m.brought(j)), "sweep", "it says that %T befell %s", ev, j)
	switch ev.(type) {
	case settle.DeadlineOver, settle.WaitOver:
		w.trusts(s, ev)
	case settle.LeaseOver, settle.Delivered:
		if s.trust.since <= j.own.leased && j.own.drift < w.drift-jump.Slack {
			w.hit("clock jumped to and fro between two looks")
			return // no sweep can know
		}
		least := min(j.own.lease, settle.RenewInterval)
		lived := w.mono - j.own.leased + w.creep - j.own.creep
		w.check(lived >= least, "lease", "%s loses its lease %s after it was given or renewed", j, lived)
	}
}

// brought is what has befallen an overdue job, told by what its alarm was set
// for: a lost worker comes before the deadline that has passed since, and an
// answer that was kept before the loss of the worker.
func (m *model) brought(j *job) settle.Event {
	answer := m.answer(j)
	switch {
	case j.alarm > m.now:
		return nil
	case j.alarm < j.deadline && answer != nil:
		return *answer
	case j.alarm < j.deadline && j.state == settle.Running:
		return settle.LeaseOver{}
	case j.deadline > m.now && j.state == settle.Awaiting:
		return settle.WaitOver{}
	default:
		return settle.DeadlineOver{}
	}
}

// trust is the simulation's own view of what a sweeper may believe: a time to
// which the clock has jumped forward since the last trusted one must stand.
type trust struct {
	looked bool
	ahead  bool
	ref    time.Duration // store's clock less the monotonic one, when last trusted
	last   time.Duration // the same at the last look
	since  time.Duration // monotonic: the last jump forward
}

func (t *trust) look(drift, mono time.Duration) {
	if t.ahead && mono-t.since >= jump.Stand { // it stood, even if the clock jumps anew by now
		t.ahead, t.ref = false, t.last
	}
	switch {
	case !t.looked:
		t.looked = true
	case drift > t.last+jump.Slack:
		t.ahead, t.since = true, mono
	case drift <= t.ref+jump.Slack:
		t.ahead = false
	}
	if t.last = drift; !t.ahead {
		t.ref = drift
	}
}

// steady says whether the clock has not jumped since the last look: what was
// trusted then is no answer for what came after.
func (t *trust) steady(drift time.Duration) bool {
	return t.looked && drift-t.last <= jump.Slack && t.last-drift <= jump.Slack
}

// trusts checks that a sweeper may go by the store's clock.
func (w *world) trusts(s *sweeper, why any) {
	w.check(!s.trust.ahead, "clock", "%T although the clock jumped forward %s ago", why, w.mono-s.trust.since)
	if s.trust.since > 0 {
		w.hit("time that was jumped to has stood long enough")
	}
}

// whoWasAlone: the end worker_lost is no neighbour's fault.
func (w *world) whoWasAlone(j *job, ev settle.Event) {
	if _, lost := ev.(settle.LeaseOver); lost && j.reason == settle.EndWorkerLost && j.pol.Crashes > 1 {
		w.check(w.solo[attemptOf{j.n, j.Attempt}], "alone", "%s ended worker_lost in attempt %d, which had neighbours", j, j.Attempt)
	}
}

// attemptOf names one attempt of one job.
type attemptOf struct {
	row int64
	n   int
}

// given notes an attempt that was handed out: never twice.
func (w *world) given(j *job, lease time.Duration, alone bool) {
	a := attemptOf{j.n, j.Attempt}
	_, twice := w.solo[a]
	w.check(!twice, "one lease", "attempt %d of %s was given out twice", j.Attempt, j)
	w.check(j.own.charged() <= j.own.tries, "budget", "%s has charged %d of %d attempts", j, j.own.charged(), j.own.tries)
	w.check(j.deadline > w.m.now, "claim", "%s was claimed after its deadline", j)
	w.solo[a] = alone
	j.lent(w, lease)
}

// lent notes that a lease began anew.
func (j *job) lent(w *world, lease time.Duration) {
	j.own.leased, j.own.lease, j.own.creep, j.own.drift = w.mono, lease, w.creep, w.drift
}
