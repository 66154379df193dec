package xrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/internal/verdict"
	"github.com/settle-go/settle/worker"
)

// How long a command has between SIGTERM and SIGKILL: at a timeout, and when
// somebody waits for it to be gone.
const (
	graceTimeout = 5 * time.Second
	graceCut     = 800 * time.Millisecond
)

var (
	errTimeout = errors.New("timed out")
	errSpool   = errors.New("its output cannot be kept")
)

// handBack gives an item back uncharged, to be run by the next start.
func handBack() error { return worker.Report(settle.Deferred{Reason: settle.AttemptShutdown}) }

// notNow puts an item off because this machine, not the item, is at fault.
func notNow(err error) error {
	return worker.Report(settle.Deferred{Reason: settle.AttemptBusy, After: time.Second, Error: redact.Error(err)})
}

// work is the handler: it runs the command for one item.
func (s *start) work(ctx context.Context, j *worker.Job[[]byte]) ([]byte, error) {
	defer s.gate.done(j.ID)
	if s.order != nil && s.order.crowded(j.ID) {
		return nil, worker.Report(settle.Deferred{Reason: settle.AttemptSnoozed, After: time.Second, Error: "it is too far from its turn (-k)"})
	}
	if s.own.is(j.Input) { // stored by an earlier start, or it has just become one
		return nil, s.dropOwn(ctx, &j.ClaimedJob)
	}
	slot, ok := s.slot(ctx)
	if !ok {
		return nil, handBack()
	}
	began := time.Now()
	a, err := s.attempt(ctx, slot, &j.ClaimedJob)
	if err == nil {
		err = a.judge(s) // before the next command starts: --max-dead
	}
	s.freeSlot(slot)
	s.gate.ran(j.ID, time.Since(began)) // what follows takes no place of a command
	if err != nil {
		return nil, err
	}
	defer a.out.close()
	return nil, s.deliver(ctx, a)
}

// deliver writes the output of an item that succeeded, when it is its turn.
func (s *start) deliver(ctx context.Context, a *attempt) error {
	if s.order != nil {
		wait, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.cut, stop)()
		if s.order.wait(wait, a.job.ID) != nil {
			return handBack()
		}
	}
	if err := s.out.write(a.job.Input, a.out); err != nil {
		s.fail(err)
		return handBack()
	}
	if s.order != nil {
		s.order.end(a.job.ID)
	}
	return nil
}

// attempt is one run of the command for one item.
type attempt struct {
	job   *settle.ClaimedJob
	out   spooled // standard output
	err   spooled // standard error
	res   child.Result
	cause error // why it was cut short
}

// attempt runs the command and takes what it wrote. Its error is the item's.
func (s *start) attempt(ctx context.Context, slot int, j *settle.ClaimedJob) (*attempt, error) {
	a := &attempt{job: j}
	spec, err := s.spec(j)
	if err != nil {
		return nil, err
	}
	if err := s.lock.Begin(slot, j.ID, j.Attempt); err != nil {
		s.fail(fmt.Errorf("note what runs: %w", err))
		return nil, handBack()
	}
	err = s.run(ctx, a, spec)
	if e := s.lock.End(slot); e != nil {
		s.fail(fmt.Errorf("note what runs: %w", e))
	}
	return a, err
}

// run runs the command in the bounds of this start: timeout and stop.
func (s *start) run(ctx context.Context, a *attempt, spec child.Spec) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &spool{make: s.spools, failed: func() { stop(errSpool) }}
	errs := &spool{make: s.spools, failed: func() { stop(errSpool) }}
	spec.Stdout, spec.Stderr, spec.Grace, spec.KillRest = out, errs, grace, true
	timer := time.AfterFunc(s.Timeout, func() { stop(errTimeout) })
	defer timer.Stop()
	defer context.AfterFunc(s.cut, func() { stop(context.Cause(s.cut)) })()
	res, err := s.runner.Run(ctx, spec)
	a.res, a.cause = res, context.Cause(ctx)
	a.out, a.err = out.take(), errs.take()
	switch broken := errors.Join(out.err, errs.err); {
	case err != nil:
		return startFault(a, err)
	case broken != nil:
		a.out.close()
		a.err.close()
		if passing(broken) {
			return notNow(broken)
		}
		s.fail(&spoolError{broken})
		return handBack()
	}
	return nil
}

func grace(cause error) time.Duration {
	if errors.Is(cause, errTimeout) {
		return graceTimeout
	}
	return graceCut
}

// startFault judges a command that could not be started.
func startFault(a *attempt, err error) error {
	a.out.close()
	a.err.close()
	if errors.Is(err, child.ErrKilled) {
		return handBack()
	}
	code, known := child.StartCode(err)
	if !known {
		return notNow(err)
	}
	return terminal(fmt.Sprintf("exit code %d: %v", code, err))
}

// terminal ends the item.
func terminal(text string) error {
	return worker.Report(settle.Settled{Outcome: settle.Outcome{
		Verdict: settle.VerdictTerminal, Reason: settle.AttemptError, Error: redact.Text(text)}})
}

// spec fills the item into the command.
func (s *start) spec(j *settle.ClaimedJob) (child.Spec, error) {
	if bytes.IndexByte(j.Input, 0) >= 0 {
		return child.Spec{}, terminal("the item holds a NUL byte, which no argument of a command can hold; for input separated by NUL add -0")
	}
	argv := s.tmpl.Fill(j.Input, itemNumber(j.Key))
	path := s.path
	if path == "" {
		found, err := find(argv[0], s.dir)
		if err != nil {
			return child.Spec{}, terminal("exit code 127: " + err.Error())
		}
		path = found
	}
	env := child.Environ(s.Env, "SETTLE_JOB="+j.ID.String(), "SETTLE_ATTEMPT="+strconv.Itoa(j.Attempt), "SETTLE_ITEM="+string(j.Input))
	return child.Spec{Path: path, Args: argv, Env: env, Dir: s.dir}, nil
}

// judge says what the attempt came to; nil = OK. What the command wrote to
// standard error is passed on here, and what a last, failed attempt wrote to
// standard output with it: it is no result, but may say what is wrong.
func (a *attempt) judge(s *start) (err error) {
	defer func() {
		a.err.close()
		if err != nil {
			a.out.close()
		}
	}()
	s.out.aside(a.job.Input, a.err)
	outcome := settle.Outcome{Verdict: settle.VerdictRetry, Reason: settle.AttemptError}
	switch {
	case s.killed.Load(), a.res.Cut && !errors.Is(a.cause, errTimeout):
		return handBack() // or nobody asks any more, because the lease is lost
	case a.res.Cut:
		outcome.Reason = settle.AttemptTimedOut
		outcome.Error = a.text("timed out after " + flagSpan(s.Timeout))
	default:
		outcome.Verdict = verdict.Exit(a.res.Code, s.OK, s.Terminal)
		outcome.Error = a.text(a.res.String())
	}
	if outcome.Verdict == settle.VerdictOK {
		return nil
	}
	if settle.Decide(a.job.Snapshot, settle.Settled{Outcome: outcome}, a.job.Policy, rand.Float64()).To.Ended() {
		s.judgedDead()
		s.out.aside(a.job.Input, a.out)
	}
	return worker.Report(settle.Settled{Outcome: outcome})
}

// text is the error text: how it ended, and the end of standard error.
func (a *attempt) text(how string) string { return child.ErrorText(how, a.err.tail(redact.TailRead+1)) }
