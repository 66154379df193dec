package redisinbox

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// Deliver does what has to be done for entries: judge and commit. It answers for
// each whether it is done with it, which removes it; so answers that are stale,
// unknown or settled before get true too. What gets false, and everything when
// there is an error, is offered again after Config.TakeOver; an error is also
// tried again at once, with pauses, within half of that.
//
// It may be called by several goroutines at once, has half of Config.TakeOver,
// and its context does not end with that of Run: an answer that was read is
// settled also during a shutdown. A panic is caught, and counts as no answer.
type Deliver func(ctx context.Context, entries []Entry) ([]bool, error)

// Entry is one answer, or one progress note.
type Entry struct {
	Job, Attempt settle.ID // what its ticket says
	Doc          []byte    // the document as it came; nil if there was none
	Progress     bool      // it came by the progress stream
	// Deliveries is how often it was read by somebody who then said nothing of
	// it, this time included: 1 is the first time, 0 that a look found it and
	// nobody holds it. A Deliver that answers false, or an error, has said
	// something.
	Deliveries int
	// Poisoned: more than 10 deliveries. Whoever looked at it died or panicked:
	// book it, do not judge it again.
	Poisoned bool

	key, id    string
	unreadable bool // its ticket
}

const (
	suspect  = 3  // from so many deliveries on it is offered alone, so that it does not make others poisoned
	poisoned = 10 // beyond so many it is
)

// Strange is an entry whose ticket could not be read. It was counted and removed.
type Strange struct {
	Stream string    // where it lay
	At     time.Time // when Redis took it, by Redis's clock
	Ticket string    // what stood in its place, safe to show
}

// read makes an entry of what a stream holds; ok = its ticket can be read.
func read(key string, x rueidis.XRangeEntry, deliveries int) (e Entry, ok bool) {
	e = Entry{
		Progress: isProgress(key), Deliveries: deliveries, Poisoned: deliveries > poisoned,
		key: key, id: x.ID,
	}
	if doc, there := x.FieldValues["doc"]; there {
		e.Doc = []byte(doc)
	}
	job, attempt, _ := strings.Cut(x.FieldValues["ticket"], ".")
	var err1, err2 error
	e.Job, err1 = settle.ParseID(job)
	e.Attempt, err2 = settle.ParseID(attempt)
	return e, err1 == nil && err2 == nil && !e.Job.IsZero() && !e.Attempt.IsZero()
}

// strange describes an entry whose ticket could not be read.
func strange(key string, x rueidis.XRangeEntry) Strange {
	ms, _, _ := strings.Cut(x.ID, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return Strange{Stream: key, At: time.UnixMilli(n).UTC(), Ticket: redact.Text(x.FieldValues["ticket"])}
}
