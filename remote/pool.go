package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/mailbox"
)

// Node is a machine that does steps.
type Node struct {
	Name string // unique in its pool; shown to people, stored with attempts
	// URL is where steps are submitted, and below which they are called off:
	// "http://gpu-1:9000/run". Not needed where PoolConfig.Submit is set.
	URL string
	// Header is sent with each request to it, for its credentials.
	Header http.Header
}

// PoolConfig is a set of nodes that can do the same steps. A zero field means its
// default.
type PoolConfig struct {
	Nodes []Node // at least one
	// Submit hands a step to a node. nil = by the contract's HTTP request.
	Submit func(context.Context, Submission) error
	// Recall tells a node that nobody waits for an attempt any more. nil = by the
	// contract's DELETE, or nothing where Submit is set.
	Recall func(context.Context, Node, settle.Recall) error
	// SubmitTimeout is how long one submission, and one recall, may take.
	// 0 = 10 s.
	SubmitTimeout time.Duration
	// Judge reads answers. nil = contract v1.
	Judge mailbox.Judge
	// Breaker is what the breaker of each node is made from. Node and OnChange are
	// the pool's own.
	Breaker breaker.Config
	// Retries is how many submissions that repeat a failed step are let through
	// for each first one, when failures are many: so one outage does not spend the
	// attempts of every job within a minute. What is held back is put off,
	// uncharged. Ten, and one each second, pass anyhow. 0 = 0.2; at most 10.
	Retries float64
}

const defaultSubmitTimeout = 10 * time.Second

// Pool is a set of nodes with their breakers. Make it with [Hub.Pool].
type Pool struct {
	hub      *Hub
	name     string
	config   PoolConfig
	nodes    []Node
	breakers *breaker.Set
	retries  *ratio
	next     atomic.Uint64 // whose turn it is
}

// Pool makes a pool of the hub. Its name is stored with waits: processes that
// share a store know the same pools. The error names every fault of c.
func (h *Hub) Pool(name string, c PoolConfig) (*Pool, error) {
	if err := c.validate(name); err != nil {
		return nil, err
	}
	if c.SubmitTimeout == 0 {
		c.SubmitTimeout = defaultSubmitTimeout
	}
	if c.Retries == 0 {
		c.Retries = 0.2
	}
	p := &Pool{hub: h, name: name, config: c, nodes: slices.Clone(c.Nodes), retries: newRatio(c.Retries)}
	b := c.Breaker
	b.OnChange = p.changed
	p.breakers = breaker.NewSet(breaker.SetConfig{Breaker: b, Nodes: max(1000, len(c.Nodes))})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pools[name] != nil {
		return nil, fmt.Errorf("remote: pool %q is there already", name)
	}
	h.pools[name] = p
	return p, nil
}

func (c PoolConfig) validate(name string) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("remote: pool %q: "+format, append([]any{name}, args...)...))
	}
	if name == "" || redact.Name(name) != name {
		fault("its name is empty, too long or unprintable")
	}
	if len(c.Nodes) == 0 {
		fault("it has no nodes")
	}
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		if n.Name == "" || redact.Name(n.Name) != n.Name {
			fault("node %q: its name is empty, too long or unprintable", n.Name)
		}
		if seen[n.Name] {
			fault("node %q is there twice", n.Name)
		}
		seen[n.Name] = true
		if u, err := url.Parse(n.URL); c.Submit == nil && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			fault(`node %q: its URL is no address of the form "http://host:port/path"`, n.Name)
		}
	}
	if c.SubmitTimeout < 0 || c.SubmitTimeout > time.Hour {
		fault("SubmitTimeout is %s: want up to 1h, or 0 for 10s", c.SubmitTimeout)
	}
	if !(c.Retries >= 0 && c.Retries <= 10) {
		fault("Retries is %v: want up to 10, or 0 for 0.2", c.Retries)
	}
	if err := c.Breaker.Validate(); err != nil {
		fault("%w", err)
	}
	return errors.Join(faults...)
}

// Name is the pool's name.
func (p *Pool) Name() string { return p.name }

// Nodes is the state of each node's breaker in this process, in the order of the
// configuration. Asking takes nothing.
func (p *Pool) Nodes() []breaker.Status {
	known := map[string]breaker.Status{}
	for _, s := range p.breakers.Snapshot() {
		known[s.Node] = s
	}
	out := make([]breaker.Status, len(p.nodes))
	for i, n := range p.nodes {
		s, ok := known[n.Name]
		if !ok {
			s = breaker.Status{Node: n.Name, State: breaker.Closed}
		}
		out[i] = s
	}
	return out
}

func (p *Pool) node(name string) (Node, bool) {
	i := slices.IndexFunc(p.nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return Node{}, false
	}
	return p.nodes[i], true
}

// order lists the nodes as they are asked: in turn those that have not failed the
// job, then those that have, whose failure is longest ago first. A node that put
// the job off is asked after those that did not.
func (p *Pool) order(past []settle.Attempt) []string {
	last := map[string]int{} // attempt in which a node failed the job, or (below) put it off
	const failed = 1 << 30   // more than there can be attempts
	for _, a := range past {
		if a.Node == "" {
			continue
		}
		if a.Reason == settle.AttemptBusy {
			last[a.Node] = max(last[a.Node], a.N)
		} else {
			last[a.Node] = failed + a.N
		}
	}
	turn := int(p.next.Add(1) % uint64(len(p.nodes)))
	names := make([]string, len(p.nodes))
	for i := range names {
		names[i] = p.nodes[(turn+i)%len(p.nodes)].Name
	}
	slices.SortStableFunc(names, func(a, b string) int { return last[a] - last[b] })
	return names
}

// noNode puts a job off until the first breaker lets a probe pass.
func (p *Pool) noNode(refusal error) settle.Deferred {
	var open *breaker.OpenError
	wait := time.Second
	if errors.As(refusal, &open) {
		wait = max(open.Wait, wait)
	}
	var states []string
	for _, s := range p.Nodes() {
		states = append(states, fmt.Sprintf("%s %s", s.Node, s.State))
	}
	text := fmt.Sprintf("no node of pool %s can be called (%s); the first probe is in %s",
		p.name, strings.Join(states, ", "), wait.Round(time.Second))
	return settle.Deferred{Reason: settle.AttemptNoNode, After: wait + rand.N(wait/4+1), Error: text}
}

// observe tells the breaker of a node what came of a submission.
func (p *Pool) observe(w *settle.Wait, o breaker.Outcome) {
	p.breakers.Node(w.Node).Observe(breaker.Ticket(w.Breaker), o)
}

func (p *Pool) changed(from breaker.State, now breaker.Status) {
	p.hub.log.Warn("breaker", "pool", p.name, "node", now.Node, "from", from, "to", now.State, "failures", now.Failures, "next", now.Next)
	select {
	case p.hub.changed <- struct{}{}:
	default:
	}
}
