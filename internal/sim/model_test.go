package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/settle-go/settle"
)

// model is what must be true of the store: a plain store in memory, without
// files, fences of its own or SQL. Instants are µs by the store's clock.
type model struct {
	now     int64
	jobs    []*job // what is stored, in order of acceptance
	byID    map[settle.ID]*job
	holds   map[holdKey]*hold
	keep    map[string]int64  // queue → its ended jobs stay until then
	queues  map[string]bool   // known to the store
	removed map[[2]string]int // queue, state → how many were ever removed
	lanes   map[laneKey]settle.Lane
	taken   int // jobs ever accepted

	inbox   map[settle.ID]early // kept for the ticket of an attempt that runs
	orphans map[settle.ID]early // nobody will read them: there until Prune, or not any more
}

// early is an answer that came before its park.
type early struct {
	j *job
	settle.Delivered
}

type holdKey struct {
	queue  string
	whole  bool
	tenant string
}

type hold struct {
	began, until int64
	reason, text string
	tries        int
}

type laneKey struct{ queue, tenant string }

// job is one accepted job.
type job struct {
	id                        settle.ID
	n                         int64 // the store's row
	kind, queue, tenant, key  string
	pol                       settle.Policy
	input                     string
	gated                     bool
	lane                      settle.Lane
	at                        int64
	state                     settle.State
	due, ord, alarm, deadline int64
	since                     int64
	settle.Counters
	suspect  bool
	worker   int64
	wait     settle.Wait // from ticket to answer; no ticket = none
	until    int64       // its ceiling
	ended    int64
	reason   settle.EndReason
	note     string
	output   string
	acked    bool
	attempts []settle.Attempt
	steps    []step
	arrows   map[arrow]bool // taken so far
	last     arrow
	gone     bool // removed
	own      account
}

// step is the result of a finished step.
type step struct {
	settle.StepResult
	at int64
}

// arrow is what tells one transition of a job from another. The text of an
// error is no part of it: an attempt ends once.
type arrow struct {
	to                                  settle.State
	end                                 settle.EndReason
	attempt, excused, deferred, crashed int
	redrives                            int
	ticket                              settle.ID
	keep                                bool
}

func newModel() *model {
	return &model{byID: map[settle.ID]*job{}, holds: map[holdKey]*hold{}, keep: map[string]int64{},
		queues: map[string]bool{}, removed: map[[2]string]int{}, lanes: map[laneKey]settle.Lane{},
		inbox: map[settle.ID]early{}, orphans: map[settle.ID]early{}}
}

// micros rounds up: nothing is due early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func span(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// live lists the live jobs.
func (m *model) live() (out []*job) {
	for _, j := range m.jobs {
		if j.state.Live() {
			out = append(out, j)
		}
	}
	return out
}

func (m *model) in(states ...settle.State) (out []*job) {
	for _, j := range m.jobs {
		if slices.Contains(states, j.state) {
			out = append(out, j)
		}
	}
	return out
}

// heldUntil is the latest end of a hold of the job's lane or queue.
func (m *model) heldUntil(j *job) (until int64) {
	for _, k := range []holdKey{{queue: j.queue, tenant: j.tenant}, {queue: j.queue, whole: true}} {
		if h := m.holds[k]; h != nil {
			until = max(until, h.until)
		}
	}
	return until
}

// snapshot is what Decide must be told of a job.
func (m *model) snapshot(j *job) settle.Snapshot {
	s := settle.Snapshot{ID: j.id, Kind: j.kind, Queue: j.queue, Tenant: j.tenant, State: j.state,
		Counters: j.Counters, Remaining: span(j.deadline - m.now)}
	if j.waits() {
		w := j.wait
		s.Wait, s.WaitLeft, s.StepSpent = &w, span(j.until-m.now), j.spent(w.Step)
	}
	return s
}

// waits says whether a ticket of the job is out.
func (j *job) waits() bool { return !j.wait.Ticket.IsZero() }

// answer is what was kept for the ticket of an attempt that runs.
func (m *model) answer(j *job) *settle.Delivered {
	if e, ok := m.inbox[j.wait.Ticket]; ok && j.state == settle.Running {
		return &e.Delivered
	}
	return nil
}

// spent counts the submitted attempts of a step since the last redrive.
func (j *job) spent(step string) (n int) {
	for _, a := range j.attempts {
		if a.N > j.Base && a.Step == step && !a.Ticket.IsZero() {
			n++
		}
	}
	return n
}

// stepResults are the finished steps in the order in which they are shown.
func (j *job) stepResults() (out []settle.StepResult) {
	sorted := slices.Clone(j.steps)
	slices.SortFunc(sorted, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Step, b.Step)) })
	for _, s := range sorted {
		out = append(out, s.StepResult)
	}
	return out
}

// record replaces or adds the history row of an attempt.
func (j *job) record(a settle.Attempt) {
	if i := slices.IndexFunc(j.attempts, func(b settle.Attempt) bool { return a.N == b.N }); i >= 0 {
		j.attempts[i] = a
		return
	}
	j.attempts = append(j.attempts, a)
}

// remove takes ended jobs out and counts them.
func (m *model) remove(jobs ...*job) {
	for _, j := range jobs {
		j.gone = true
		maps.DeleteFunc(m.orphans, func(_ settle.ID, e early) bool { return e.j == j })
		m.removed[[2]string{j.queue, string(j.state)}]++
		delete(m.byID, j.id)
	}
	m.jobs = slices.DeleteFunc(m.jobs, func(j *job) bool { return j.gone })
}
