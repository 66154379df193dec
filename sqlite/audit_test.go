package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
)

// auditRig is a store with jobs in every state, some of them removed.
func auditRig(t *testing.T) (st *Store, ids map[settle.State]settle.ID, advance func(time.Duration)) {
	t.Helper()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	st, err := Open(filepath.Join(t.TempDir(), "audit.db"), Config{Clock: clock.From(func() time.Time { return now })})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	ctx, ids := context.Background(), map[settle.State]settle.ID{}
	again := settle.NewID()
	for range 3 { // a repeated enqueue is one job
		if _, err := st.Insert(ctx, settle.New{Kind: "k", EnqueueOpts: settle.EnqueueOpts{ID: again, Delay: time.Hour}}); err != nil {
			t.Fatal(err)
		}
	}
	ids[settle.Pending] = again
	for _, end := range []settle.Event{
		settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK}},
		settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictTerminal, Error: "no"}},
		settle.CancelAsked{Why: "no"}, nil,
	} {
		if _, err := st.Insert(ctx, settle.New{Kind: "k"}, settle.New{Kind: "other", EnqueueOpts: settle.EnqueueOpts{Delay: time.Hour}}); err != nil {
			t.Fatal(err)
		}
		got, err := st.Claim(ctx, settle.ClaimReq{Queue: "default", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute, Worker: 7})
		if err != nil || len(got.Jobs) != 1 {
			t.Fatalf("claimed %d jobs: %v", len(got.Jobs), err)
		}
		j := got.Jobs[0]
		if end == nil {
			ids[settle.Running] = j.ID
			continue
		}
		m := settle.Decide(j.Snapshot, end, j.Policy, 0.5)
		if said, err := st.Apply(ctx, []settle.Transition{m}); err != nil || said[0] != settle.Done {
			t.Fatalf("%v, %v", said, err)
		}
		ids[m.To] = j.ID
	}
	return st, ids, func(d time.Duration) { now = now.Add(d) }
}

func audited(t *testing.T, st *Store) settle.Books {
	t.Helper()
	b, err := st.Audit(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func byHand(t *testing.T, st *Store, query string, args ...any) {
	t.Helper()
	if err := st.write(context.Background(), "by hand", func(x *tx) error { _, err := x.exec(query, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

func TestP14TheBooksBalanceAndCountEveryState(t *testing.T) {
	st, ids, advance := auditRig(t)
	b := audited(t, st)
	if !b.Balanced() || b.Accepted != 9 || b.Live != 6 || b.Succeeded != 1 || b.Dead != 1 || b.Cancelled != 1 || b.Removed != 0 {
		t.Errorf("books %+v: want 9 accepted, 6 live and one of each end", b)
	}
	if len(b.Overdue) != 0 {
		t.Errorf("%d overdue, want none", len(b.Overdue))
	}
	if n, err := st.Remove(context.Background(), []settle.ID{ids[settle.Dead]}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if b = audited(t, st); !b.Balanced() || b.Accepted != 9 || b.Dead != 0 || b.Removed != 1 {
		t.Errorf("books %+v: want 9 accepted and one removed", b)
	}
	advance(31 * 24 * time.Hour) // nobody sweeps
	if b = audited(t, st); !b.Balanced() || len(b.Overdue) != 6 {
		t.Errorf("%d overdue, want the 6 live jobs", len(b.Overdue))
	}
}

func TestP14AuditNamesWhatWasRemovedByHand(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		of    settle.State
		check func(b settle.Books, id settle.ID) bool
	}{
		"a live row": {`delete from live where n = (select n from body where id = ?)`, settle.Running,
			func(b settle.Books, id settle.ID) bool { return len(b.Lost) == 1 && b.Lost[0] == id }},
		"an ended row": {`delete from ended where n = (select n from body where id = ?)`, settle.Dead,
			func(b settle.Books, id settle.ID) bool { return len(b.Lost) == 1 && b.Lost[0] == id }},
		"a payload": {`delete from body where id = ?`, settle.Pending,
			func(b settle.Books, _ settle.ID) bool { return b.Vanished == 1 && b.Strays == 1 }},
		"a job that is live and has ended": {`insert into ended (n, at, state, reason, since, attempt, excused, deferred, crashed, tries, redrives, base, worker)
			select n, 1, 4, 'terminal', 1, 0, 0, 0, 0, 1, 0, 0, 0 from body where id = ?`, settle.Pending,
			func(b settle.Books, id settle.ID) bool { return len(b.Doubled) == 1 && b.Doubled[0] == id }},
	} {
		t.Run(name, func(t *testing.T) {
			st, ids, _ := auditRig(t)
			id := ids[c.of]
			byHand(t, st, c.query, id[:])
			if b := audited(t, st); b.Balanced() || !c.check(b, id) {
				t.Errorf("books %+v of job %s", b, id)
			}
		})
	}
	t.Run("a whole job", func(t *testing.T) {
		st, ids, _ := auditRig(t)
		id := ids[settle.Succeeded]
		byHand(t, st, `delete from ended where n = (select n from body where id = ?)`, id[:])
		byHand(t, st, `delete from body where id = ?`, id[:])
		if b := audited(t, st); b.Balanced() || b.Vanished != 1 {
			t.Errorf("books %+v: want one job vanished", b)
		}
	})
}
