package examples

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/mailbox"
)

const step = "count"

// patience is how long a node may take over anything.
const patience = time.Minute

// consumer is whom nodes answer by callback: it checks every signature, and
// judges every document.
type consumer struct {
	t      *testing.T
	server *httptest.Server

	mu    sync.Mutex
	asked map[string]*asked // by the path of their address
}

// asked is one submission, and what came back.
type asked struct {
	submission map[string]any
	ticket     mailbox.Ticket
	attempt    string
	key        string
	reply      replies
	answers    chan post // also progress

	mu    sync.Mutex
	final int // answers that are no progress
}

// post is one document that came, and when.
type post struct {
	doc     []byte
	answer  mailbox.Answer
	verdict error
	at      time.Time
}

// replies chooses the status of a reply; 0 = hang up. nth counts the answers
// that came so far, without progress.
type replies func(nth int, progress bool) int

// always replies so to answers, and records progress. in replies one after the
// other, the last one for ever.
func always(status int) replies { return in(status) }
func in(statuses ...int) replies {
	return func(nth int, progress bool) int {
		if progress {
			return 200
		}
		return statuses[min(nth, len(statuses)-1)]
	}
}

// toProgress replies so to progress, and records answers.
func toProgress(status int) replies {
	return func(_ int, progress bool) int {
		if progress {
			return status
		}
		return 200
	}
}

func newConsumer(t *testing.T) *consumer {
	c := &consumer{t: t, asked: map[string]*asked{}}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// ask makes a submission that is answered by callback.
func (c *consumer) ask(input any, r replies) *asked {
	job, attempt := settle.NewID().String(), settle.NewID().String()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	a := &asked{ticket: mailbox.Ticket{Job: job, Step: step, Attempt: attempt}, attempt: attempt,
		key: hex.EncodeToString(key), reply: r, answers: make(chan post, 1000)}
	path := fmt.Sprintf("/answers/v1/%s/%s/%s", job, attempt, rand.Text())
	a.submission = map[string]any{"v": 1, "job": job, "step": step, "attempt": attempt, "node": "gpu-3", "deadline_ms": 600_000,
		"answer": map[string]any{"url": c.server.URL + path, "key": a.key}, "input": input}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[path] = a
	return a
}

// set changes the submission.
func (a *asked) set(field string, value any) *asked {
	a.submission[field] = value
	return a
}

func (a *asked) body() []byte {
	b, err := json.Marshal(a.submission)
	if err != nil {
		panic(err)
	}
	return b
}

func (c *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	a := c.asked[r.URL.Path]
	c.mu.Unlock()
	if a == nil {
		c.t.Errorf("%s %s: nobody was asked to answer there", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	doc, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%s of %q: %v", r.Method, r.Header.Get("Content-Type"), err)
	}
	mac := hmac.New(sha256.New, []byte(a.key))
	mac.Write(doc)
	if got, want := r.Header.Get("Settle-Signature"), "v1="+hex.EncodeToString(mac.Sum(nil)); got != want {
		c.t.Errorf("the signature is %q, want %q", got, want)
	}
	status := a.take(c.t, doc)
	switch {
	case status == 0:
		panic(http.ErrAbortHandler)
	case status == 302:
		w.Header().Set("Location", "/elsewhere") // where nobody was asked to answer
	case status >= 400:
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(status)
}

// take judges a document, and says what is replied.
func (a *asked) take(t *testing.T, doc []byte) int {
	p := post{doc: doc, at: time.Now()}
	p.answer, p.verdict = mailbox.Judge(mailbox.ContractJudge).Look(a.ticket, doc, true)
	if err := answerSchema(t).Validate(decoded(t, doc)); err != nil {
		t.Errorf("%s: %v", doc, err)
	}
	progress := errors.Is(p.verdict, mailbox.ErrProgress)
	a.mu.Lock()
	defer a.mu.Unlock()
	status := a.reply(a.final, progress)
	if !progress {
		a.final++
	}
	a.answers <- p
	return status
}

// came is how many answers came, without progress.
func (a *asked) came() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.final
}

// next waits for the next document.
func (a *asked) next(t *testing.T) post {
	t.Helper()
	select {
	case p := <-a.answers:
		return p
	case <-time.After(patience):
		t.Fatal("no answer came")
		return post{}
	}
}

// done wants the next document to be the answer to "a text".
func (a *asked) done(t *testing.T) post {
	t.Helper()
	p := a.next(t)
	p.isDone(t, text)
	return p
}

// text has words, lines, quotes, and letters outside of ASCII.
const text = " zwölf \"words\" \\ of\n🎬 مرحبا\tand 'more' $(x) `y` %s &lt; "

func (p post) isDone(t *testing.T, text string) {
	t.Helper()
	if p.verdict != nil {
		t.Fatalf("the verdict is %v: %s", p.verdict, p.doc)
	}
	isCounted(t, p.answer.Output, text)
}

// isCounted wants an output to be what the toy makes of a text.
func isCounted(t *testing.T, output []byte, text string) {
	t.Helper()
	var out struct {
		Words  int
		SHA256 string
	}
	if err := json.Unmarshal(output, &out); err != nil {
		t.Fatalf("the output: %v: %s", err, output)
	}
	if sum := sha256.Sum256([]byte(text)); out.Words != len(strings.Fields(text)) || out.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the output is %s", output)
	}
}

func (p post) same(t *testing.T, other post) {
	t.Helper()
	if !bytes.Equal(p.doc, other.doc) {
		t.Errorf("first it was %s, then %s", p.doc, other.doc)
	}
}
