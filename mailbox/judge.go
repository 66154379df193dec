package mailbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settle-go/settle/internal/redact"
)

// MaxDocument is the size of the largest document that is read, in bytes:
// 1 MiB, envelope included. Whoever fetches one need not read further than a
// byte more.
const MaxDocument = 1 << 20

// Ticket is the right to answer one submission: what an answer must name to
// count. An empty field is not known, and not compared. The zero Ticket takes
// every answer, which is right only where the place in which the answer lies
// belongs to one submission.
type Ticket struct {
	Job     string // whose work it is
	Step    string // which piece of it
	Attempt string // the submission: random, new for each, so that no late answer fits
	// Node is whom the work was given to. An answer's own word for its node is
	// never compared with it, only shown where this one is empty.
	Node string
}

// Answer is what a finished step left.
type Answer struct {
	// Output is the result, byte for byte as the node wrote it: of a contract
	// answer the JSON value under "output" (which may be null, but is never
	// empty), of a plain status the whole document.
	Output []byte
	// Node is the ticket's, or else the node's own word for itself as safe text.
	Node string
}

// Judge says what one document means for whoever holds the ticket: nil, a
// *[StepError], a *[ProtocolError], or one of [ErrNotReady], [ErrProgress] and
// [ErrStale]. It is pure: it keeps and changes no part of doc, reads no clock,
// and may be called from several goroutines.
//
// The nil Judge is [ContractJudge].
type Judge func(t Ticket, doc []byte) (Answer, error)

// Look judges one look: found says whether a document lay there, which an empty
// one did too. Whatever the judge does, Look returns one of the six verdicts
// that the package lists, bare of wrappers, with safe text:
//
//   - missing is ErrNotReady, too large is a *ProtocolError, and the judge is
//     not asked;
//   - an error that is on the list, also wrapped, is on it;
//   - every other error, and a panic, is a *ProtocolError with [ReasonJudge]:
//     a judge that does not know is no reason to wait.
func (j Judge) Look(t Ticket, doc []byte, found bool) (a Answer, err error) {
	switch {
	case !found:
		return Answer{}, ErrNotReady
	case len(doc) > MaxDocument:
		return Answer{}, t.malformed(doc, fault{reason: ReasonTooLarge})
	case j == nil:
		j = ContractJudge
	}
	defer func() {
		if p := recover(); p != nil {
			a, err = Answer{}, t.judgeFailed(doc, fmt.Errorf("the judge panicked: %s", redact.Text(fmt.Sprint(p))))
		}
	}()
	a, err = j(t, doc)
	if err != nil {
		return Answer{}, t.oneOf(doc, err)
	}
	a.Node = t.node(a.Node)
	return a, nil
}

// oneOf finds the verdict in what a judge returned. Final ones come first: an
// error that is both must not go on waiting.
func (t Ticket) oneOf(doc []byte, err error) error {
	var step *StepError
	var protocol *ProtocolError
	switch {
	case errors.As(err, &step):
		return t.failed(*step)
	case errors.As(err, &protocol) && slices.Contains(Reasons, protocol.Reason):
		p := t.malformed(doc, fault{protocol.Reason, redact.Name(protocol.Field)})
		p.cause = protocol.cause
		return p
	case errors.Is(err, ErrNotReady):
		return ErrNotReady
	case errors.Is(err, ErrProgress):
		return ErrProgress
	case errors.Is(err, ErrStale):
		return ErrStale
	default:
		return t.judgeFailed(doc, err)
	}
}

func (t Ticket) judgeFailed(doc []byte, cause error) *ProtocolError {
	p := t.malformed(doc, fault{reason: ReasonJudge})
	p.cause = cause
	return p
}

// node is who answered: the ticket's word for it, or else the node's own.
func (t Ticket) node(said string) string {
	if t.Node != "" {
		return t.Node
	}
	return redact.Name(said)
}

// step is what was answered: the ticket's word for it, or else the node's.
func (t Ticket) step(said string) string {
	if t.Step != "" {
		return t.Step
	}
	return redact.Name(said)
}
