package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// logBound is how far the write-ahead log may grow while nobody stands in its
// way: the automatic checkpoint comes at 4 MiB.
const logBound = 32 << 20

func TestB041AReaderThatStaysOpen(t *testing.T) {
	t.Parallel()
	st := newStore(t, Config{Synchronous: Normal})
	insert(t, st, task())
	reader := rawConn(t, st.Path()) // a backup, or a listing of another program
	_, err := reader.exec("begin")
	must(t, err)
	_, err = number(reader, "select count(*) from body")
	must(t, err)
	for i := 0; st.logSize() < maxLog+maxLog/4; i++ {
		insert(t, st, tasks(4, settle.MaxPayload)...)
		for _, c := range take(t, st, 4) {
			apply(t, st, decided(c, success("")))
		}
	}
	p, err := st.Prune(t.Context(), settle.Keep{}, 100)
	must(t, err)
	check(t, p.Log > maxLog, "while the log is large a number says so: %d", p.Log)
	insert(t, st, task()) // nothing is blocked
	_, err = reader.exec("rollback")
	must(t, err)
	p, err = st.Prune(t.Context(), settle.Keep{}, 100)
	must(t, err)
	check(t, p.Log <= maxLog && st.logSize() <= maxLog, "it is below its bound one upkeep after the reader has gone: %d", st.logSize())
	sound(t, st.Path())
}

func TestB041AListingLeftInTheMiddle(t *testing.T) {
	t.Parallel()
	st := newStore(t, Config{Synchronous: Normal})
	insert(t, st, tasks(200, 100)...)
	first, next, err := st.Jobs(t.Context(), settle.Filter{Limit: 50})
	must(t, err)
	pass := size(25, 400) // MiB
	worst := int64(0)
	for range pass {
		insert(t, st, tasks(64, 16<<10)...)
		drain(t, st)
		worst = max(worst, st.logSize())
	}
	check(t, worst < logBound, "no call of ours keeps a read open between pages: the log reached %d", worst)
	rest, _, err := st.Jobs(t.Context(), settle.Filter{Limit: 50, After: next})
	must(t, err)
	check(t, len(first) == 50 && len(rest) == 50 && rest[0].Fence.Handle > first[49].Fence.Handle, "the listing goes on where it was")
}

func TestB041MetricsAndListsDuringLoad(t *testing.T) {
	t.Parallel()
	st := newStore(t, Config{Synchronous: Normal})
	insert(t, st, tasks(5000, 100)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads atomic.Int64
	readers := make(chan error)
	go func() {
		readers <- errors.Join(together(5, func(int) error {
			for ctx.Err() == nil {
				_, err := st.Counts(ctx, 0)
				_, err2 := st.Ages(ctx)
				_, _, err3 := st.Jobs(ctx, settle.Filter{Limit: 200})
				if err := errors.Join(err, err2, err3); err != nil && ctx.Err() == nil {
					return err
				}
				reads.Add(3)
			}
			return nil
		})...)
	}()
	worst, wrote := int64(0), 0
	for end := time.Now().Add(time.Duration(size(2, 60)) * time.Second); time.Now().Before(end); {
		insert(t, st, tasks(20, 64<<10)...)
		for _, c := range take(t, st, 100) {
			apply(t, st, decided(c, success(strings.Repeat("o", 100))))
		}
		wrote += 20 * 64 << 10
		worst = max(worst, st.logSize())
	}
	stop()
	must(t, <-readers)
	t.Logf("%d reads, %d MiB written, log at most %d MiB", reads.Load(), wrote>>20, worst>>20)
	check(t, worst < 2*maxLog, "the log stays bounded during the load: %d", worst)
}
