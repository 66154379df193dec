package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/verdict"
)

// Submission is what a node is given: docs/contract.md, docs/submission.schema.json.
type Submission struct {
	V       int       `json:"v"`
	Job     settle.ID `json:"job"`
	Step    string    `json:"step"`
	Attempt settle.ID `json:"attempt"` // the ticket
	Node    string    `json:"node"`
	// DeadlineMS is in how many milliseconds nobody waits for the answer any more.
	DeadlineMS int64 `json:"deadline_ms"`
	// SilenceMS is the longest pause between progress notes; 0 = none is asked for.
	SilenceMS int64           `json:"silence_ms,omitempty"`
	Answer    map[string]any  `json:"answer"` // the ways to answer; any of them counts
	Input     json.RawMessage `json:"input"`
	To        Node            `json:"-"`
}

// answerTo lists the ways to answer a submission.
func (h *Hub) answerTo(job, attempt settle.ID) map[string]any {
	ways := map[string]any{}
	if h.config.Callback != "" {
		s := h.seals[0]
		ways["url"] = fmt.Sprintf("%s/v1/%s/%s/%s", h.config.Callback, job, attempt, s.token(job, attempt))
		ways["key"] = s.key(job, attempt)
	}
	if in := h.config.Inbox; in != nil {
		ways[in.Name()] = in.Address(job, attempt)
	}
	return ways
}

type busyError struct {
	after time.Duration
	err   error
}

func (e *busyError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return "the node is busy"
}
func (e *busyError) Unwrap() error { return e.err }

// Busy is what a submit function returns when the node has no room for the step
// now: the job is put off for d, at least a second, uncharged; for longer after
// many times in a row. The breaker takes it as the answer of a healthy node.
func Busy(d time.Duration) error { return &busyError{after: d} }

type unbegunError struct{ err error }

func (e *unbegunError) Error() string { return e.err.Error() }
func (e *unbegunError) Unwrap() error { return e.err }

// NotBegun marks the error of a submit function as one after which the node has
// certainly not begun: the attempt is charged to the job and not to the step's
// budget. Any other error leaves that open. An error that [settle.Terminal] made
// says that the node refuses this input for good.
func NotBegun(err error) error { return &unbegunError{err} }

// refusals are the replies of a node that will never take this input.
var refusals = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}

// defaultBusy is how long a busy node is left alone that does not say.
const defaultBusy = 5 * time.Second

// post submits by HTTP, as the contract says.
func (p *Pool) post(ctx context.Context, s Submission) error {
	body, err := encode(s)
	if err != nil {
		return settle.Terminal(fmt.Errorf("the submission cannot be encoded: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.To.URL, bytes.NewReader(body))
	if err != nil {
		return NotBegun(err)
	}
	header(req, s.To)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", s.Attempt.String())
	req.GetBody = nil // never sent twice behind our back
	a := p.do(req)
	j := verdict.HTTP(a)
	fault := errors.New(j.Text)
	var refused *net.OpError
	switch {
	case errors.As(a.Err, &refused) && refused.Op == "dial":
		return NotBegun(a.Err)
	case a.Err != nil:
		return a.Err
	case j.Verdict == verdict.HTTPOK:
		return nil
	case a.Status == http.StatusTooManyRequests, a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
		return &busyError{cmp.Or(j.RetryAfter, defaultBusy), fault}
	case slices.Contains(refusals, a.Status):
		return settle.Terminal(fault)
	case j.Verdict == verdict.HTTPChannelRefused || j.Verdict == verdict.HTTPProxyRefused:
		return NotBegun(fault)
	default:
		return fault
	}
}

// maxReply is how much of a node's reply to a request is read, in bytes.
const maxReply = 64 << 10

// do makes one request to a node.
func (p *Pool) do(req *http.Request) (a verdict.HTTPAnswer) {
	resp, err := p.hub.client.Do(req)
	if err != nil {
		return verdict.HTTPAnswer{Err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxReply)) // a body that is cut off changes nothing: the status has said enough
	return verdict.HTTPAnswer{Status: resp.StatusCode, Header: resp.Header, Body: body, Received: time.Now()}
}

// encode writes JSON as it is: the usual escapes for web pages make six bytes of
// one, and a submission too large for its node.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func header(req *http.Request, n Node) {
	for name, values := range n.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
}
