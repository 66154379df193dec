package mailbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle/internal/redact"
)

// How a wait ends that brings no answer, besides its context's error and a
// *[NoResultError].
var (
	// ErrNotRunning: no Run was under way, nor began within 5 s.
	ErrNotRunning = errors.New("the box does not run")
	// ErrStopped: Run ended before the answer came. After a last look nothing had
	// been consumed: wait again, here or elsewhere.
	ErrStopped = errors.New("the box has stopped")
	// ErrWaiting: somebody in this process waits for that key already.
	ErrWaiting = errors.New("this key is waited for already")
)

// NoResultError: no answer came until the wait's ceiling. That ends the
// submission; another attempt gets a ticket and a key of its own. If an answer
// comes under this key after all, and its nudge is heard, it is removed.
type NoResultError struct {
	Key    string
	Step   string        // the ticket's; may be empty
	Node   string        // likewise
	Waited time.Duration // since this wait began, which may have resumed an earlier one
	// Unread says that some look failed: the answer may have been there, and the
	// silence says nothing of the node.
	Unread bool
	// Err is why the last look failed; nil = it did not. It is not unwrapped: the
	// time that ran out in it is not your context's.
	Err error
}

// Error says what did not come, as safe text of at most 2 KiB.
func (e *NoResultError) Error() string {
	s := "no answer"
	if e.Step != "" {
		s += " to step " + e.Step
	}
	if e.Node != "" {
		s += " from node " + e.Node
	}
	s += fmt.Sprintf(" under %s within %s", redact.Name(e.Key), e.Waited.Round(time.Millisecond))
	switch {
	case e.Err != nil:
		s += ": the last look failed: " + redact.Error(e.Err)
	case e.Unread:
		s += ", a part of which nobody could look"
	}
	return redact.Text(s)
}

// ConsumedError: a look that destroys what it sees has seen something that is no
// answer, or nobody knows what it has seen. There is nothing left to wait for,
// so it is final. What it holds is not unwrapped.
type ConsumedError struct {
	Key string
	// Err is why: [ErrProgress], [ErrStale] or [ErrNotReady] where that was the
	// judge's word for what was consumed, else what became of the reply.
	Err error
}

// Error says what may be lost, as safe text of at most 2 KiB.
func (e *ConsumedError) Error() string {
	return redact.Text(fmt.Sprintf("what lay under %s may be consumed: %s", redact.Name(e.Key), redact.Error(e.Err)))
}
