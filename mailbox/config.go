package mailbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The bounds of [Config] and [AwaitOpts], and what cannot be configured.
const (
	DefaultCeiling  = time.Hour
	MaxCeiling      = 30 * 24 * time.Hour
	DefaultPoll     = 2 * time.Second
	DefaultLastLook = 2 * time.Second
	DefaultLogEvery = time.Minute

	minPoll     = 10 * time.Millisecond
	maxPoll     = time.Minute
	maxLastLook = time.Minute
	maxLifetime = 365 * 24 * time.Hour
	maxKey      = 1 << 10 // bytes
	batch       = 500     // keys of one look
	startGrace  = 5 * time.Second
	checkEvery  = time.Minute
)

// Config says how a box waits. The zero Config is ready for use.
type Config struct {
	// Judge reads the documents. nil = ContractJudge.
	Judge Judge
	// Ceiling is the longest wait. 0 = 1 h; up to 30 days. No sign of life of a
	// node moves it.
	Ceiling time.Duration
	// Lifetime is how long nodes let an answer lie: the EX of their SET. If it is
	// shorter than a wait's ceiling, the answer may be gone before it is read, so
	// that wait is refused. 0 = not known, and not compared; up to 1 year.
	Lifetime time.Duration
	// Poll is the longest time between two looks for one answer whose nudge was
	// lost. 0 = 2 s; 10 ms to 1 min.
	Poll time.Duration
	// LastLook bounds the look that ends a wait: at its ceiling, when its context
	// ends, when Run ends. 0 = 2 s; up to 1 min.
	LastLook time.Duration
	// Logger gets a line when looks or the subscription begin to fail, one per
	// LogEvery while they do, and one when they work again. nil = slog.Default().
	Logger *slog.Logger
	// LogEvery is that period. 0 = 1 min, at least 1 s.
	LogEvery time.Duration
}

// AwaitOpts are what differs from one wait to the next. The zero value waits for
// any answer under the key until Config.Ceiling.
type AwaitOpts struct {
	// Ticket is what an answer must name to count.
	Ticket Ticket
	// Ceiling replaces Config.Ceiling. 0 = that one; up to 30 days.
	Ceiling time.Duration
	// Until replaces the ceiling by an instant, which may be stored: a wait that
	// is resumed after a restart does not begin anew. If it has passed, one look
	// is made. Zero = none. Give one of both.
	Until time.Time
}

func (c Config) ready() (Config, error) {
	c.Ceiling = cmp.Or(c.Ceiling, DefaultCeiling)
	c.Poll = cmp.Or(c.Poll, DefaultPoll)
	c.LastLook = cmp.Or(c.LastLook, DefaultLastLook)
	c.LogEvery = cmp.Or(c.LogEvery, DefaultLogEvery)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(
		within("Ceiling", c.Ceiling, time.Millisecond, MaxCeiling),
		within("Lifetime", c.Lifetime, 0, maxLifetime),
		within("Poll", c.Poll, minPoll, maxPoll),
		within("LastLook", c.LastLook, time.Millisecond, maxLastLook),
		within("LogEvery", c.LogEvery, time.Second, MaxCeiling),
		c.outlives("Ceiling", c.Ceiling),
	)
}

// outlives refuses a wait that is longer than its answer would lie there.
func (c Config) outlives(setting string, ceiling time.Duration) error {
	if c.Lifetime > 0 && c.Lifetime < ceiling {
		return fmt.Errorf("mailbox: Lifetime (%s) is shorter than %s (%s): an answer could expire while it is waited for", c.Lifetime, setting, ceiling)
	}
	return nil
}

// until is the instant of a wait's ceiling.
func (c Config) until(o AwaitOpts, now time.Time) (time.Time, error) {
	switch {
	case !o.Until.IsZero() && o.Ceiling != 0:
		return time.Time{}, errors.New("mailbox: AwaitOpts has both Ceiling and Until: give one")
	case !o.Until.IsZero():
		left := max(o.Until.Sub(now), 0)
		// now has a monotonic reading, so a clock that is set moves nothing.
		return now.Add(left), errors.Join(within("the time until AwaitOpts.Until", left, 0, MaxCeiling), c.outlives("the time until AwaitOpts.Until", left))
	default:
		ceiling := cmp.Or(o.Ceiling, c.Ceiling)
		return now.Add(ceiling), errors.Join(within("AwaitOpts.Ceiling", ceiling, time.Millisecond, MaxCeiling), c.outlives("AwaitOpts.Ceiling", ceiling))
	}
}

func within(setting string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("mailbox: %s is %s: want %s to %s", setting, d, least, most)
	}
	return nil
}
