package mailbox

import "bytes"

// StatusJudge reads the plain documents of producers that keep to no contract
// but this: one JSON object with a "status" that is "done", "error" or
// "progress", and nothing else. Every other status, and one that is absent or
// no string, is a *[ProtocolError].
//
// Done: the output is the whole document, byte for byte. Error: the message is
// the first of "message", "error" and "reason" that is a string, and
// "retryable" counts where it is true or false. Everything else in the document
// is the producer's own, and not looked at. It knows no attempts: give each
// submission a place of its own, or a late answer to one is taken for an answer
// to the next.
func StatusJudge(t Ticket, doc []byte) (Answer, error) {
	d := parse(doc)
	status := d.text("status")
	switch {
	case !d.sound():
	case status == "done":
		return Answer{Output: bytes.Clone(doc), Node: t.Node}, nil
	case status == "error":
		return Answer{}, t.failed(d.plainError())
	case status == "progress":
		return Answer{}, ErrProgress
	default:
		d.blame("status", ReasonUnknown)
	}
	return Answer{}, t.malformed(doc, d.fault)
}

// plainError takes what there is of a failure that no contract describes.
func (o *object) plainError() StepError {
	var s StepError
	for _, field := range []string{"message", "error", "reason"} {
		if text, ok := asString(o.fields[field]); ok {
			s.Message = text
			break
		}
	}
	s.Retry = o.retry() // what it is no boolean of says nothing
	return s
}
