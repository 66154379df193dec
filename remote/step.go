package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/worker"
)

// Step is one piece of a job that a node does. The zero Step sends the job's input
// to the node.
type Step struct {
	// Name tells the steps of a job apart. "" = the job's kind.
	Name string
	// Input is what the node gets, as JSON. nil = the job's own input.
	Input any
	// Silence is the longest pause between two signs of life: a node that has
	// sent none for so long, and a quarter more, is given up. At least 1 ms.
	// 0 = only the policy's Wait counts.
	Silence time.Duration
	// Submit replaces the pool's for this step.
	Submit func(context.Context, Submission) error
}

// Handle registers the handler of a kind whose work is one step: the node gets the
// job's input, and its output is the job's. out makes an Out of the node's output;
// without it, that is decoded as JSON. All else is as with [worker.Handle] and
// [Call].
func Handle[In, Out any](w *worker.Worker, k settle.Kind[In, Out], p *Pool, s Step, out ...func([]byte) (Out, error)) {
	p.hub.Attach(w)
	decode := func(b []byte) (v Out, err error) { return v, json.Unmarshal(b, &v) }
	if len(out) > 0 {
		decode = out[0]
	}
	worker.Handle(w, k, func(ctx context.Context, j *worker.Job[In]) (Out, error) {
		b, err := Call(ctx, p, j, s)
		if err != nil {
			var none Out
			return none, err
		}
		v, err := decode(b)
		if err != nil { // it will never become one by waiting
			return v, settle.Terminal(fmt.Errorf("the output of step %s is not what %s wants: %w", s.name(j.Kind), k.Name(), err))
		}
		return v, nil
	})
}

// Call returns the output of a step that is finished. Else it submits the step to
// a node of the pool, and returns an error that the handler must return as it is,
// or wrapped with %w: it parks the job until the answer comes, puts it off when no
// node can take it, or fails the attempt. After the answer the handler runs again,
// from its beginning.
func Call[In any](ctx context.Context, p *Pool, j *worker.Job[In], s Step) ([]byte, error) {
	name := s.name(j.Kind)
	for _, done := range j.Steps {
		if done.Step == name {
			return done.Output, nil
		}
	}
	if s.Silence != 0 && s.Silence < time.Millisecond {
		return nil, fmt.Errorf("remote: step %s: Silence is %s: want at least 1ms, or 0 for none", name, s.Silence)
	}
	in := json.RawMessage(j.Input)
	if s.Input != nil {
		b, err := encode(s.Input)
		if err != nil {
			return nil, settle.Terminal(fmt.Errorf("the input of step %s cannot be encoded: %w", name, err))
		}
		in = b
	}
	if len(in) == 0 {
		in = json.RawMessage("null")
	}
	past, err := j.Attempts(ctx)
	if err != nil {
		return nil, err
	}
	c := call{pool: p, job: &j.ClaimedJob, step: s, name: name, input: in, past: past, record: j.Submitting}
	return nil, c.make(ctx)
}

func (s Step) name(kind string) string {
	if s.Name == "" {
		return kind
	}
	return s.Name
}

// call is one submission on its way.
type call struct {
	pool   *Pool
	job    *settle.ClaimedJob
	step   Step
	name   string
	input  json.RawMessage
	past   []settle.Attempt
	record func(context.Context, settle.Wait, int) error
}

// make chooses a node, records the ticket and submits. Its error says what the
// attempt came to.
func (c *call) make(ctx context.Context) error {
	p := c.pool
	spent, again, retryable := c.spent()
	token, err := p.breakers.AdmitFirst(p.order(c.past)...)
	if err != nil {
		return worker.Report(p.noNode(err))
	}
	defer token.Settle(breaker.Neutral) // unless something was learned: panic, Goexit, early return
	if !again {
		p.retries.first()
	} else if !p.retries.repeat() {
		return worker.Report(c.heldBack())
	}
	node, _ := p.node(token.Node())
	w := settle.Wait{Ticket: settle.NewID(), Step: c.name, Node: node.Name, Pool: p.name, Silence: c.step.Silence + c.step.Silence/4,
		Breaker: string(token.Ticket()), Recall: p.canRecall(c.step), Retryable: retryable}
	if err := c.record(ctx, w, spent); err != nil {
		return err
	}
	send, cancel := context.WithTimeout(ctx, p.config.SubmitTimeout)
	defer cancel()
	err = p.submitter(c.step)(send, c.submission(w, node))
	event, said := c.judge(ctx, w, err)
	token.Settle(said)
	if event == nil {
		return fmt.Errorf("submit step %s to node %s: %w", c.name, node.Name, context.Cause(ctx))
	}
	return worker.Report(event)
}

// heldBack puts off a submission that repeats a failed one. The more often that
// happens in a row the longer it waits: there are many of its kind, and each time is
// a deferral, of which it has not for ever.
func (c *call) heldBack() settle.Deferred {
	wait := 2 * time.Second << min(c.inRow(settle.AttemptRateLimited), 3)
	return settle.Deferred{Reason: settle.AttemptRateLimited, After: wait + rand.N(wait),
		Error: "pool " + c.pool.name + ": too many of its submissions are repeats of failed ones"}
}

// How often in a row a job is put off for as long as busy nodes say, and by what it
// waits at least from then on: doubled up to longBusy, so that a backlog of days
// does not use the deferrals up within an hour.
const (
	patient  = 20
	longBusy = 5 * time.Minute
)

// busyFor is how long a job leaves nodes alone that are busy.
func (c *call) busyFor(said time.Duration) time.Duration {
	if n := c.inRow(settle.AttemptBusy) - patient; n >= 0 {
		return max(said, min(2*defaultBusy<<min(n, 10), longBusy))
	}
	return said
}

// inRow is how many of the latest attempts ended for this reason.
func (c *call) inRow(r settle.AttemptReason) (n int) {
	for _, a := range slices.Backward(c.past) {
		if a.Reason != r {
			break
		}
		n++
	}
	return n
}

// spent counts the attempts of the step that its budget knows, and tells what the
// latest answer said of trying again. again: a submission has failed before, if
// only because it could not be begun, of which no step is known.
func (c *call) spent() (n int, again, retryable bool) {
	for _, a := range c.past {
		switch {
		case a.N <= c.job.Base:
		case a.Step == c.name && !a.Ticket.IsZero():
			n++
			again, retryable = true, a.Retryable
		case a.Step == "" && a.Reason == settle.AttemptSubmitFailed:
			again = true
		}
	}
	return n, again, retryable
}

func (c *call) submission(w settle.Wait, node Node) Submission {
	limit := min(c.job.Policy.Wait, c.job.Remaining)
	return Submission{V: 1, Job: c.job.ID, Step: w.Step, Attempt: w.Ticket, Node: node.Name, DeadlineMS: max(limit.Milliseconds(), 1),
		SilenceMS: c.step.Silence.Milliseconds(), Answer: c.pool.hub.answerTo(c.job.ID, w.Ticket), Input: c.input, To: node}
}

// judge says what the attempt and the node's breaker make of a submission. No
// event = the attempt's own context has ended: that is for the worker to tell.
func (c *call) judge(ctx context.Context, w settle.Wait, err error) (settle.Event, breaker.Outcome) {
	var busy *busyError
	var unbegun *unbegunError
	failed := settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptSubmitFailed, Node: w.Node}}
	switch {
	case err == nil:
		return settle.Parked{Wait: w}, breaker.Answered
	case errors.As(err, &busy):
		return settle.Deferred{Reason: settle.AttemptBusy, After: c.busyFor(busy.after), Node: w.Node, Error: redact.Error(err)}, breaker.Answered
	case settle.IsTerminal(err):
		failed.Verdict, failed.Reason, failed.Refused, failed.Error = settle.VerdictTerminal, settle.AttemptRefused, true, redact.Error(err)
		return failed, breaker.Answered
	case c.answered(ctx):
		return settle.Parked{Wait: w}, breaker.Answered
	case ctx.Err() != nil:
		return nil, breaker.Neutral
	}
	failed.Refused, failed.Error = errors.As(err, &unbegun), redact.Error(err)
	failed.After, _ = settle.RetryDelay(err)
	return failed, breaker.Failure
}

// answered: the node's reply is lost, or says otherwise, but its answer is there.
// It has been acknowledged, so it counts.
func (c *call) answered(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second/2) // before the slot is lost
	defer cancel()
	jobs, err := c.pool.hub.store.Waits(ctx, []settle.ID{c.job.ID})
	return err == nil && jobs[0].Answer != nil
}

// canRecall: the pool knows how to call a step off.
func (p *Pool) canRecall(s Step) bool {
	return p.config.Recall != nil || p.config.Submit == nil && s.Submit == nil
}

func (p *Pool) submitter(s Step) func(context.Context, Submission) error {
	for _, f := range []func(context.Context, Submission) error{s.Submit, p.config.Submit} {
		if f != nil {
			return f
		}
	}
	return p.post
}
