package breaker

import (
	"errors"
	"fmt"
	"time"
)

// State is what a breaker does with the next call.
type State string

// The states. There is no other.
const (
	Closed   State = "closed"    // lets every call pass
	Open     State = "open"      // refuses every call
	HalfOpen State = "half-open" // lets a few calls pass, as probes
)

// Outcome is what a call said about the node. Anything that is not on this
// list, "" included, is read as Neutral.
type Outcome string

// The outcomes. The package comment says what belongs to which.
const (
	Neutral  Outcome = "neutral"  // nothing was learned
	Success  Outcome = "success"  // the node did what it was asked
	Answered Outcome = "answered" // the node spoke, in good form: it is healthy
	Failure  Outcome = "failure"  // the node is ill
)

// Ticket names one breaker and the generation in which a call began. It may be
// stored and come back in another process. It is at most 40 ASCII letters,
// digits and a dot; "" and any other text are tickets of somebody else.
type Ticket string

// Status is a breaker as it is shown.
type Status struct {
	Node  string `json:"node,omitempty"` // Config.Node, or the name in a Set
	State State  `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Next is when a call can be admitted at the latest; zero = now.
	Next time.Time `json:"next,omitzero"`
	// Failures are those in a row while closed.
	Failures int `json:"failures"`
	// Openings are those in a row, without a success between them. They decide
	// how long the next one lasts.
	Openings int `json:"openings"`
	// Probes are in flight, and their leases have not ended.
	Probes int `json:"probes"`
	// Generation is 1 at first and grows by one with each opening and closing.
	Generation uint64 `json:"generation"`
}

var (
	// ErrOpen is what every refusal is: errors.Is(err, ErrOpen). The refusal of
	// one breaker is an [OpenError].
	ErrOpen = errors.New("the breaker is open")
	// ErrNoNodes: AdmitFirst was given no node to choose from.
	ErrNoNodes = errors.New("no nodes to choose from")
)

// OpenError is a refusal: the breaker is open, or half-open with as many probes
// in flight as it may have. The call was not made, and nothing was changed.
type OpenError struct {
	Node  string // Config.Node, or the name in a Set
	State State  // Open or HalfOpen
	// Next is when a call can be admitted at the latest, by Config.Now; others
	// may be faster then. Wait is how long that was away at the refusal.
	Next time.Time
	Wait time.Duration
}

func (e *OpenError) Error() string {
	name := "the breaker"
	if e.Node != "" {
		name = fmt.Sprintf("the breaker of node %q", e.Node)
	}
	return fmt.Sprintf("%s is %s, next probe in %s", name, e.State, e.Wait.Round(time.Millisecond))
}

// Unwrap makes the refusal an [ErrOpen].
func (e *OpenError) Unwrap() error { return ErrOpen }
