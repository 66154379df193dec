package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/worker"
)

// Fate is what became of one document.
type Fate string

// The fates.
const (
	Applied   Fate = "applied"   // it ended its wait
	Kept      Fate = "kept"      // the job has not parked yet: the park will find it
	Progress  Fate = "progress"  // a sign of life
	Malformed Fate = "malformed" // it ended its wait, as one that nobody can read
	Duplicate Fate = "duplicate" // it was recorded before
	Stale     Fate = "stale"     // its attempt no longer counts
	Ended     Fate = "ended"     // its job has ended
	Unknown   Fate = "unknown"   // there is no such job
	Elsewhere Fate = "elsewhere" // this process does not know the pool: left to another
)

// Fates lists every fate.
var Fates = []Fate{Applied, Kept, Progress, Malformed, Duplicate, Stale, Ended, Unknown, Elsewhere}

// rounds is how often documents are looked at anew because their job moved.
const rounds = 10

// Deliver is the one way of all answers: each is judged, and what it says is
// committed. It answers for each whether there is nothing left to do for it. It is
// for an [Inbox] to call.
func (h *Hub) Deliver(ctx context.Context, in []Incoming) ([]bool, error) {
	fates, err := h.deliver(ctx, in)
	if err != nil {
		return nil, err
	}
	done := make([]bool, len(in))
	for i, f := range fates {
		done[i] = f != Elsewhere
	}
	return done, nil
}

func (h *Hub) deliver(ctx context.Context, in []Incoming) ([]Fate, error) {
	d := delivery{hub: h, in: in, fates: make([]Fate, len(in)), open: make([]int, len(in))}
	for i := range in {
		d.open[i] = i
	}
	for range rounds {
		if err := d.round(ctx); err != nil {
			return nil, err
		}
		if len(d.open) == 0 {
			h.stats.count(in, d.fates)
			return d.fates, nil
		}
	}
	return nil, errors.New("jobs move faster than answers to them can be looked at")
}

// delivery is a batch of documents under way.
type delivery struct {
	hub   *Hub
	in    []Incoming
	fates []Fate
	open  []int // of in: not settled yet
}

// judged is a document that is to be applied.
type judged struct {
	i    int // of in
	fate Fate
	pool *Pool
	job  *settle.Job
	wait *settle.Wait
	said breaker.Outcome
}

// round reads where the jobs stand, judges, and applies all of it at once. What
// was stale by then stays open.
func (d *delivery) round(ctx context.Context) error {
	ids := make([]settle.ID, len(d.open))
	for k, i := range d.open {
		ids[k] = d.in[i].Job
	}
	jobs, err := d.hub.store.Waits(ctx, ids)
	if err != nil {
		return err
	}
	var moves []settle.Transition
	var them []judged
	var past []int // documents whose job waits for nothing of the kind
	for k, i := range d.open {
		switch j := &jobs[k]; {
		case j.ID.IsZero() || j.Wait == nil || j.Wait.Ticket != d.in[i].Attempt:
			past = append(past, i)
		default:
			x, ev := d.judge(i, j)
			t := settle.Transition{Refusal: settle.RefusedState}
			if ev != nil {
				t = j.Decide(ev, rand.Float64(), false)
			}
			if t.Refusal != "" { // nothing to write
				d.fates[i] = x.fate
				continue
			}
			moves, them = append(moves, t), append(them, x)
		}
	}
	for _, i := range past {
		if d.fates[i], err = d.hub.past(ctx, d.in[i]); err != nil {
			return err
		}
	}
	return d.apply(ctx, moves, them)
}

func (d *delivery) apply(ctx context.Context, moves []settle.Transition, them []judged) error {
	d.open = d.open[:0]
	if len(moves) == 0 {
		return nil
	}
	said, err := d.hub.store.Apply(ctx, moves)
	if err != nil {
		return err
	}
	for k, x := range them {
		if said[k] != settle.Done { // somebody was faster: the next round sees what became of it
			d.open = append(d.open, x.i)
			continue
		}
		d.fates[x.i] = x.fate
		if x.said != "" {
			x.pool.observe(x.wait, x.said)
		}
		if moves[k].To != settle.Running && x.fate != Progress {
			d.hub.tellOf(x.job, moves[k])
		}
	}
	return nil
}

// judge says what one document means for the job that waits for it. No event =
// there is nothing to write.
func (d *delivery) judge(i int, j *settle.Job) (judged, settle.Event) {
	in, w := &d.in[i], j.Wait
	x := judged{i: i, pool: d.hub.pool(w.Pool), job: j, wait: w}
	if x.pool == nil {
		x.fate = Elsewhere
		return x, nil
	}
	answer, err := x.pool.look(in, w)
	if errors.Is(err, mailbox.ErrProgress) || errors.Is(err, mailbox.ErrNotReady) {
		x.fate = Progress
		if j.State == settle.Awaiting && w.Silence > 0 && errors.Is(err, mailbox.ErrProgress) && due(j) {
			return x, settle.Progressed{Ticket: w.Ticket}
		}
		return x, nil
	}
	if errors.Is(err, mailbox.ErrStale) {
		x.fate = Stale
		return x, nil
	}
	if j.Answer != nil { // one is kept already
		x.fate = Stale
		if heard(j.Answer.Reason) {
			x.fate = Duplicate
		}
		return x, nil
	}
	ev := settle.Delivered{Ticket: w.Ticket}
	ev.Outcome, ev.Retryable, x.said = outcome(w, answer, err)
	switch {
	case ev.Reason == settle.AttemptProtocol:
		x.fate = Malformed
		d.hub.log.Warn("an answer cannot be read", "job", in.Job, "step", w.Step, "node", w.Node, "error", ev.Error)
	case j.State == settle.Running:
		x.fate = Kept
	default:
		x.fate = Applied
	}
	return x, j.Answered(ev)
}

// due: the note is worth a write. Of a wait's silence a fifth is ours: notes that
// come within it are not written, and those that come within the rest of each other
// are in time all the same.
func due(j *settle.Job) bool { return j.Alarm.Sub(j.Now) <= j.Wait.Silence*4/5 }

// look judges one document. Every answer, by whatever way it came, is judged here.
func (p *Pool) look(in *Incoming, w *settle.Wait) (mailbox.Answer, error) {
	t := mailbox.Ticket{Job: in.Job.String(), Step: w.Step, Attempt: w.Ticket.String(), Node: w.Node}
	switch {
	case in.unsigned:
		return mailbox.Answer{}, errUnsigned
	case in.Poisoned:
		return mailbox.Answer{}, errPoisoned
	default:
		return p.config.Judge.Look(t, in.Doc, true)
	}
}

var (
	errUnsigned = errors.New("the answer is not signed with its key")
	errPoisoned = errors.New("whoever looked at the answer died of it")
)

// outcome is what a final verdict means for the job and for the node's breaker.
func outcome(w *settle.Wait, a mailbox.Answer, err error) (o settle.Outcome, retryable bool, said breaker.Outcome) {
	o.Node = w.Node
	var step *mailbox.StepError
	var protocol *mailbox.ProtocolError
	switch {
	case err == nil:
		o.Verdict, o.Reason, o.Output = settle.VerdictOK, settle.AttemptOK, a.Output
		return o, false, breaker.Success
	case errors.As(err, &step):
		o.Verdict, o.Reason, o.After, o.Error = settle.VerdictRetry, settle.AttemptStepError, step.RetryAfter, words(step)
		if step.Retry == mailbox.RetryUseless {
			o.Verdict = settle.VerdictTerminal
		}
		return o, step.Retry == mailbox.RetryHelps, breaker.Answered
	}
	o.Verdict, o.Reason, o.Error = settle.VerdictRetry, settle.AttemptProtocol, redact.Error(err)
	if err == errPoisoned || errors.As(err, &protocol) && protocol.Reason == mailbox.ReasonJudge {
		return o, false, breaker.Neutral // says nothing of the node
	}
	return o, false, breaker.Failure
}

// words is what a node said of its failure.
func words(e *mailbox.StepError) string {
	if e.Reason == "" {
		return redact.Text(e.Message)
	}
	return redact.Text(e.Reason + ": " + e.Message)
}

// heard: the node's answer is what the attempt came to. After one that nobody could
// read a better one comes too late, and is not called recorded.
func heard(r settle.AttemptReason) bool {
	return r == settle.AttemptOK || r == settle.AttemptStepError
}

// past says what became of the submission that a document answers, where the job
// no longer waits for it.
func (h *Hub) past(ctx context.Context, in Incoming) (Fate, error) {
	j, err := h.store.Job(ctx, in.Job)
	if errors.Is(err, settle.ErrNotFound) {
		return Unknown, nil
	}
	if err != nil {
		return "", err
	}
	recorded := slices.ContainsFunc(j.Steps, func(s settle.StepResult) bool { return s.Ticket == in.Attempt }) ||
		slices.ContainsFunc(j.Attempts, func(a settle.Attempt) bool {
			return a.Ticket == in.Attempt && heard(a.Reason)
		})
	switch {
	case recorded:
		return Duplicate, nil
	case j.State.Ended():
		return Ended, nil
	default:
		return Stale, nil
	}
}

// silence blames a node for a wait that a sweep has ended, unless its answer may
// lie where nobody could read it.
func (h *Hub) silence(s worker.Settled) {
	r, w := s.Transition.Record, s.Wait
	if w == nil || r == nil || r.Reason != settle.AttemptNoResult || s.Applied != settle.Done {
		return
	}
	p := h.pool(w.Pool)
	if p == nil {
		return
	}
	said := breaker.Failure
	if in := h.config.Inbox; in != nil && !in.Readable(max(w.Silence, minReadable)) {
		said = breaker.Neutral
	}
	p.observe(w, said)
}

// minReadable is for how long an inbox must have been read before anybody is
// blamed for silence.
const minReadable = time.Minute

// lastLook looks into the inbox before waits are ended. A look that failed is not
// repeated for a while: the ends of waits do not wait for Redis.
func (h *Hub) lastLook(ctx context.Context, over []settle.Job) {
	h.mu.Lock()
	skip := !h.looked.IsZero() && time.Since(h.looked) < 10*time.Second
	h.mu.Unlock()
	ours := slices.ContainsFunc(over, func(j settle.Job) bool { return j.Wait != nil && h.pool(j.Wait.Pool) != nil })
	if skip || !ours {
		return
	}
	if err := h.config.Inbox.LastLook(ctx); err != nil {
		h.log.Warn("no last look before waits end", "waits", len(over), "error", redact.Error(err))
		h.mu.Lock()
		h.looked = time.Now()
		h.mu.Unlock()
	}
}
