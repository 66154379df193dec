// Package xwork runs one attempt of a job in a target outside the program: a
// command ([Command]) or an HTTP address ([HTTP]). Both take the input and give
// an outcome; they know neither worker nor store.
package xwork

import (
	"bytes"
	"context"
	"fmt"

	"github.com/settle-go/settle"
)

// Request is one attempt.
type Request struct {
	Job     settle.ID
	Attempt int
	Input   []byte
}

// Target runs attempts; it may be used by any number of goroutines.
type Target interface {
	// Do runs one attempt. When ctx ends it stops what it began and returns
	// within a second. The outcome then says what is known; why the context
	// ended is the caller's to say. An error says that nothing was begun, by
	// the fault of this machine: too many processes, say.
	Do(ctx context.Context, r Request) (settle.Outcome, error)
}

// tooLarge is the outcome of an output beyond the limit: trying again would
// only make it again.
func tooLarge(what string) settle.Outcome {
	return settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptOutput,
		Error: fmt.Sprintf("%s is larger than %d bytes, the limit of an output; store large results elsewhere and answer with a reference", what, settle.MaxPayload)}
}

// limited keeps what is written up to a limit, and calls over once when more
// comes; the rest is dropped.
type limited struct {
	buf  bytes.Buffer // a field: its ReadFrom must not be reachable by io.Copy
	max  int
	over func()
	full bool
}

// Write never fails: a writer that is refused would die of it, and its exit
// code would hide the cause.
func (l *limited) Write(p []byte) (int, error) {
	n := len(p)
	if room := l.max - l.buf.Len(); n > room {
		p = p[:max(room, 0)]
		if !l.full {
			l.full = true
			l.over()
		}
	}
	l.buf.Write(p)
	return n, nil
}

// tail keeps the last bytes that are written.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if cut := len(t.buf) - t.max; cut > t.max { // shift seldom
		t.buf = append(t.buf[:0], t.buf[cut:]...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte { return t.buf[max(0, len(t.buf)-t.max):] }
