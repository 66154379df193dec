package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/worker"
)

// Config says how answers come back. Callback or Inbox must be set; with both, a
// node may use either.
type Config struct {
	// Callback is the address under which nodes reach the Hub as an http.Handler,
	// with the path at which it is mounted: "https://jobs.example/answers".
	// "" = no callbacks.
	Callback string
	// Secrets sign the addresses and keys that nodes are given, at least 32 bytes
	// each, the same in all processes. The first signs; all are accepted, so that
	// a new one can be put in front while answers to the old one are on their way.
	Secrets [][]byte
	// Inbox is another way of answers, such as Redis. nil = none.
	Inbox Inbox
	// Client submits to nodes. Whatever it does elsewhere, redirects are not
	// followed here: a login page accepts no step. nil = the usual one.
	Client *http.Client
	// Logger is told of breakers and of answers that cannot be read. nil = none.
	Logger *slog.Logger
}

const minSecret = 32

func (c Config) validate() error {
	var faults []error
	if c.Callback == "" && c.Inbox == nil {
		faults = append(faults, errors.New("remote: no way for answers: set Callback or Inbox"))
	}
	if c.Callback != "" {
		if u, err := url.Parse(c.Callback); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
			faults = append(faults, errors.New(`remote: Callback is no address of the form "https://host/path"`))
		}
		if len(c.Secrets) == 0 {
			faults = append(faults, errors.New("remote: Callback needs Secrets: make one with `openssl rand -hex 32`"))
		}
	}
	for i, s := range c.Secrets {
		if len(s) < minSecret {
			faults = append(faults, fmt.Errorf("remote: secret %d has %d bytes: want at least %d", i+1, len(s), minSecret))
		}
	}
	return errors.Join(faults...)
}

// Hub is where submissions go out and answers come in, for any number of pools
// and workers of a process. As an http.Handler it takes the answers of nodes.
type Hub struct {
	store  settle.Store
	config Config
	seals  []seal
	client http.Client
	log    *slog.Logger
	stats  stats

	mu       sync.Mutex
	pools    map[string]*Pool
	attached map[*worker.Worker]bool
	teller   *worker.Worker // whose listeners hear of what answers do
	reading  bool           // the inbox, in this process
	changed  chan struct{}
	looked   time.Time // when a last look failed
}

// New returns a hub on the store. It starts nothing and connects to nothing. The
// error names every fault of c.
func New(s settle.Store, c Config) (*Hub, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	h := &Hub{store: s, config: c, log: c.Logger,
		pools: map[string]*Pool{}, attached: map[*worker.Worker]bool{}, changed: make(chan struct{}, 1)}
	h.config.Callback = strings.TrimRight(c.Callback, "/")
	for _, secret := range c.Secrets {
		h.seals = append(h.seals, seal(slices.Clone(secret)))
	}
	if c.Client != nil {
		h.client = *c.Client
	}
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if h.log == nil {
		h.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return h, nil
}

// Attach makes a worker serve the hub: it reads the inbox, tells nodes that nobody
// waits for them any more, reports the state of nodes to the store, and looks once
// more before it ends a wait. [Handle] does it by itself; a program that uses
// [Call] alone must do it before the worker runs. Twice does nothing.
func (h *Hub) Attach(w *worker.Worker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attached[w] {
		return
	}
	h.attached[w] = true
	if h.teller == nil {
		h.teller = w
	}
	worker.HandleRaw(w, settle.RecallKind, h.recall)
	w.Listen(worker.Events{Settled: h.silence})
	w.Beside(func(ctx context.Context) { h.report(ctx, w.ID()) })
	if h.config.Inbox != nil {
		w.LastLook(h.lastLook)
		w.Beside(h.read)
	}
}

// read reads the inbox. Of several workers of a process one does.
func (h *Hub) read(ctx context.Context) {
	for ctx.Err() == nil {
		if h.take() {
			err := h.config.Inbox.Run(ctx, h.Deliver)
			h.give()
			if err != nil {
				h.log.Error("the inbox cannot be read", "error", redact.Error(err))
			}
		}
		pause(ctx, time.Second)
	}
}

func (h *Hub) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	free := !h.reading
	h.reading = true
	return free
}

func (h *Hub) give() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
}

func (h *Hub) pool(name string) *Pool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pools[name]
}

// tellOf tells listeners of what an answer did.
func (h *Hub) tellOf(j *settle.Job, t settle.Transition) {
	h.mu.Lock()
	w := h.teller
	h.mu.Unlock()
	if w != nil {
		w.Tell(worker.Settled{Job: j.ID, Kind: j.Kind, Queue: j.Queue, Tenant: j.Tenant, Attempt: j.Attempt,
			Transition: t, Applied: settle.Done, By: worker.ByAnswer})
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Inbox is a way of answers that lies outside of the store. Its methods may be
// called from any number of goroutines.
type Inbox interface {
	// Address is told to the node, as JSON, under answer.<Name()>.
	Address(job, attempt settle.ID) any
	// Name is how a submission names this way, such as "redis".
	Name() string
	// Run reads until ctx ends, gives what it has read to deliver, and removes
	// exactly that for which deliver answers true.
	Run(ctx context.Context, deliver Deliver) error
	// LastLook returns when every answer that lay in the inbox when it was called
	// has been given to deliver.
	LastLook(ctx context.Context) error
	// Readable reports whether the inbox could be read throughout the last d.
	Readable(d time.Duration) bool
	// Describe says in one line of safe text how it is.
	Describe() string
}

// Deliver does what has to be done for what came. It answers for each whether it
// may be removed. An error says that nothing is known of any of them.
type Deliver func(ctx context.Context, in []Incoming) (done []bool, err error)

// Incoming is one document that came for a submission.
type Incoming struct {
	Job, Attempt settle.ID // whom it claims to answer
	Doc          []byte
	// Poisoned: whoever looked at it before died. It is booked, not looked at.
	Poisoned bool
	unsigned bool // a callback without a valid signature
}
