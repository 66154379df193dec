package xwork

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// serve starts a far end and returns a target for it.
func serve(t *testing.T, h http.HandlerFunc) *HTTP {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return &HTTP{URL: srv.URL + "/hook?token=hunter2", Client: NewClient(4, nil), Agent: "settle/test"}
}

func TestAPostCarriesTheInputAndTheBodyIsTheOutput(t *testing.T) {
	var got http.Header
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		b, _ := io.ReadAll(r.Body)
		w.Write(append([]byte(r.Method+" "), b...))
	})
	r := Request{Job: settle.DeriveID([]byte("x")), Attempt: 2, Input: []byte(`{"a":1}`)}
	o := do(t.Context(), target, r)
	if o.Verdict != settle.VerdictOK || string(o.Output) != `POST {"a":1}` {
		t.Errorf("%+v", o)
	}
	for name, want := range map[string]string{"Settle-Job": r.Job.String(), "Settle-Attempt": "2",
		"Idempotency-Key": r.Job.String(), "Content-Type": "application/json", "User-Agent": "settle/test"} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	r.Input = []byte("\xff")
	do(t.Context(), target, r)
	if got.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("bytes are sent as %q", got.Get("Content-Type"))
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	calls := 0
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	if o := do(t.Context(), target, Request{}); o.Verdict != settle.VerdictTerminal || o.Reason != settle.AttemptRefused || calls != 1 {
		t.Errorf("%d calls, %+v", calls, o)
	}
}

func TestB031ABusyFarEndSetsThePace(t *testing.T) {
	for value, want := range map[string]time.Duration{"10": 10 * time.Second, "0": 0, "-5": 0, "soon": 0, "99999999999999999999": time.Hour} {
		target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			http.Error(w, "later", http.StatusTooManyRequests)
		})
		o := do(t.Context(), target, Request{})
		if o.Verdict != settle.VerdictRetry || o.After < want || o.After > want+want/10 {
			t.Errorf("Retry-After %s: after %s, want %s to a tenth more", value, o.After, want)
		}
		if o.Error != "HTTP 429 Too Many Requests: later" {
			t.Errorf("error %q", o.Error)
		}
	}
}

func TestAnAnswerBeyondTheLimitIsTerminal(t *testing.T) {
	size := settle.MaxPayload
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.CopyN(w, zeros{}, int64(size)) })
	if o := do(t.Context(), target, Request{}); o.Verdict != settle.VerdictOK || len(o.Output) != size {
		t.Errorf("at the limit: %s, %d bytes", o.Verdict, len(o.Output))
	}
	size++
	if o := do(t.Context(), target, Request{}); o.Verdict != settle.VerdictTerminal || o.Reason != settle.AttemptOutput {
		t.Errorf("beyond it: %+v", o.Reason)
	}
}

// do runs an attempt that this machine can begin.
func do(ctx context.Context, t Target, r Request) settle.Outcome {
	o, err := t.Do(ctx, r)
	if err != nil {
		panic(err)
	}
	return o
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestAnAnswerThatBreaksOffIsTriedAgain(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "half of it")
	})
	if o := do(t.Context(), target, Request{}); o.Verdict != settle.VerdictRetry || !strings.Contains(o.Error, "broke off") {
		t.Errorf("%+v", o)
	}
}

func TestB056ANetworkErrorShowsNoSecretOfTheAddress(t *testing.T) {
	target := &HTTP{URL: "http://user:hunter2@127.0.0.1:1/hook?token=hunter2", Client: NewClient(1, nil)}
	o := do(t.Context(), target, Request{})
	if o.Verdict != settle.VerdictRetry || strings.Contains(o.Error, "hunter2") || !strings.Contains(o.Error, "127.0.0.1") {
		t.Errorf("%+v", o)
	}
}

func TestTheEndOfTheContextHangsUp(t *testing.T) {
	begun := make(chan struct{})
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-begun; cancel(errors.New("timed out")) }()
	if o := do(ctx, target, Request{}); o.Verdict != settle.VerdictRetry || o.Error != "" {
		t.Errorf("%+v", o)
	}
}

func TestCheckURLRefusesWhatCannotBeATarget(t *testing.T) {
	for _, s := range []string{"", "host/path", "ftp://host/", "http://", "http://:80/", "http://host:99999/", "http://host:/", "http://ho st/", "://x"} {
		if CheckURL(s) == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	for _, s := range []string{"http://host", "https://host:8443/a?b=c", "http://[::1]:80/"} {
		if err := CheckURL(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}
