package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
)

// network carries requests to nodes without sockets, so that they can be made in
// a bubble of time.
type network struct {
	mu    sync.Mutex
	nodes map[string]*node // by the first word of their host
	order []sub            // all submissions, as they came
	open  int              // requests under way
	// forgets: nothing is kept of what it carries.
	forgets bool
}

// node does steps. What it was given and told is kept.
type node struct {
	name string
	net  *network
	// does answers a submission; nil accepts it.
	does func(ctx context.Context, s sub) reply
	// hears answers a recall; nil = 204.
	hears func(attempt string) reply

	told    []string // attempts that were called off
	headers []http.Header
}

// reply is a node's reply to a request. The zero reply is 202.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // nothing came back
}

// sub is a submission as the node gets it.
type sub struct {
	remote.Submission
	raw    string
	header http.Header
}

func (s sub) url() string { return fmt.Sprint(s.Answer["url"]) }
func (s sub) key() string { return fmt.Sprint(s.Answer["key"]) }

// doc is a document that answers the submission.
func (s sub) doc(says string) string {
	return fmt.Sprintf(`{"v":1,"job":%q,"step":%q,"attempt":%q,"node":%q,%s}`, s.Job, s.Step, s.Attempt, s.Node, says)
}

const (
	done     = `"status":"done","output":{"frames":240}`
	failed   = `"status":"error","error":{"reason":"gpu_oom","message":"CUDA out of memory"}`
	helps    = `"status":"error","error":{"reason":"gpu_oom","message":"CUDA out of memory","retryable":true}`
	useless  = `"status":"error","error":{"reason":"bad_input","message":"no video stream","retryable":false}`
	progress = `"status":"progress"`
)

func (n *network) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes[name] == nil {
		n.nodes[name] = &node{name: name, net: n}
	}
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	name, _, _ := strings.Cut(req.URL.Host, ".")
	n.mu.Lock()
	to := n.nodes[name]
	n.open++
	n.mu.Unlock()
	defer func() { n.mu.Lock(); n.open--; n.mu.Unlock() }()
	if to == nil {
		return nil, fmt.Errorf("no such host: %s", req.URL.Host)
	}
	a := to.handle(req)
	if a.err != nil {
		return nil, a.err
	}
	if a.status == 0 {
		a.status = http.StatusAccepted
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Request: req}, nil
}

func (to *node) handle(req *http.Request) reply {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	n := to.net
	if req.Method == http.MethodDelete {
		attempt := strings.TrimPrefix(req.URL.Path, "/run/")
		n.mu.Lock()
		to.told, to.headers = append(to.told, attempt), append(to.headers, req.Header)
		hears := to.hears
		n.mu.Unlock()
		if hears == nil {
			return reply{status: http.StatusNoContent}
		}
		return hears(attempt)
	}
	s := sub{raw: string(body), header: req.Header}
	if err := json.Unmarshal(body, &s.Submission); err != nil {
		return reply{status: http.StatusBadRequest, body: err.Error()}
	}
	n.mu.Lock()
	if !n.forgets {
		n.order = append(n.order, s)
	}
	does := to.does
	n.mu.Unlock()
	if does == nil {
		return reply{}
	}
	return does(req.Context(), s)
}

// find is the submission with a ticket.
func (n *network) find(ticket settle.ID) (sub, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.order, func(s sub) bool { return s.Attempt == ticket })
	if i < 0 {
		return sub{}, false
	}
	return n.order[i], true
}

// count is how many submissions there were.
func (n *network) count() int { return len(n.all(settle.ID{})) }

// underWay is how many requests are under way.
func (n *network) underWay() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

// all are the submissions of a job, as they came; of all jobs if it is zero.
func (n *network) all(job settle.ID) (list []sub) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.order {
		if job.IsZero() || s.Job == job {
			list = append(list, s)
		}
	}
	return list
}

// calledOff are the attempts of which the node was told that nobody waits.
func (r *rig) calledOff(node string) []string {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	return slices.Clone(r.net.nodes[node].told)
}

// every sets what all nodes do.
func (r *rig) every(does func(ctx context.Context, s sub) reply) {
	for _, n := range r.net.nodes {
		r.node(n.name, does)
	}
}

func (r *rig) node(name string, does func(ctx context.Context, s sub) reply) {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	r.net.nodes[name].does = does
}

// replies is a node that replies so to each submission, and never answers.
func replies(a reply) func(context.Context, sub) reply {
	return func(context.Context, sub) reply { return a }
}

// answers is a node that accepts, and answers a little after.
func (r *rig) answers(says string) func(context.Context, sub) reply {
	return func(_ context.Context, s sub) reply {
		time.AfterFunc(time.Millisecond, func() { r.answer(s, says) })
		return reply{}
	}
}

// answer posts a document, and returns the status.
func (r *rig) answer(s sub, says string) int { return r.post(s, s.doc(says)).Code }

// post posts bytes, signed.
func (r *rig) post(s sub, doc string) *httptest.ResponseRecorder {
	return r.send(http.MethodPost, s.url(), remote.Sign(s.key(), []byte(doc)), doc)
}

// send makes a request of the hub.
func (r *rig) send(method, url, signature, doc string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, url, bytes.NewReader([]byte(doc)))
	if signature != "" {
		req.Header.Set(remote.SignatureHeader, signature)
	}
	w := httptest.NewRecorder()
	r.hub.ServeHTTP(w, req)
	return w
}

// early is a node that answers before it replies.
func early(answer func(sub)) func(context.Context, sub) reply {
	return func(_ context.Context, s sub) reply { answer(s); return reply{} }
}
