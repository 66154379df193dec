package sqlite

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// What workers and clients do all the time seeks, on every table that grows: a
// statement that walks is fast in every test, and slow with a million rows.
func TestHotStatementsSeek(t *testing.T) {
	st := newStore(t)
	insert(t, st, tasks(5, 10)...)
	insert(t, st, task(settle.EnqueueOpts{Tenant: "a", Key: "k"}), task(settle.EnqueueOpts{Tenant: "b", Delay: time.Hour}))
	lanes, err := st.Lanes(t.Context(), settle.DefaultQueue, 0, 10)
	must(t, err)
	req := request(3)
	req.Lanes = lanes
	first, err := st.Claim(t.Context(), req)
	must(t, err)
	req.Lanes = nil
	more, err := st.Claim(t.Context(), req)
	must(t, err)
	req.Suspects = true
	_, err = st.Claim(t.Context(), req)
	must(t, err)
	check(t, len(first.Jobs) == 3 && len(more.Jobs) == 3, "claimed: %d, %d", len(first.Jobs), len(more.Jobs))
	apply(t, st, decided(first.Jobs[0], success("1")), decided(first.Jobs[1], failure("x")), decided(first.Jobs[2], terminal("y")))
	insert(t, st, task())
	last, err := st.Claim(t.Context(), request(1))
	must(t, err)
	w := settle.Wait{Ticket: settle.NewID(), Step: "s"}
	apply(t, st, decided(last.Jobs[0], settle.Submitting{Wait: w}))
	waits, err := st.Waits(t.Context(), []settle.ID{last.Jobs[0].ID})
	must(t, err)
	answer := settle.Delivered{Ticket: w.Ticket, Outcome: settle.Outcome{Verdict: settle.VerdictOK}}
	apply(t, st, waits[0].Decide(waits[0].Answered(answer), 0, false))
	apply(t, st, decided(last.Jobs[0], settle.Parked{Wait: w}))
	_, err = st.Overdue(t.Context(), settle.Cursor{}, 10)
	must(t, err)
	_, err = st.Ages(t.Context())
	must(t, err)
	_, err = st.Prune(t.Context(), settle.Keep{}, 10)
	must(t, err)

	queries := maps.Clone(st.w.c.stmts)
	r, err := st.reads.get(t.Context())
	must(t, err)
	maps.Copy(queries, r.stmts)
	st.reads.free <- r
	check(t, len(queries) > 20, "the statements are known: %d", len(queries))
	for q := range queries {
		if !strings.Contains(q, " live") && !strings.Contains(q, " body") && !strings.Contains(q, " ended") {
			continue
		}
		must(t, st.w.c.query("explain query plan "+q, func(r row) error {
			step := r.text(3)
			few := step == "SCAN CONSTANT ROW" || step == "SCAN inbox" // answers to attempts that still run
			walks := strings.HasPrefix(step, "SCAN") && !few || strings.Contains(step, "TEMP B-TREE")
			check(t, !walks, "%s:\n%s", step, q)
			return nil
		}))
	}
}
