package settle

import (
	"errors"
	"time"
)

// Verdict is the one vocabulary for handlers, remote results and uploads.
// The zero Verdict is none of the three and is read as VerdictRetry: what is not on
// the allow-list is never success.
type Verdict string

// The three outcomes.
const (
	VerdictOK       Verdict = "ok"       // done
	VerdictRetry    Verdict = "retry"    // try again within the budget
	VerdictTerminal Verdict = "terminal" // trying again is useless
)

// Outcome is what one attempt came to.
type Outcome struct {
	Verdict Verdict
	// Reason is the attempt's reason; "" stands for "error" (or "ok").
	Reason AttemptReason
	// Error is safe text ([github.com/settle-go/settle/internal/redact] has
	// been applied); empty when OK.
	Error string
	// Output is stored with the success.
	Output []byte
	// After, if above zero, replaces the backoff: not before then.
	After time.Duration
	// Node names the machine that did the work, if any.
	Node string
}

type terminalError struct{ err error }

func (e *terminalError) Error() string {
	if e.err == nil {
		return "terminal"
	}
	return e.err.Error()
}
func (e *terminalError) Unwrap() error { return e.err }

type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string {
	if e.err == nil {
		return "retry after " + e.after.String()
	}
	return e.err.Error()
}
func (e *retryAfterError) Unwrap() error { return e.err }

type snoozeError struct{ d time.Duration }

func (e *snoozeError) Error() string { return "snoozed for " + e.d.String() }

// Terminal returns an error that ends the job now: a handler that returns it
// (also wrapped) says that trying again is useless. Terminal(nil) does so too.
func Terminal(err error) error { return &terminalError{err} }

// RetryAfter returns an error that asks for a retry not before d. It is
// charged like any failure. A d of zero or less means the usual backoff.
func RetryAfter(d time.Duration, err error) error { return &retryAfterError{d, err} }

// Snooze returns an error that puts the job off for d (at least 1 s) without
// charging the attempt. Snoozes are bounded by the policy's Deferrals and
// Deadline. A Snooze beats other errors that it is joined with.
func Snooze(d time.Duration) error { return &snoozeError{d} }

// IsTerminal reports whether a handler's error ends the job.
func IsTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}

// RetryDelay returns the delay that RetryAfter asked for.
func RetryDelay(err error) (time.Duration, bool) {
	var r *retryAfterError
	if errors.As(err, &r) {
		return r.after, true
	}
	return 0, false
}

// SnoozeDelay returns the delay that Snooze asked for.
func SnoozeDelay(err error) (time.Duration, bool) {
	var s *snoozeError
	if errors.As(err, &s) {
		return s.d, true
	}
	return 0, false
}
