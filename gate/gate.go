package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// State is what the gate does with new work. There is no other.
type State string

// The states.
const (
	Open    State = "open"    // lets it pass
	Shut    State = "shut"    // refuses it
	Unknown State = "unknown" // nobody can tell; see Config.OpenUnknown
)

// Source says how old the oldest unreported event is; every store is one.
type Source interface {
	// Anchor reads the oldest gated job of a queue that is live, or has ended
	// without a verdict of the far end: of one tenant, or with all of everyone.
	Anchor(ctx context.Context, queue, tenant string, all bool) (settle.Anchor, error)
}

// Config says when the gate is shut. A zero field means its default.
type Config struct {
	Queue string // the queue of the events; "" = "default"
	// MaxAge is the age above which the gate is shut. 0 = 72 h; at least 1 s.
	MaxAge time.Duration
	// Tenant names the party of a request: only its events count then. nil, or ""
	// for a request, means all events.
	Tenant func(*http.Request) string
	// OpenUnknown lets pass what would be refused because nobody can tell.
	OpenUnknown bool
	// Fresh is how long a reading is reused. 0 = 1 s; at most 1 s.
	Fresh time.Duration
}

const (
	defaultMaxAge = 72 * time.Hour
	minMaxAge     = time.Second
	maxFresh      = time.Second
	maxBelieved   = 10 * time.Second // age of a reading that still serves when the store does not answer
	askLimit      = 2 * time.Second  // of one question to the store
	maxTenants    = 10_000           // readings that are kept
)

// Gate answers for one queue. Its methods may be called from any goroutine.
type Gate struct {
	source Source
	config Config

	mu   sync.Mutex
	read map[string]*reading // by tenant; "" = all
}

// reading is what the store said, and when by this process's clock.
type reading struct {
	mu    sync.Mutex // held while the store is asked: others wait for its answer
	begun bool
	at    time.Time
	a     settle.Anchor
	err   error // of the latest question
}

// New returns a gate. It asks nobody: the first reading is made on demand. The
// error names every fault of c.
func New(s Source, c Config) (*Gate, error) {
	c.Queue = cmp.Or(c.Queue, settle.DefaultQueue)
	c.MaxAge = cmp.Or(c.MaxAge, defaultMaxAge)
	c.Fresh = cmp.Or(c.Fresh, maxFresh)
	var faults []error
	if c.MaxAge < minMaxAge {
		faults = append(faults, fmt.Errorf("gate: MaxAge is %s: want at least %s, or 0 for %s", c.MaxAge, minMaxAge, defaultMaxAge))
	}
	if c.Fresh < 0 || c.Fresh > maxFresh {
		faults = append(faults, fmt.Errorf("gate: Fresh is %s: want up to %s, or 0 for that", c.Fresh, maxFresh))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Gate{source: s, config: c, read: map[string]*reading{}}, nil
}

// Answer is what the gate says, and why.
type Answer struct {
	State  State
	Queue  string
	Tenant string        // "" = of all tenants
	Age    time.Duration // of the oldest unreported event; 0 = there is none, or nobody can tell
	Oldest settle.ID     // that event
	Of     string        // its tenant
	MaxAge time.Duration
	// Error is the last thing that went wrong with that event: safe text, "" = nothing.
	Error string
	// Fault is why nobody can tell: safe text; "" unless State is Unknown.
	Fault string
}

// Ask says how the gate stands for a tenant, "" = for all.
func (g *Gate) Ask(ctx context.Context, tenant string) Answer {
	r := g.readingOf(tenant)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun || time.Since(r.at) >= g.config.Fresh {
		g.look(ctx, tenant, r)
	}
	return g.answer(tenant, r)
}

func (g *Gate) look(ctx context.Context, tenant string, r *reading) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	asked := time.Now()
	a, err := g.source.Anchor(ctx, g.config.Queue, tenant, tenant == "")
	if r.err = err; err == nil {
		r.begun, r.at, r.a = true, asked, a
	}
}

// answer tells what a reading means now: its age grows with the clock.
func (g *Gate) answer(tenant string, r *reading) Answer {
	a := Answer{State: Open, Queue: g.config.Queue, Tenant: tenant, MaxAge: g.config.MaxAge}
	old := time.Since(r.at)
	if !r.begun || r.err != nil && old > maxBelieved {
		a.State, a.Fault = Unknown, "the store has not been read yet"
		if r.err != nil {
			a.Fault = "the store does not answer: " + redact.Error(r.err)
		}
		return a
	}
	if r.a.Job.IsZero() {
		return a
	}
	a.Age, a.Oldest, a.Of, a.Error = r.a.Age+old, r.a.Job, r.a.Tenant, r.a.Error
	if a.Age > g.config.MaxAge {
		a.State = Shut
	}
	return a
}

// readingOf finds the reading of a tenant. When there are too many they are
// forgotten: each is one seek.
func (g *Gate) readingOf(tenant string) *reading {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.read[tenant]
	if r == nil {
		if len(g.read) >= maxTenants {
			clear(g.read)
		}
		r = &reading{}
		g.read[tenant] = r
	}
	return r
}
