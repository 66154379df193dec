package sim

import (
	"fmt"
	"slices"

	"github.com/settle-go/settle"
)

// audit compares the whole file with the model. whole also reads the history.
func (w *world) audit(whole bool) {
	w.adopt()
	var live []liveRow
	var ended []endRow
	attempts, steps := 0, 0
	for _, j := range w.m.jobs {
		if j.state.Live() {
			live = append(live, j.liveRow())
			w.check(j.alarm > 0 && j.alarm <= j.deadline, "alarm", "%s has alarm %d, deadline %d", j, j.alarm, j.deadline)
		} else {
			ended = append(ended, j.endRow())
			w.check(j.reason != "", "end reason", "%s ended without one", j)
		}
		attempts += len(j.attempts)
		steps += len(j.steps)
	}
	w.same("live rows", differ(w.look.live(), live))
	w.same("ended rows", differ(w.look.ended(), ended))
	w.balance(len(live), len(ended), attempts, steps)
	w.kept()
	if whole {
		w.history()
	}
}

func (w *world) same(what, diff string) {
	w.check(diff == "", what, "%s", diff)
}

// adopt learns the rows of new jobs.
func (w *world) adopt() {
	if !slices.ContainsFunc(w.m.jobs, func(j *job) bool { return j.n == 0 }) {
		return
	}
	for n, id := range w.look.bodies() {
		if j := w.m.byID[id]; j != nil && j.n == 0 {
			j.n = n
		}
	}
	last := int64(0)
	for _, j := range w.m.jobs {
		w.check(j.n != 0, "books", "a job that was accepted is nowhere: %s", j.id)
		w.check(last < j.n, "books", "row numbers do not grow with acceptance: %d after %d", j.n, last)
		last = j.n
	}
}

// balance: every job ever accepted is live, ended, or removed and counted; and
// each has the history that it should.
func (w *world) balance(live, ended, attempts, steps int) {
	removed := 0
	for _, n := range w.m.removed {
		removed += n
	}
	w.check(w.m.taken == live+ended+removed, "books", "%d jobs were accepted; %d are live, %d ended, %d removed", w.m.taken, live, ended, removed)
	got := w.look.sums()
	w.check(got.bodies == live+ended, "books", "%d bodies, want %d", got.bodies, live+ended)
	w.check(got.removed == removed, "books", "%d removals are counted, want %d", got.removed, removed)
	w.check(got.attempts == attempts, "attempts recorded", "%d, want %d", got.attempts, attempts)
	w.check(got.steps == steps, "steps recorded", "%d, want %d", got.steps, steps)
}

// kept: what was kept for attempts that run is there, and nothing else but what
// Prune has not removed yet.
func (w *world) kept() {
	got := w.look.inbox()
	for ticket, e := range w.m.inbox {
		w.check(e.j.state == settle.Running && e.j.wait.Ticket == ticket, "inbox", "the model keeps an answer for %s, which waits for %s", e.j, e.j.wait.Ticket)
		w.check(got[ticket] == earlyLine(e.j.n, e.Delivered), "inbox", "kept for %s: got %s, want %+v", e.j, got[ticket], e.Delivered)
		delete(got, ticket)
	}
	for ticket, line := range got {
		_, orphan := w.m.orphans[ticket]
		w.check(orphan, "inbox", "nobody will read it, and it should be gone: %s", line)
	}
}

// history compares attempts and steps row by row.
func (w *world) history() {
	var attempts, steps []string
	for _, j := range w.m.jobs {
		for _, a := range j.attempts {
			attempts = append(attempts, attemptLine(j.n, a))
		}
		for _, s := range j.steps {
			steps = append(steps, stepLine(j.n, s.StepResult))
		}
	}
	w.same("attempts recorded", differ(sorted(w.look.attempts()), sorted(attempts)))
	w.same("steps recorded", differ(sorted(w.look.steps()), sorted(steps)))
	w.hit("audit of the history")
}

// ---- what readers show

// readers compares one answer of one reader with the model.
func (w *world) readers() {
	st := w.store[w.any()]
	switch w.rng.IntN(7) {
	case 0:
		ages, err := st.Ages(w.ctx)
		w.must(err, "Ages")
		for i := range ages {
			ages[i].Oldest = settle.ID{} // any of several that are equally old
		}
		w.same("Ages", differ(sorted(lines(ages)), sorted(lines(w.m.ages()))))
	case 1:
		counts, err := st.Counts(w.ctx, 0)
		w.must(err, "Counts")
		w.same("Counts", differ(sorted(lines(counts)), sorted(lines(w.m.counts()))))
	case 2:
		removed, err := st.Removed(w.ctx)
		w.must(err, "Removed")
		w.same("Removed", differ(sorted(lines(removed)), sorted(lines(w.m.removals()))))
	case 3:
		holds, err := st.Holds(w.ctx)
		w.must(err, "Holds")
		w.same("Holds", differ(sorted(lines(holds)), sorted(lines(w.m.holdList()))))
	case 4, 5:
		w.list(st)
	default:
		if len(w.m.jobs) > 0 {
			w.read(st, pickOne(w, w.m.jobs).id)
		}
	}
	w.hit("readers compared")
}

func lines[T any](list []T) (out []string) {
	for _, v := range list {
		out = append(out, fmt.Sprintf("%+v", v))
	}
	return out
}

// list walks a list page by page.
func (w *world) list(st settle.Reader) {
	f := settle.Filter{Limit: 1 + w.rng.IntN(20)}
	if w.one(2) {
		f.States = []settle.State{pickOne(w, settle.States), pickOne(w, settle.States)}
	}
	if w.one(4) {
		f.Tenant = pickOne(w, w.tenants)
	}
	if w.one(4) {
		f.Kind = pickOne(w, kinds)
	}
	f.Unacked = w.one(4)
	var got, want []string
	for {
		page, next, err := st.Jobs(w.ctx, f)
		w.must(err, "Jobs")
		for i := range page {
			got = append(got, w.line(&page[i]))
		}
		if f.After = next; next == (settle.Cursor{}) {
			break
		}
	}
	for _, j := range w.m.jobs {
		if (f.States == nil || slices.Contains(f.States, j.state)) && (f.Tenant == "" || f.Tenant == j.tenant) &&
			(f.Kind == "" || f.Kind == j.kind) && !(f.Unacked && j.acked) {
			want = append(want, w.modelLine(j))
		}
	}
	w.same("Jobs", differ(got, want))
}

// read reads one job and compares it.
func (w *world) read(st settle.Reader, id settle.ID) (settle.Job, *job) {
	got, err := st.Job(w.ctx, id)
	j := w.m.byID[id]
	if j == nil {
		w.check(err != nil, "Job", "job %s was removed and is shown all the same", id)
		return got, nil
	}
	w.must(err, "Job")
	w.same("Job", differ([]string{w.line(&got)}, []string{w.modelLine(j)}))
	w.check(len(got.Attempts) == len(j.attempts) && len(got.Steps) == len(j.steps), "Job", "%s shows %d attempts and %d steps, want %d and %d",
		j, len(got.Attempts), len(got.Steps), len(j.attempts), len(j.steps))
	return got, j
}

// line is what matters of a job that was read.
func (w *world) line(j *settle.Job) string {
	s := j.Snapshot()
	wait := ""
	if s.Wait != nil {
		wait = fmt.Sprintf("%+v for %s, spent %d", *s.Wait, s.WaitLeft, s.StepSpent)
	}
	left := s.Remaining
	if !j.State.Live() {
		left = 0
	}
	if j.Answer != nil {
		wait += fmt.Sprintf(" answered %+v", *j.Answer)
	}
	return fmt.Sprintf("row %d %s %s/%s/%s key %q %s %+v left %s wait %s | due %d alarm %d ends by %d held %d | %s %q %q acked %v",
		j.Fence.Handle, j.ID, j.Queue, j.Kind, j.Tenant, j.Key, j.State, j.Counters, left, wait, unix(j.Due), unix(j.Alarm), unix(j.EndsBy), unix(j.Held),
		j.Reason, j.Note, j.Output, j.Acked)
}

func (w *world) modelLine(j *job) string {
	shown := settle.Job{ID: j.id, Kind: j.kind, Queue: j.queue, Tenant: j.tenant, Key: j.key, State: j.state, Counters: j.Counters,
		Reason: j.reason, Note: j.note, Output: []byte(j.output), Acked: j.acked, Now: instant(w.m.now)}
	shown.Fence.Handle = j.n
	if j.state.Live() {
		shown.Due, shown.Alarm, shown.Deadline = instant(j.due), instant(j.alarm), instant(j.deadline)
		shown.EndsBy = settle.EndsBy(shown.Deadline)
	}
	if until := w.m.heldUntil(j); j.state == settle.Pending && until > w.m.now {
		shown.Held = instant(until)
	}
	if j.waits() {
		shown.Wait, shown.WaitEnds, shown.StepSpent, shown.Answer = &j.wait, instant(j.until), j.spent(j.wait.Step), w.m.answer(j)
	}
	return w.line(&shown)
}
