package breaker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// SetConfig is how a [Set] behaves. A zero field means its default; [NewSet]
// brings numbers that are out of bounds to the nearest bound.
type SetConfig struct {
	// Breaker is what the breaker of each node is made from.
	Breaker Config
	// Nodes is how many nodes are remembered at most. One more takes the place
	// of the one that was asked for longest ago, a closed one if there is any.
	// 0 = 1000.
	Nodes int
	// Idle is how long a node is remembered that nobody asks for; at least
	// Breaker.OpenMax. 0 = 24 h.
	Idle time.Duration
}

const (
	maxNodes = 100_000
	maxIdle  = 30 * 24 * time.Hour
)

func (c *SetConfig) settings() []setting {
	return []setting{
		number[int]{"Nodes", &c.Nodes, 1000, 1, maxNodes},
		number[time.Duration]{"Idle", &c.Idle, 24 * time.Hour, time.Millisecond, maxIdle},
	}
}

// Validate reports every number that is negative or out of bounds, joined.
func (c SetConfig) Validate() error {
	faults := append(faults(c.settings()), c.Breaker.Validate())
	if most := c.Breaker.ready().OpenMax; c.Idle != 0 && c.Idle < most {
		faults = append(faults, fmt.Errorf("breaker: Idle is %v: open nodes would be forgotten, want at least OpenMax, %v", c.Idle, most))
	}
	return errors.Join(faults...)
}

// Set holds the breakers of many nodes by name. It is safe for concurrent use,
// starts no goroutine and needs no closing. Make one by [NewSet].
type Set struct {
	config SetConfig // ready

	mu    sync.Mutex
	nodes map[string]*member
}

type member struct {
	*Breaker
	asked time.Time // when somebody asked for it last
}

// NewSet returns a set that knows no node yet.
func NewSet(c SetConfig) *Set {
	c.Breaker = c.Breaker.ready()
	for _, s := range c.settings() {
		s.bring()
	}
	c.Idle = max(c.Idle, c.Breaker.OpenMax)
	return &Set{config: c, nodes: map[string]*member{}}
}

// Node returns the breaker of a node, a new, closed one if the set does not
// remember it. Ask for it at each use: one that has been kept may have been
// forgotten meanwhile, and no longer shares what others learn.
func (s *Set) Node(name string) *Breaker {
	now := s.config.Breaker.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.nodes[name]; m != nil && !s.idle(m, now) {
		m.asked = now
		return m.Breaker
	}
	s.makeRoom(now)
	c := s.config.Breaker
	c.Node = name
	m := &member{Breaker: newBreaker(c, now), asked: now}
	s.nodes[name] = m
	return m.Breaker
}

// AdmitFirst asks the nodes in order, which is the caller's preference, and
// returns the token of the first that admits; its Node says which. If all
// refuse, the error is the [OpenError] of the one that can be probed first,
// wrapped. Of no nodes at all it is [ErrNoNodes].
func (s *Set) AdmitFirst(names ...string) (*Token, error) {
	var first *OpenError
	for _, name := range names {
		t, err := s.Node(name).Admit()
		if err == nil {
			return t, nil
		}
		var refusal *OpenError
		if errors.As(err, &refusal) && (first == nil || refusal.Next.Before(first.Next)) {
			first = refusal
		}
	}
	if first == nil {
		return nil, ErrNoNodes
	}
	return nil, fmt.Errorf("none of %d nodes can be called: %w", len(names), first)
}

// Snapshot returns what the set remembers, ordered by name, for display.
// Asking takes nothing, and keeps no node from being forgotten.
func (s *Set) Snapshot() []Status {
	now := s.config.Breaker.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, 0, len(s.nodes))
	for _, m := range s.nodes {
		if !s.idle(m, now) {
			list = append(list, m.statusAt(now))
		}
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Node, b.Node) })
	return list
}

func (s *Set) idle(m *member, now time.Time) bool { return now.Sub(m.asked) >= s.config.Idle }

// makeRoom makes room for one more: it forgets who is idle, and another if that
// is not enough.
func (s *Set) makeRoom(now time.Time) {
	if len(s.nodes) < s.config.Nodes {
		return
	}
	var victim *member
	var closed bool
	for name, m := range s.nodes {
		if s.idle(m, now) {
			delete(s.nodes, name)
			continue
		}
		c := m.statusAt(now).State == Closed
		if victim == nil || c && !closed || c == closed && m.asked.Before(victim.asked) {
			victim, closed = m, c
		}
	}
	if len(s.nodes) == s.config.Nodes {
		delete(s.nodes, victim.config.Node)
	}
}
