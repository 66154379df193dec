package breaker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Config is how a breaker behaves. The zero Config is a good one: a zero field
// means its default. [New] brings a number that is out of bounds to the nearest
// bound; [Config.Validate] names it.
type Config struct {
	// Node names the node in errors, statuses and changes. A Set fills it in.
	Node string
	// Failures is how many failures in a row open the breaker. Only a success
	// ends a row, never time: calls may be as slow as they like. 0 = 5.
	Failures int
	// Probes is how many calls a half-open breaker has in flight. 0 = 1.
	Probes int
	// ProbeLease is how long a probe keeps its place when nobody settles it.
	// It is no timeout: the probe still decides if it is the first. 0 = 1 min.
	ProbeLease time.Duration
	// OpenMin and OpenMax bound how long the breaker stays open: a random time
	// between half and all of min(OpenMax, OpenMin doubled with every opening
	// in a row), at least OpenMin. A success ends the row. 0 = 5 s, 5 min.
	OpenMin, OpenMax time.Duration
	// OnChange, if any, is told of each opening and closing, by the goroutine
	// that brought it about, without a lock: it may call the breaker. Two
	// changes at once may arrive in either order; now.Generation tells.
	OnChange func(from State, now Status)
	// Now is the clock. Only differences count, and it is never called under a
	// lock. nil = time.Now.
	Now func() time.Time
	// Rand returns a number of [0, 1) for each failure, from which the open
	// time is made; safe for concurrent use. nil = rand.Float64.
	Rand func() float64
}

const (
	maxFailures = 1_000_000
	maxProbes   = 10_000
	maxSpan     = 24 * time.Hour
)

// setting is a number with bounds.
type setting interface {
	bring()       // replaces zero by the default, and keeps the bounds
	fault() error // says what bring would change, zero excepted
}

type number[T int | time.Duration] struct {
	name               string
	is                 *T
	usual, least, most T
}

func (n number[T]) bring() {
	if *n.is == 0 {
		*n.is = n.usual
	}
	*n.is = min(max(*n.is, n.least), n.most)
}

func (n number[T]) fault() error {
	if *n.is == 0 || n.least <= *n.is && *n.is <= n.most {
		return nil
	}
	return fmt.Errorf("breaker: %s is %v: want %v to %v, or 0 for %v", n.name, *n.is, n.least, n.most, n.usual)
}

// settings lists every number of c once. OpenMax comes after OpenMin, on which
// it depends.
func (c *Config) settings() []setting {
	return []setting{
		number[int]{"Failures", &c.Failures, 5, 1, maxFailures},
		number[int]{"Probes", &c.Probes, 1, 1, maxProbes},
		number[time.Duration]{"ProbeLease", &c.ProbeLease, time.Minute, time.Millisecond, maxSpan},
		number[time.Duration]{"OpenMin", &c.OpenMin, 5 * time.Second, time.Millisecond, maxSpan},
		number[time.Duration]{"OpenMax", &c.OpenMax, max(5*time.Minute, c.OpenMin), time.Millisecond, maxSpan},
	}
}

// Validate reports every number that is negative or out of bounds, joined.
func (c Config) Validate() error {
	faults := faults(c.settings())
	if c.OpenMax != 0 && c.OpenMax < c.OpenMin {
		faults = append(faults, fmt.Errorf("breaker: OpenMax is %v, less than OpenMin, %v", c.OpenMax, c.OpenMin))
	}
	return errors.Join(faults...)
}

func faults(list []setting) (faults []error) {
	for _, s := range list {
		faults = append(faults, s.fault())
	}
	return faults
}

// ready returns c with every number and function that a breaker needs.
func (c Config) ready() Config {
	for _, s := range c.settings() {
		s.bring()
	}
	c.OpenMax = max(c.OpenMax, c.OpenMin)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}
