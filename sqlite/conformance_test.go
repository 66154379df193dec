package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
	"github.com/settle-go/settle/internal/storetest"
	"github.com/settle-go/settle/sqlite"
)

// TestConformance holds the embedded store to the contract of a store.
func TestConformance(t *testing.T) {
	var paths sync.Map // of each open store
	open := func(t *testing.T, path string, cfg sqlite.Config) settle.Store {
		st, err := sqlite.Open(path, cfg)
		if err != nil {
			t.Fatalf("open %s: %v", path, err)
		}
		paths.Store(st, path)
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Errorf("close: got %v, want no error", err)
			}
		})
		return st
	}
	fresh := func(t *testing.T) string { return filepath.Join(t.TempDir(), "settle.db") }
	storetest.Run(t, storetest.Harness{
		Open: func(t *testing.T, c *storetest.Clock) settle.Store {
			return open(t, fresh(t), sqlite.Config{Clock: clock.From(c.Now)})
		},
		Again: func(t *testing.T, s settle.Store, c *storetest.Clock) settle.Store {
			path, _ := paths.Load(s)
			return open(t, path.(string), sqlite.Config{Clock: clock.From(c.Now)})
		},
		Full: func(t *testing.T, c *storetest.Clock, jobs int) settle.Store {
			return open(t, fresh(t), sqlite.Config{Clock: clock.From(c.Now), MaxJobs: jobs})
		},
	})
}
