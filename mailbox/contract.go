package mailbox

import (
	"bytes"
	"strconv"
	"time"
)

// version is the one version of the contract that is understood.
const version = 1

// The fields of contract v1. All others are ignored.
var (
	documentFields = []string{"v", "job", "step", "attempt", "node", "status", "output", "error", "at"}
	errorFields    = []string{"reason", "message", "retryable", "retry_after_ms"}
)

// ContractJudge reads answers of contract v1, as docs/contract.md describes it:
//
//	{"v":1, "job":…, "step":…, "attempt":…, "node":…, "status":"done", "output":…}
//	{"v":1, …, "status":"error", "error":{"reason":…, "message":…, "retryable":…, "retry_after_ms":…}}
//	{"v":1, …, "status":"progress"}
//
// An answer to another attempt is [ErrStale], whatever else it says. A document
// of which any part of the contract does not hold is a *[ProtocolError] that
// names the first such part.
func ContractJudge(t Ticket, doc []byte) (Answer, error) {
	d := parse(doc)
	d.version()
	attempt := d.text("attempt")
	if attempt != "" && t.Attempt != "" && attempt != t.Attempt {
		return Answer{}, ErrStale
	}
	d.same("job", t.Job)
	step := d.same("step", t.Step)
	node := d.text("node")
	d.at()

	switch d.text("status") {
	case "done":
		d.mustNot("error")
		output := d.output()
		if d.sound() {
			return Answer{Output: output, Node: t.node(node)}, nil
		}
	case "error":
		d.mustNot("output")
		failure := d.stepError(step, node)
		if d.sound() {
			return Answer{}, t.failed(failure)
		}
	case "progress":
		d.mustNot("output")
		d.mustNot("error")
		if d.sound() {
			return Answer{}, ErrProgress
		}
	default:
		d.blame("status", ReasonUnknown)
	}
	return Answer{}, t.malformed(doc, d.fault)
}

// version takes 1, however the number is written.
func (o *object) version() {
	v, ok := o.must("v")
	if !ok {
		return
	}
	if !isNumber(v) {
		o.blame("v", ReasonWrongType)
	} else if n, err := strconv.ParseFloat(string(v), 64); err != nil || n != version {
		o.blame("v", ReasonUnknown)
	}
}

// same takes a text that must be want, if that is known.
func (o *object) same(field, want string) string {
	s := o.text(field)
	if want != "" && s != want {
		o.blame(field, ReasonMismatch)
	}
	return s
}

// at takes the node's time, which is for people: nothing is computed with it.
func (o *object) at() {
	if v, ok := o.given("at"); ok && v[0] != '"' {
		o.blame("at", ReasonWrongType)
	}
}

// output takes the result. Here alone null is a value: a step may well come to
// nothing, but must say so.
func (o *object) output() []byte {
	v, ok := o.fields["output"]
	if !ok {
		o.blame("output", ReasonMissing)
	}
	return bytes.Clone(v)
}

// mustNot refuses a field that the status excludes.
func (o *object) mustNot(field string) {
	if _, ok := o.given(field); ok {
		o.blame(field, ReasonContradicted)
	}
}

// stepError takes what the node says of its failure.
func (o *object) stepError(step, node string) StepError {
	v, ok := o.must("error")
	if !ok {
		return StepError{}
	}
	if v[0] != '{' {
		o.blame("error", ReasonWrongType)
		return StepError{}
	}
	e := object{name: "error"}
	e.take(v)
	s := StepError{Step: step, Node: node, Reason: e.text("reason"), Message: e.message(), Retry: e.retry(), RetryAfter: e.retryAfter()}
	if o.sound() {
		o.fault = e.fault
	}
	return s
}

// message takes the node's text. It must be there, but may be "": many an error
// has no more to say.
func (o *object) message() string {
	v, ok := o.must("message")
	if !ok {
		return ""
	}
	s, ok := asString(v)
	if !ok {
		o.blame("message", ReasonWrongType)
	}
	return s
}

func (o *object) retry() Retry {
	v, ok := o.given("retryable")
	switch {
	case !ok:
		return RetryUnsaid
	case string(v) == "true":
		return RetryHelps
	case string(v) == "false":
		return RetryUseless
	}
	o.blame("retryable", ReasonWrongType)
	return RetryUnsaid
}

// retryAfter takes a number of milliseconds. It is a wish: parts of a
// millisecond, what is below zero and what is beyond reason are cut off.
func (o *object) retryAfter() time.Duration {
	v, ok := o.given("retry_after_ms")
	if !ok {
		return 0
	}
	if !isNumber(v) {
		o.blame("retry_after_ms", ReasonWrongType)
		return 0
	}
	ms, _ := strconv.ParseFloat(string(v), 64) // beyond its range: ±Inf
	return time.Duration(min(max(ms, 0), float64(MaxRetryAfter.Milliseconds()))) * time.Millisecond
}
