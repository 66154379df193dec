package xrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/internal/verdict"
	"github.com/settle-go/settle/internal/xrun/child"
	"github.com/settle-go/settle/worker"
)

// How long a command has between SIGTERM and SIGKILL: at a timeout, and when
// somebody waits for it to be gone.
const (
	graceTimeout = 5 * time.Second
	graceCut     = 800 * time.Millisecond
)

// tailRead is how much of the end of a command's standard error is looked at,
// and tailMax how much of its error text is stored.
const (
	tailRead = redact.TailRead + 1
	tailMax  = 1 << 10
)

var errTimeout = errors.New("timed out")

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
	argv  []string
	out   spooled // standard output
	err   spooled // standard error
	res   child.Result
	cause error // why it was cut short
}

// attempt runs the command and takes what it wrote. Its error is the item's.
func (s *start) attempt(ctx context.Context, slot int, j *settle.ClaimedJob) (*attempt, error) {
	a := &attempt{job: j}
	spec, err := s.spec(a)
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
	var err error
	if spec.Stdout, err = child.Spool(); err != nil {
		return notNow(err)
	}
	if spec.Stderr, err = child.Spool(); err != nil {
		spec.Stdout.Close()
		return notNow(err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	timer := time.AfterFunc(s.Timeout, func() { stop(errTimeout) })
	defer timer.Stop()
	defer context.AfterFunc(s.cut, func() { stop(context.Cause(s.cut)) })()
	spec.Grace = func() time.Duration {
		if errors.Is(context.Cause(ctx), errTimeout) {
			return graceTimeout
		}
		return graceCut
	}
	res, err := s.runner.Run(ctx, spec)
	a.res, a.cause = res, context.Cause(ctx)
	var errOut, errErr error
	a.out, errOut = take(spec.Stdout)
	a.err, errErr = take(spec.Stderr)
	switch {
	case err != nil:
		return startFault(a, err)
	case errOut != nil || errErr != nil:
		a.out.close()
		a.err.close()
		return notNow(errors.Join(errOut, errErr))
	}
	return nil
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
	why := errors.Unwrap(err)
	if why == nil {
		why = err
	}
	return terminal(fmt.Sprintf("%s: %v (exit status %d)", a.argv[0], why, code))
}

// terminal ends the item.
func terminal(text string) error {
	return worker.Report(settle.Settled{Outcome: settle.Outcome{
		Verdict: settle.VerdictTerminal, Reason: settle.AttemptError, Error: redact.Text(text)}})
}

// spec fills the item into the command.
func (s *start) spec(a *attempt) (child.Spec, error) {
	j := a.job
	if bytes.IndexByte(j.Input, 0) >= 0 {
		return child.Spec{}, terminal("the item holds a NUL byte, which no argument of a command can hold; for input separated by NUL add -0")
	}
	a.argv = s.tmpl.Fill(j.Input, itemNumber(j.Key))
	path := s.path
	if path == "" {
		found, err := lookPath(a.argv[0], s.Folder)
		if err != nil {
			return child.Spec{}, terminal(err.Error() + " (exit status 127)")
		}
		path = found
	}
	env := append(s.env[:len(s.env):len(s.env)],
		"SETTLE_JOB="+j.ID.String(), "SETTLE_ATTEMPT="+strconv.Itoa(j.Attempt), "SETTLE_ITEM="+string(j.Input))
	return child.Spec{Path: path, Args: a.argv, Env: env, Dir: s.Folder}, nil
}

// environment is what commands inherit, without what they get anew.
func environment(env []string) []string {
	if env == nil {
		env = os.Environ()
	}
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if name != "SETTLE_JOB" && name != "SETTLE_ATTEMPT" && name != "SETTLE_ITEM" {
			out = append(out, v)
		}
	}
	return out
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
		outcome.Error = a.text(fmt.Sprintf("timed out after %s", s.Timeout))
	case a.res.Signal != "":
		outcome.Verdict = verdict.Exit(verdict.Signalled, s.OK, s.Terminal)
		outcome.Error = a.text("killed by a signal: " + a.res.Signal)
	default:
		outcome.Verdict = verdict.Exit(a.res.Code, s.OK, s.Terminal)
		outcome.Error = a.text(fmt.Sprintf("exit status %d", a.res.Code))
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

// text is the error text: the safe tail of standard error, and how it ended.
func (a *attempt) text(how string) string {
	if a.err.size == 0 {
		return how
	}
	tail := redact.Tail(a.err.tail(tailRead))
	if len(tail) > tailMax {
		tail = redact.Tail([]byte(tail[len(tail)-tailMax:]))
	}
	return fmt.Sprintf("%s (%s)", tail, how)
}
