package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

// wire is a process with real sockets, in real time: for what only they can show.
type wire struct {
	*testing.T
	*settle.Client
	hub *remote.Hub
	url string // of the hub
	got chan sub
}

// soon waits in real time until something holds.
func soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// newWire starts it; node replies to submissions.
func newWire(t *testing.T, node http.HandlerFunc) *wire {
	t.Helper()
	w := &wire{T: t, got: make(chan sub, 100)}
	nodes := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s := sub{raw: string(b), header: r.Header}
		if json.Unmarshal(b, &s.Submission) == nil {
			w.got <- s
		}
		node(rw, r)
	}))
	t.Cleanup(nodes.Close)
	w.start(nodes.URL + "/run")
	return w
}

// start starts the process; its node is at url.
func (w *wire) start(url string) {
	t := w.T
	t.Helper()
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "settle.db"), sqlite.Config{Synchronous: sqlite.Normal, KeepFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	w.Client = settle.NewClient(st)
	answers := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.hub.ServeHTTP(rw, r) }))
	t.Cleanup(answers.Close)
	w.url = answers.URL
	quiet := slog.New(slog.DiscardHandler)
	if w.hub, err = remote.New(st, remote.Config{Callback: answers.URL + "/answers", Secrets: [][]byte{secret(7)}, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	pool, err := w.hub.Pool("gpu", remote.PoolConfig{Nodes: []remote.Node{{Name: "a", URL: url}}, SubmitTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	work := worker.New(st, worker.Config{Logger: quiet})
	remote.Handle(work, render, pool, remote.Step{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- work.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (w *wire) enqueue() settle.ID {
	w.Helper()
	id, err := render.Enqueue(w.Context(), w.Client, in{"x"})
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// reaches waits until the job is in a state.
func (w *wire) reaches(id settle.ID, state settle.State) (j settle.Job) {
	w.Helper()
	soon(w, "the job is "+string(state), func() bool {
		var err error
		if j, err = w.Get(w.Context(), id); err != nil {
			w.Fatal(err)
		}
		return j.State == state
	})
	return j
}

func TestAStepByRealSockets(t *testing.T) {
	t.Parallel()
	w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusAccepted) })
	id := w.enqueue()
	s := <-w.got
	w.reaches(id, settle.Awaiting)
	doc := []byte(s.doc(done))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url(), bytes.NewReader(doc))
	req.Header.Set(remote.SignatureHeader, remote.Sign(s.key(), doc))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	is(t, "HTTP status", resp.StatusCode, 200)
	is(t, "body", string(b), "{\"recorded\":\"applied\"}\n")
	got, err := render.Await(t.Context(), w.Client, id)
	is(t, "error", err, nil)
	is(t, "output", string(got), `{"frames":240}`)
}

// The body of an acceptance is not read for its meaning: that it is cut off, or never
// ends, changes nothing.
func TestAnAcceptanceWhoseBodyIsCut(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]func(net.Conn, http.ResponseWriter){
		"cut off": func(c net.Conn, _ http.ResponseWriter) {
			_, _ = io.WriteString(c, "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nqueued")
			_ = c.Close()
		},
		"never ending": func(c net.Conn, _ http.ResponseWriter) {
			_, _ = io.WriteString(c, "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nqueued")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
				c, _, err := rw.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { _ = c.Close() })
				rest(c, rw)
			})
			j := w.reaches(w.enqueue(), settle.Awaiting)
			is(t, "recorded attempts", len(j.Attempts), 0)
		})
	}
}

// A node whose port is closed has certainly not begun.
func TestAConnectionThatIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	w := &wire{T: t}
	w.start("http://" + l.Addr().String() + "/run?token=sesame")
	id := w.enqueue()
	var j settle.Job
	soon(t, "an attempt has ended", func() bool {
		j, err = w.Get(t.Context(), id)
		return err == nil && len(j.Attempts) > 0
	})
	a := attempt(t, j, 0)
	is(t, "reason", a.Reason, settle.AttemptSubmitFailed)
	is(t, "it counts against the step's budget", !a.Ticket.IsZero(), false)
	holds(t, "P12 the text: "+a.Error, contains(a.Error, "refused") && !contains(a.Error, "sesame"))
}

// An answer that does not arrive whole is not looked at.
func TestAnAnswerThatIsCutOff(t *testing.T) {
	w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusAccepted) })
	id := w.enqueue()
	s := <-w.got
	w.reaches(id, settle.Awaiting)
	doc := s.doc(done)
	c, err := net.Dial("tcp", w.url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s", s.url()[len(w.url):], remote.SignatureHeader, remote.Sign(s.key(), []byte(doc)), len(doc)+10, doc)
	_ = c.(*net.TCPConn).CloseWrite()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	is(t, "HTTP status", resp.StatusCode, 400)
	is(t, "documents that were looked at", len(w.hub.Stats().Fates), 0)
	w.reaches(id, settle.Awaiting)
}

// A submission is sent once, also where a connection that was kept has died.
func TestASubmissionIsSentOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	times := map[string]int{}
	w := newWire(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		mu.Lock()
		times[r.Header.Get("Idempotency-Key")]++
		n := len(times)
		mu.Unlock()
		if n%2 == 0 { // without a reply, on a connection that was kept
			c, _, _ := rw.(http.Hijacker).Hijack()
			_ = c.Close()
			return
		}
		rw.WriteHeader(http.StatusAccepted)
	})
	w.reaches(w.enqueue(), settle.Awaiting)
	w.reaches(w.enqueue(), settle.Awaiting) // tried again
	mu.Lock()
	defer mu.Unlock()
	is(t, "submissions", len(times), 3)
	for key, n := range times {
		is(t, "times that "+key+" was sent", n, 1)
	}
}

// A node that sends far too much hears of it, though it writes all before it reads.
func TestAnAnswerThatIsFarTooLarge(t *testing.T) {
	t.Parallel()
	w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusAccepted) })
	id := w.enqueue()
	s := <-w.got
	w.reaches(id, settle.Awaiting)
	c, err := net.Dial("tcp", w.url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const size = 8 << 20
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", s.url()[len(w.url):], size)
	chunk := bytes.Repeat([]byte{'x'}, size/64)
	for range 64 {
		if _, err := c.Write(chunk); err != nil {
			t.Fatalf("the answer cannot be written: %v", err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	is(t, "HTTP status", resp.StatusCode, 422)
}
