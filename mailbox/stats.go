package mailbox

import (
	"errors"
	"log/slog"
	"time"

	"github.com/settle-go/settle/internal/redact"
)

// Stats are the state of a box and its numbers. Those named "now" go up and
// down, the others count since New.
type Stats struct {
	Running    bool // Run is under way, now
	Waits      int  // waits, now
	Subscribed bool // nudges are heard, now
	Blind      bool // the latest look failed, now
	// Note is what the source says of itself, now: that it may lose answers, or
	// cannot be asked. Empty = all is well, or nobody has asked yet.
	Note string

	Looks      int64 // times that keys were looked at, many at once
	LookedAt   int64 // keys that were looked at, each time
	LookErrors int64 // keys that could not be looked at
	Nudges     int64 // nudges heard, whoever waits for them
	Reconnects int64 // times that the subscription was made anew, or tried to be

	Done      int64 // waits that ended with a finished step
	Failed    int64 // … with a *StepError
	Malformed int64 // … with a *ProtocolError
	Consumed  int64 // … with a *ConsumedError
	NoResult  int64 // … at their ceiling
	Left      int64 // … because their context or Run ended
	Stale     int64 // answers to other submissions that waits met, and left alone
	Late      int64 // answers that came after their wait's ceiling, removed
	Acked     int64 // answers deleted after their commit

	LastError   string    // the latest failure of a look or of the subscription, as safe text
	LastErrorAt time.Time // zero = there was none
}

// Stats returns the numbers as they are now.
func (b *Box) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Waits = len(b.rota.keys)
	return s
}

func (s *Stats) ended(err error) {
	var step *StepError
	var protocol *ProtocolError
	var consumed *ConsumedError
	var none *NoResultError
	switch {
	case err == nil:
		s.Done++
	case errors.As(err, &step):
		s.Failed++
	case errors.As(err, &protocol):
		s.Malformed++
	case errors.As(err, &consumed):
		s.Consumed++
	case errors.As(err, &none):
		s.NoResult++
	default:
		s.Left++
	}
}

// saw books a look, and tells when looks begin to fail and when they do no more.
func (b *Box) saw(waits []*wait, found []Found) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Looks++
	b.stats.LookedAt += int64(len(waits))
	var err error
	for _, f := range found {
		if f.Err != nil {
			err = f.Err
			b.stats.LookErrors++
		}
	}
	b.stats.Blind = err != nil
	b.report(&b.sight, err, "mailbox: cannot look for answers, and waits on", "mailbox: looks for answers again")
}

// heard books that the subscription is up (nil), or why it is not.
func (b *Box) heard(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stats.Subscribed = err == nil; !b.stats.Subscribed {
		b.stats.Reconnects++
	}
	b.report(&b.ears, err, "mailbox: no subscription, so answers are found by polling alone", "mailbox: subscribed again")
}

// note keeps what the source says of itself, and logs it when that is new.
func (b *Box) note(note string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if note != "" && note != b.stats.Note {
		b.config.Logger.Warn("mailbox: a note on the source", slog.String("note", note))
	}
	b.stats.Note = note
}

// outage is a fault that may last: its beginning is logged, then one line for
// each period, and its end.
type outage struct {
	since  time.Time // zero = none
	said   time.Time // of the last line about one
	hushed bool      // this one was not told: the last line is too young
	times  int       // since it began
}

func (b *Box) report(f *outage, err error, broken, mended string) {
	now := time.Now()
	if err == nil {
		if !f.since.IsZero() && !f.hushed {
			b.config.Logger.Info(mended, slog.Duration("after", now.Sub(f.since)), slog.Int("failures", f.times))
		}
		f.since, f.times, f.hushed = time.Time{}, 0, false
		return
	}
	text := redact.Error(err)
	b.stats.LastError, b.stats.LastErrorAt = text, now
	if f.since.IsZero() {
		f.since, f.hushed = now, true
	}
	f.times++
	if f.said.IsZero() || now.Sub(f.said) >= b.config.LogEvery {
		f.said, f.hushed = now, false
		b.config.Logger.Warn(broken, slog.String("error", text), slog.Int("failures", f.times), slog.Int("waits", len(b.rota.keys)))
	}
}
