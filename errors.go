package settle

import (
	"errors"
	"fmt"
)

// Errors of calls on jobs.
var (
	// ErrNotFound: no job has this id (or its row has been removed).
	ErrNotFound = errors.New("no such job")
	// ErrFull: the store has reached its limit of jobs or bytes. Nothing of
	// the call was accepted; work that ends makes room again.
	ErrFull = errors.New("the store is full")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("the store is closed")
)

// StaleError: the caller no longer holds what it tried to change: another
// attempt, a sweep or a person was faster. Nothing was changed.
type StaleError struct {
	Job     ID
	Attempt int    // the attempt that the caller held; 0 = a person's wish
	State   State  // where the job stands now
	Detail  string // for people; may be empty
}

func (e *StaleError) Error() string {
	msg := fmt.Sprintf("job %s is %s", e.Job, e.State)
	if e.Attempt > 0 {
		msg = fmt.Sprintf("job %s: attempt %d no longer holds the job, which is %s", e.Job, e.Attempt, e.State)
	}
	if e.Detail != "" {
		msg += ": " + e.Detail
	}
	return msg
}

// IsStale reports whether an error says that a fence had moved on.
func IsStale(err error) bool {
	var s *StaleError
	return errors.As(err, &s)
}

// EndError is the typed end of a job that did not succeed, as Await returns it.
type EndError struct {
	Job     ID
	State   State // dead or cancelled
	Reason  EndReason
	Attempt int           // the last attempt's number; 0 = never started
	Last    AttemptReason // how the last recorded attempt ended; "" = none
	Message string        // the last real error, safe text
}

func (e *EndError) Error() string {
	return fmt.Sprintf("job %s is %s: %s", e.Job, e.State, EndText(e.Reason, e.Last, "", e.Message))
}

// InvalidError: the caller's input cannot be accepted. Nothing was stored.
type InvalidError struct {
	Field   string // what is wrong, such as "tenant"
	Problem string // what is wrong with it and what would be right
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

// RefusedError: a store or a program refuses to start. Recover is the one
// command that helps.
type RefusedError struct {
	What    string // what was to be opened, for people
	Why     string
	Recover string // a command line, such as "settle repair --db settle.db"
	Err     error  // the cause, if any
}

func (e *RefusedError) Error() string {
	msg := e.What + ": " + e.Why
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	if e.Recover != "" {
		msg += "; to recover: " + e.Recover
	}
	return msg
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// EndText puts an end reason and the last attempt together for people:
// "exhausted: step_error on node b: out of memory".
func EndText(end EndReason, last AttemptReason, node, message string) string {
	s := string(end)
	if last != "" && string(last) != string(end) && last != AttemptOK {
		s += ": " + string(last)
	}
	if node != "" {
		s += " on node " + node
	}
	if message != "" {
		s += ": " + message
	}
	return s
}
