package xwork

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/verdict"
)

// HTTP is a target that posts the input to an address; the body of a success is
// the output. The answer is judged by [verdict.HTTP]. Redirects are not
// followed: they would send the input to an address that nobody chose.
type HTTP struct {
	URL    string
	Client *http.Client // from NewClient
	Agent  string       // User-Agent
}

// Limits of one request beside the attempt's own timeout.
const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	idleTimeout   = 90 * time.Second
	maxHeaderSize = 64 << 10
)

// NewClient returns a client for HTTP targets with up to conns connections
// kept to each host. proxy chooses a proxy; nil = none.
func NewClient(conns int, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:    tlsTimeout,
			IdleConnTimeout:        idleTimeout,
			MaxIdleConns:           conns,
			MaxIdleConnsPerHost:    conns,
			MaxResponseHeaderBytes: maxHeaderSize,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CheckURL refuses what cannot be the address of a target.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want a URL that begins with http:// or https://")
	case u.Hostname() == "":
		return errors.New("the URL names no host")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %q: want 1 to 65535", port)
		}
	}
	return nil
}

// Do posts one attempt.
func (t *HTTP) Do(ctx context.Context, r Request) (settle.Outcome, error) {
	a := t.post(ctx, r)
	j := verdict.HTTP(a)
	switch v := j.Verdict.Job(); {
	case a.Err != nil && ctx.Err() != nil: // we hung up
		return settle.Outcome{Verdict: v}, nil
	case v != settle.VerdictOK:
		return settle.Outcome{Verdict: v, Reason: j.Reason, Error: j.Text, After: later(j.RetryAfter)}, nil
	case len(a.Body) > settle.MaxPayload:
		return tooLarge("the answer"), nil
	default:
		return settle.Outcome{Verdict: v, Output: a.Body}, nil
	}
}

// later adds up to a tenth to what the far end asks for, so that those who were
// refused together do not come back together; never less than was asked.
func later(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(d)/10)
}

// post sends the request and reads the answer, one byte beyond the limit.
func (t *HTTP) post(ctx context.Context, r Request) verdict.HTTPAnswer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(r.Input))
	if err != nil {
		return verdict.HTTPAnswer{Err: err}
	}
	req.Header.Set("Content-Type", contentType(r.Input))
	req.Header.Set("User-Agent", t.Agent)
	req.Header.Set("Settle-Job", r.Job.String())
	req.Header.Set("Settle-Attempt", strconv.Itoa(r.Attempt))
	req.Header.Set("Idempotency-Key", r.Job.String()) // the same in every attempt: the input never changes
	resp, err := t.Client.Do(req)
	if err != nil {
		return verdict.HTTPAnswer{Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, settle.MaxPayload+1))
	if err != nil && resp.StatusCode < 300 { // half a success is none; half a failure is one
		return verdict.HTTPAnswer{Err: fmt.Errorf("the answer broke off: %w", err)}
	}
	return verdict.HTTPAnswer{Status: resp.StatusCode, Header: resp.Header, Body: body, Received: time.Now()}
}

func contentType(input []byte) string {
	if json.Valid(input) {
		return "application/json"
	}
	return "application/octet-stream"
}
