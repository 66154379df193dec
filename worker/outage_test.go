package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// A worker that is to end when idle never becomes idle on a store that fails:
// it ends all the same, and says why.
func TestUntilIdleGivesUpOnAStoreThatFails(t *testing.T) {
	refused := &settle.RefusedError{What: "settle.db", Why: "is damaged", Recover: "settle repair"}
	for name, c := range map[string]struct {
		fails []string // calls
		with  error
		least time.Duration
		most  time.Duration
		held  bool // says that jobs are held
	}{
		"claims fail":             {[]string{"claim"}, errDown, outageLimit, outageLimit + 15*time.Second, false},
		"sweeps fail":             {[]string{"overdue"}, errDown, outageLimit, outageLimit + 15*time.Second, false},
		"outcomes cannot be kept": {[]string{"apply"}, settle.ErrFull, outageLimit, outageLimit + 15*time.Second, true},
		"nothing can be written":  {[]string{"claim", "apply", "renew"}, settle.ErrFull, outageLimit, outageLimit + 15*time.Second, false},
		"it is damaged":           {[]string{"claim", "overdue", "apply", "renew", "prune"}, refused, 0, 3 * time.Second, false},
		"it becomes damaged":      {[]string{"apply"}, refused, 0, 3 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				w := New(f, quiet(Config{UntilIdle: true}))
				raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
				f.put(t, "k")
				f.hook(func(op string) error {
					if slices.Contains(c.fails, op) {
						return c.with
					}
					return nil
				}, nil)
				began := time.Now()
				err := w.Run(t.Context())
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("it ended after %s, want %s to %s", took, c.least, c.most)
				}
				if !errors.Is(err, c.with) && !errors.As(err, new(*settle.RefusedError)) || !strings.Contains(err.Error(), "gave up") {
					t.Errorf("it says %v, want the cause %v", err, c.with)
				}
				if err != nil && strings.Contains(err.Error(), "jobs held") != c.held {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}

func TestUntilIdleWaitsForAStoreThatComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		id := f.put(t, "k")
		f.hook(func(op string) error {
			if op == "apply" {
				return settle.ErrFull
			}
			return nil
		}, nil)
		time.AfterFunc(outageLimit-15*time.Second, func() { f.hook(nil, nil) })
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		wantState(t, f, id, settle.Succeeded, 1)
	})
}
