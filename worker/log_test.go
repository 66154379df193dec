package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settle-go/settle"
)

// countingHandler counts log lines by message.
type countingHandler struct {
	mu   sync.Mutex
	seen map[string]int
	more int64
}

func newLogger(h slog.Handler) *slog.Logger { return slog.New(h) }

func (h *countingHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *countingHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *countingHandler) WithGroup(string) slog.Handler            { return h }
func (h *countingHandler) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[string]int{}
	}
	h.seen[r.Message]++
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "more" {
			h.more += a.Value.Int64()
		}
		return true
	})
	return nil
}

func (h *countingHandler) n(msg string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[msg]
}

func TestAStormOfFailuresIsSummarised(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		logs := &countingHandler{}
		w := New(f, Config{Logger: newLogger(logs)})
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return settle.RetryAfter(time.Hour, errors.New("no")) })
		for range 1000 {
			f.put(t, "k")
		}
		stop := start(t, w)
		nap(20 * time.Second)
		f.put(t, "k")
		nap(time.Second)
		if n := logs.n("attempt failed"); n != burstLines+1 || logs.more != 1000-burstLines {
			t.Errorf("%d lines, %d summarised", n, logs.more)
		}
		stop()
	})
}

// badText is an error whose methods misbehave.
type badText struct{ text string }

func (b *badText) Error() string { return b.text }
func (b *badText) Unwrap() error { panic("no") }

func TestB053EveryErrorTextIsStoredTheFirstTime(t *testing.T) {
	var typedNil *badText
	cases := map[string]error{
		"latin-1 bytes":      errors.New("\xe8re"),
		"cut character":      errors.New(strings.Repeat("a", 2047) + "\U0001F600"),
		"10 MB":              errors.New(strings.Repeat("A", 10<<20)),
		"empty":              errors.New(""),
		"spaces":             errors.New("   "),
		"Unwrap panics":      &badText{"x"},
		"typed nil":          typedNil,
		"terminal typed nil": settle.Terminal(typedNil),
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{Limit: 1}))
				raw(w, "k", func(context.Context, *Job[[]byte]) error { return answer })
				id := f.put(t, "k", pol(settle.Policy{BackoffMin: time.Hour, BackoffMax: time.Hour}))
				if err := w.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := settle.Pending
				if strings.HasPrefix(name, "terminal") {
					want = settle.Dead
				}
				j := wantState(t, f, id, want, 1)
				if len(j.Attempts) != 1 {
					t.Fatalf("attempts %+v", j.Attempts)
				}
				text := j.Attempts[0].Error
				if text == "" || len(text) > 2048 || !utf8.ValidString(text) {
					t.Errorf("stored text of %d bytes, valid %t", len(text), utf8.ValidString(text))
				}
			})
		})
	}
}
