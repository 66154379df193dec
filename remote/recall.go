package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/internal/verdict"
	"github.com/settle-go/settle/worker"
)

// recall is the handler of the jobs that tell a node that nobody waits for an
// attempt any more. A node that cannot be told is no dead letter: it learns by
// the answer to its own answer.
func (h *Hub) recall(ctx context.Context, j *worker.Job[[]byte]) ([]byte, error) {
	var r settle.Recall
	if err := json.Unmarshal(j.Input, &r); err != nil {
		return nil, settle.Terminal(fmt.Errorf("input is no recall: %w", err))
	}
	err := h.tell(ctx, r)
	if err != nil && j.Charged() < j.Tries {
		return nil, err
	}
	said := struct {
		Told bool   `json:"told"`
		Why  string `json:"why,omitempty"`
	}{Told: err == nil}
	if err != nil {
		said.Why = redact.Error(err)
	}
	return json.Marshal(said)
}

func (h *Hub) tell(ctx context.Context, r settle.Recall) error {
	p := h.pool(r.Pool)
	if p == nil {
		return fmt.Errorf("this process does not know pool %s", r.Pool)
	}
	n, ok := p.node(r.Node)
	if !ok {
		return fmt.Errorf("pool %s has no node %s any more", r.Pool, r.Node)
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.SubmitTimeout)
	defer cancel()
	if p.config.Recall != nil {
		return p.config.Recall(ctx, n, r)
	}
	return p.delete(ctx, n, r)
}

// deaf are the answers of a node that has no such attempt, or calls nothing off.
var deaf = []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusGone, http.StatusNotImplemented}

func (p *Pool) delete(ctx context.Context, n Node, r settle.Recall) error {
	at, err := url.JoinPath(n.URL, r.Attempt.String())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, at, nil)
	if err != nil {
		return err
	}
	header(req, n)
	a := p.do(req)
	switch {
	case a.Err != nil:
		return a.Err
	case a.Status >= 200 && a.Status < 300, slices.Contains(deaf, a.Status):
		return nil
	default:
		return fmt.Errorf("node %s: %s", n.Name, verdict.HTTP(a).Text)
	}
}
