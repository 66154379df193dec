package remote_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/settle-go/settle"
)

// attempt is the nth recorded attempt of a job.
func attempt(t testing.TB, j settle.Job, n int) settle.Attempt {
	t.Helper()
	if n >= len(j.Attempts) {
		t.Fatalf("the job has %d recorded attempts, want more than %d: %+v", len(j.Attempts), n, j.Attempts)
	}
	return j.Attempts[n]
}

// ended checks how a job ended.
func (r *rig) ended(what string, j settle.Job, state settle.State, why settle.EndReason) {
	r.Helper()
	if j.State != state || j.Reason != why {
		r.Errorf("%s: the job is %s (%s), want %s (%s): %+v", what, j.State, j.Reason, state, why, j.Attempts)
	}
}

func is[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func holds(t testing.TB, what string, ok bool) {
	t.Helper()
	if !ok {
		t.Error(what)
	}
}

// logs keeps what is logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func contains(text, part string) bool { return strings.Contains(text, part) }
