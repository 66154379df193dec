package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// verdict is what an attempt came to for one job.
type verdict struct {
	event settle.Event
	seal  seal
}

// judge says what an attempt came to, from the handler's answer and the cause
// of the end of its context, if that had ended. It is total: an error whose
// methods panic is an error like any other. What a handler says after its lease
// was lost is not heard: somebody else may have the job.
func judge(x answer, cause error) settle.Event {
	after := time.Duration(0)
	fault, crash, exact := (*faultError)(nil), (*panicError)(nil), (*reported)(nil)
	err := x.err
	switch {
	case cause == ErrLeaseLost:
		return ended(cause, nil, 0)
	case err == nil:
		return done(x.out)
	case holds(func() (ok bool) { after, ok = settle.SnoozeDelay(err); return ok }):
		return settle.Deferred{Reason: settle.AttemptSnoozed, After: after}
	case holds(func() bool { return errors.As(err, &exact) }):
		return report(exact)
	case holds(func() bool { return errors.As(err, &fault) }):
		return failed(settle.VerdictTerminal, fault.reason, err, 0)
	case holds(func() bool { return settle.IsTerminal(err) }):
		return failed(settle.VerdictTerminal, settle.AttemptError, err, 0)
	case holds(func() bool { return errors.As(err, &crash) }):
		return failed(settle.VerdictRetry, crash.reason, err, 0)
	case holds(func() (ok bool) { after, ok = settle.RetryDelay(err); return ok }):
		// charged like any failure
	}
	if cause == ErrTimedOut || cause == ErrExpired || cause == ErrShutdown && holds(func() bool { return stopped(err) }) {
		return ended(cause, err, after)
	}
	return failed(settle.VerdictRetry, settle.AttemptError, err, after)
}

// holds asks an error; one whose methods panic has none of the properties
// behind them.
func holds(p func() bool) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	return p()
}

// stopped says whether an error is only the end of the handler's context.
func stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrShutdown)
}

func done(out []byte) settle.Event {
	if len(out) > settle.MaxPayload {
		return failed(settle.VerdictTerminal, settle.AttemptOutput,
			fmt.Errorf("output is %d bytes, the limit is %d", len(out), settle.MaxPayload), 0)
	}
	return settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Reason: settle.AttemptOK, Output: out}}
}

func failed(v settle.Verdict, r settle.AttemptReason, err error, after time.Duration) settle.Event {
	return settle.Settled{Outcome: settle.Outcome{Verdict: v, Reason: r, Error: redact.Error(err), After: max(after, 0)}}
}

// ended is an attempt that was stopped: cause says by what, err what the
// handler said, if it said anything.
func ended(cause, err error, after time.Duration) settle.Event {
	if err == nil {
		err = cause
	}
	switch cause {
	case ErrShutdown:
		return settle.Deferred{Reason: settle.AttemptShutdown}
	case ErrTimedOut:
		return failed(settle.VerdictRetry, settle.AttemptTimedOut, err, after)
	case ErrExpired:
		return failed(settle.VerdictRetry, settle.AttemptExpired, err, after)
	default:
		return failed(settle.VerdictRetry, settle.AttemptWorkerLost, err, after)
	}
}

// report admits the events that are a handler's to give, and makes their texts
// safe.
func report(r *reported) settle.Event {
	switch e := r.ev.(type) {
	case settle.Settled:
		if e.Verdict == settle.VerdictOK {
			return done(e.Output)
		}
		e.Error = redact.Text(e.Error)
		return e
	case settle.Deferred:
		if e.Error != "" {
			e.Error = redact.Text(e.Error)
		}
		return e
	case settle.Parked:
		return e
	default:
		return failed(settle.VerdictRetry, settle.AttemptError, r, 0)
	}
}

// panicError is a handler that did not return: it panicked, or ended its
// goroutine.
type panicError struct {
	reason settle.AttemptReason
	value  any
	where  string
}

func (e *panicError) Error() string {
	if e.reason == settle.AttemptGoexit {
		return "the handler ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("panic: %v%s", e.value, e.where)
}

var errGoexit = &panicError{reason: settle.AttemptGoexit}

// panicked describes a panic. Called by the function that recovered it.
func panicked(value any) error {
	return &panicError{settle.AttemptPanic, value, panicSite()}
}

// panicSite names the function that panicked: the first below the runtime's.
func panicSite() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for panicking := false; ; {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicking && !inRuntime {
			name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
			return fmt.Sprintf(" (in %s, line %d)", name, f.Line)
		}
		panicking = panicking || inRuntime
		if !more {
			return ""
		}
	}
}
