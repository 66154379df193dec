package worker_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

type empty = settle.None

var noop = settle.Define[empty, empty]("noop", settle.Policy{})

// BenchmarkWorkOff runs no-op jobs from a store that holds b.N of them.
func BenchmarkWorkOff(b *testing.B) {
	st, err := sqlite.Open(filepath.Join(b.TempDir(), "settle.db"), sqlite.Config{Synchronous: sqlite.Normal})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	fill(b, st, b.N)
	c := &counted{Store: st}
	w := worker.New(c, worker.Config{UntilIdle: true, Logger: slog.New(slog.DiscardHandler)})
	var ran atomic.Int64
	worker.Handle(w, noop, func(context.Context, *worker.Job[empty]) (empty, error) { ran.Add(1); return empty{}, nil })
	b.ResetTimer()
	if err := w.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(c.claimed.Load())/float64(c.claims.Load()), "jobs/claim")
	b.ReportMetric(float64(c.applied.Load())/float64(c.applies.Load()), "jobs/apply")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	if int(ran.Load()) != b.N {
		b.Fatalf("%d of %d ran", ran.Load(), b.N)
	}
}

func fill(b *testing.B, st *sqlite.Store, n int) {
	b.Helper()
	for n > 0 {
		news := make([]settle.New, min(n, 1000))
		for i := range news {
			news[i] = noop.New(empty{})
		}
		if _, err := st.Insert(b.Context(), news...); err != nil {
			b.Fatal(err)
		}
		n -= len(news)
	}
}

// counted counts calls and rows.
type counted struct {
	*sqlite.Store
	claims, claimed, applies, applied atomic.Int64
}

func (c *counted) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	got, err := c.Store.Claim(ctx, r)
	c.claims.Add(1)
	c.claimed.Add(int64(len(got.Jobs)))
	return got, err
}

func (c *counted) Apply(ctx context.Context, ts []settle.Transition) ([]settle.Applied, error) {
	c.applies.Add(1)
	c.applied.Add(int64(len(ts)))
	return c.Store.Apply(ctx, ts)
}
