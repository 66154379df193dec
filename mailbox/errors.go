package mailbox

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/settle-go/settle/internal/redact"
)

// What a look says while the answer is still to come. No other error of a judge
// goes on waiting.
var (
	// ErrNotReady: nothing lies there.
	ErrNotReady = errors.New("no answer yet")
	// ErrProgress: the node says that it is at work. Only the time without a
	// sign of life begins anew; no limit of the whole wait moves.
	ErrProgress = errors.New("the node is at work")
	// ErrStale: an answer to another submission. It is dropped, and touches
	// nothing.
	ErrStale = errors.New("an answer to another submission")
)

// IsFinal reports whether err, or one that it wraps, is a final answer: a
// *[StepError] or a *[ProtocolError]; or a *[ConsumedError], after which none can
// come. Waiting any longer brings nothing. Whether the work is tried again is
// another question, which a final answer may well say yes to. False for nil.
func IsFinal(err error) bool {
	var step *StepError
	var protocol *ProtocolError
	var consumed *ConsumedError
	return errors.As(err, &step) || errors.As(err, &protocol) || errors.As(err, &consumed)
}

// Retry is what a node says of trying a failed step again.
type Retry string

// What a node may say of trying again.
const (
	RetryUnsaid  Retry = ""        // nothing: it may help, elsewhere and not often
	RetryHelps   Retry = "helps"   // "retryable": true
	RetryUseless Retry = "useless" // "retryable": false: it would fail again
)

// MaxRetryAfter is the longest pause that a node may ask for: 1 h, as much as is
// believed of an HTTP Retry-After.
const MaxRetryAfter = time.Hour

// StepError: the node did what it was asked to, and says that the step failed.
// That proves the node to be well. The texts are the node's own words made safe:
// for people, never for a decision or the label of a metric.
type StepError struct {
	Step string // the ticket's, or else the node's own word for it; may be empty
	Node string // likewise
	// Reason is the node's short word for the failure, at most 200 bytes. Empty
	// only where the judge knows of no such word.
	Reason string
	// Message is the node's text, at most 2 KiB, "(no message)" where there is
	// none.
	Message string
	// Retry is what the node says of trying again; the zero value is that it
	// says nothing.
	Retry Retry
	// RetryAfter is the pause that the node asks for before that, between 0 and
	// [MaxRetryAfter]. 0 = it asks for none.
	RetryAfter time.Duration
}

// Error names step, node and the node's words, as safe text of at most 2 KiB.
func (e *StepError) Error() string {
	s := "the step"
	if e.Step != "" {
		s = "step " + e.Step
	}
	s += " failed"
	if e.Node != "" {
		s += " on node " + e.Node
	}
	for _, words := range []string{e.Reason, e.Message} {
		if words != "" {
			s += ": " + words
		}
	}
	return redact.Text(s)
}

// Reason says what is wrong with a document. The list is closed: no word of a
// node is ever a Reason, so it may label a metric.
type Reason string

// The reasons. A document is asked for them from the top, its fields in the
// order v, attempt, job, step, node, at, status and what the status brings along;
// the first fault is named. docs/contract.md has documents for each.
const (
	ReasonTooLarge     Reason = "too_large"       // more than MaxDocument bytes
	ReasonEmpty        Reason = "empty"           // no bytes, or nothing but white space
	ReasonNotUTF8      Reason = "not_utf8"        // bytes that are no UTF-8
	ReasonTooDeep      Reason = "too_deep"        // nested deeper than 1 000 levels
	ReasonNotJSON      Reason = "not_json"        // no JSON value at its beginning
	ReasonTrailing     Reason = "trailing_data"   // something behind the JSON value
	ReasonNotObject    Reason = "not_object"      // a JSON value, but no object
	ReasonDuplicate    Reason = "duplicate_field" // a name that stands twice in one object
	ReasonMissing      Reason = "missing_field"   // a field that must be there: absent, null or blank
	ReasonWrongType    Reason = "wrong_type"      // a field of another JSON type
	ReasonUnknown      Reason = "unknown_value"   // a status or version that is not on the list
	ReasonMismatch     Reason = "mismatch"        // the right attempt, but another job or step
	ReasonContradicted Reason = "contradicted"    // an output or an error that the status excludes
	ReasonJudge        Reason = "judge_failed"    // the judge's own fault: says nothing of the node
)

// Reasons lists every reason.
var Reasons = []Reason{
	ReasonTooLarge, ReasonEmpty, ReasonNotUTF8, ReasonTooDeep, ReasonNotJSON, ReasonTrailing, ReasonNotObject,
	ReasonDuplicate, ReasonMissing, ReasonWrongType, ReasonUnknown, ReasonMismatch, ReasonContradicted, ReasonJudge,
}

// MaxRaw is how many bytes of a malformed document its error keeps.
const MaxRaw = 4 << 10

// ProtocolError: what lies there is no answer that this package knows. Unless
// the reason is [ReasonJudge], it speaks against the node. No field and no text
// of it holds anything that stood in the document.
type ProtocolError struct {
	Step   string // the ticket's; may be empty
	Node   string // likewise
	Reason Reason // what is wrong
	// Field is what it is wrong with, as the contract spells it ("status",
	// "error.reason"). Empty where that is the document, or a field that the
	// contract does not name.
	Field string
	Size  int // bytes of the document

	raw   func() []byte // not bytes: whatever prints this struct prints an address
	cause error
}

// Error says what is wrong with which answer, in words of this package alone.
func (e *ProtocolError) Error() string {
	s := "malformed answer"
	if e.Step != "" {
		s += " to step " + e.Step
	}
	if e.Node != "" {
		s += " from node " + e.Node
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	if e.Reason != "" {
		s += ": " + strings.ReplaceAll(string(e.Reason), "_", " ")
	}
	return redact.Text(fmt.Sprintf("%s (%d bytes)", s, e.Size))
}

// Unwrap returns the error of a judge that is not one of this package's, for
// whoever wrote that judge. Else nil.
func (e *ProtocolError) Unwrap() error { return e.cause }

// Raw returns the first [MaxRaw] bytes of the document, to be looked at by
// whoever mends the node. They are anybody's bytes: show them to no user, and
// put them into no log.
func (e *ProtocolError) Raw() []byte {
	if e.raw == nil {
		return nil
	}
	return bytes.Clone(e.raw())
}

// fault is what is wrong with a document. The zero fault is none.
type fault struct {
	reason Reason
	field  string
}

// malformed is the verdict on a document with a fault.
func (t Ticket) malformed(doc []byte, f fault) *ProtocolError {
	kept := bytes.Clone(doc[:min(len(doc), MaxRaw)])
	return &ProtocolError{Step: t.Step, Node: t.Node, Reason: f.reason, Field: f.field, Size: len(doc), raw: func() []byte { return kept }}
}

// failed is the verdict that a node gave: s, whose words are still raw, made
// safe and bounded.
func (t Ticket) failed(s StepError) *StepError {
	s.Step, s.Node = t.step(s.Step), t.node(s.Node)
	if s.Reason != "" {
		s.Reason = redact.Name(redact.Text(s.Reason))
	}
	s.Message = redact.Text(s.Message)
	if s.Retry != RetryHelps && s.Retry != RetryUseless {
		s.Retry = RetryUnsaid
	}
	s.RetryAfter = min(max(s.RetryAfter, 0), MaxRetryAfter)
	return &s
}
