package sqlite

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// everyCall is every method that can fail.
func everyCall(ctx context.Context, st *Store) map[string]error {
	out := map[string]error{}
	_, out["Insert"] = st.Insert(ctx, task())
	_, out["Claim"] = st.Claim(ctx, request(1))
	_, out["Renew"] = st.Renew(ctx, me, []settle.Held{{Job: settle.NewID(), Attempt: 1}}, lease)
	_, out["Apply"] = st.Apply(ctx, []settle.Transition{{Job: settle.NewID(), To: settle.Succeeded}})
	_, out["Overdue"] = st.Overdue(ctx, settle.Cursor{}, 1)
	_, out["Lanes"] = st.Lanes(ctx, "default", 0, 1)
	_, out["Job"] = st.Job(ctx, settle.NewID())
	_, _, out["Jobs"] = st.Jobs(ctx, settle.Filter{})
	_, out["Ages"] = st.Ages(ctx)
	_, out["Counts"] = st.Counts(ctx, 0)
	out["Hold"] = st.Hold(ctx, settle.Hold{Queue: "q", For: time.Hour})
	_, out["Release"] = st.Release(ctx, "q", "", true)
	_, out["Holds"] = st.Holds(ctx)
	_, out["Prune"] = st.Prune(ctx, settle.Keep{}, 1)
	_, out["Remove"] = st.Remove(ctx, nil)
	_, out["Ack"] = st.Ack(ctx, nil, true)
	_, out["Pull"] = st.Pull(ctx, time.Second, time.Second, 1)
	_, out["Note"] = st.Note(ctx, "q")
	out["SetNote"] = st.SetNote(ctx, settle.Note{Queue: "q"})
	_, out["Removed"] = st.Removed(ctx)
	out["InTx"] = st.InTx(ctx, func(sqlTx) error { return nil })
	out["Listen"] = st.Listen(ctx, "q", func(settle.Lane) {})
	return out
}

func TestAClosedStoreSaysSo(t *testing.T) {
	st := newStore(t)
	insert(t, st, task())
	_ = count(t, st)
	must(t, st.InTx(t.Context(), func(sqlTx) error { return nil }))
	must(t, st.Close())
	for name, err := range everyCall(t.Context(), st) {
		check(t, errors.Is(err, settle.ErrClosed), "%s of a closed store is ErrClosed, got %v", name, err)
	}
	must(t, st.Close())
	left, err := os.Stat(st.Path() + "-wal")
	check(t, err != nil, "the last one out leaves no log behind: %v", left)
}

func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	for range size(3, 50) {
		st := openAt(t, path, Config{Synchronous: Normal})
		before := count(t, st)
		var stored atomic.Int64
		loads := make(chan []error)
		go func() {
			loads <- together(40, func(i int) error {
				for {
					var err error
					switch i % 4 {
					case 0, 1:
						if _, err = st.Insert(t.Context(), task()); err == nil {
							stored.Add(1)
						}
					case 2:
						_, _, err = st.Jobs(t.Context(), settle.Filter{Limit: 5})
					default:
						err = st.InTx(t.Context(), func(tx sqlTx) error { _, err := st.EnqueueTx(t.Context(), tx, task()); return err })
						if err == nil {
							stored.Add(1)
						}
					}
					if err != nil {
						return err
					}
				}
			})
		}()
		until(t, 10*time.Second, "work is under way", func() bool { return stored.Load() > 50 })
		must(t, st.Close())
		for _, err := range <-loads {
			isErr(t, err, settle.ErrClosed)
		}
		again := openAt(t, path)
		check(t, count(t, again)-before == int(stored.Load()), "what was acknowledged is stored, and nothing else: %d, want %d", count(t, again)-before, stored.Load())
		must(t, again.Close())
	}
}

func TestNoGoroutineOutlivesItsStore(t *testing.T) {
	st := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- st.Listen(ctx, "default", func(settle.Lane) {}) }()
	_ = together(20, func(int) error { _ = everyCallBut(t.Context(), st); return nil })
	_, stop := st.Watch([]settle.ID{settle.NewID()})
	stop()
	cancel()
	must(t, <-done)
	must(t, st.Close())
	until(t, 5*time.Second, "no goroutine of the package is left", func() bool {
		return !strings.Contains(stacks(), "settle/sqlite.(*") && !strings.Contains(stacks(), "database/sql.(*DB)")
	})
	check(t, len(st.bus.listen) == 0 && len(st.bus.watched) == 0, "nobody listens any more")
}

func everyCallBut(ctx context.Context, st *Store) error {
	_, err := st.Insert(ctx, task())
	_, err2 := st.Claim(ctx, request(1))
	_, err3 := st.Counts(ctx, 0)
	err4 := st.InTx(ctx, func(sqlTx) error { return nil })
	return errors.Join(err, err2, err3, err4)
}

func TestOpenConnectionsAreClosedWithTheStore(t *testing.T) {
	st := newStore(t)
	_ = together(20, func(int) error { _ = count(t, st); return nil })
	must(t, st.Close())
	// Nobody has the file any more: it can be had exclusively.
	c, err := zs.OpenConn(fileURI(st.Path()), zs.OpenReadWrite, zs.OpenURI)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	d := newDirect(c)
	c.SetBusyTimeout(0)
	must(t, d.query("pragma locking_mode = exclusive", func(row) error { return nil }))
	_, err = d.exec("begin exclusive")
	must(t, err)
}
