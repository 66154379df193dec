package sqlite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// mixed fills a store with n jobs in all states, with steps, attempts, keys,
// tenants, holds and removed rows.
func mixed(t testing.TB, st *Store, n int, rng *rand.Rand) {
	t.Helper()
	ctx := t.Context()
	for part := range slices.Chunk(mixedJobs(n, rng), 500) {
		insert(t, st, part...)
	}
	step := 0
	for range 3 {
		var ts []settle.Transition
		for _, queue := range []string{"default", "second"} {
			r := request(n / 4)
			r.Queue, r.Kinds = queue, []string{"work", "other"}
			got, err := st.Claim(ctx, r)
			must(t, err)
			for _, c := range got.Jobs {
				if ev := mixedEvent(step, rng); ev != nil {
					ts = append(ts, decided(c, ev))
				}
				step++
			}
		}
		apply(t, st, ts...)
	}
	for i, j := range all(t, st, settle.Filter{States: []settle.State{settle.Awaiting, settle.Pending}}) {
		if j.State == settle.Awaiting && i%2 == 0 {
			apply(t, st, j.Decide(settle.Delivered{Ticket: j.Wait.Ticket, Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte("step")}}, 0, false))
		} else if i%7 == 0 {
			apply(t, st, j.Decide(settle.CancelAsked{Why: "not needed"}, 0, false))
		}
	}
	must(t, st.Hold(ctx, settle.Hold{Queue: "default", Tenant: "t1", For: time.Hour, Reason: "operator", Text: "wait"}))
	must(t, st.SetNote(ctx, settle.Note{Queue: "second", Text: []byte("note"), Keep: time.Hour}))
	var old []settle.ID
	for i, j := range all(t, st, settle.Filter{States: []settle.State{settle.Succeeded}, Queue: "default"}) {
		if i%10 == 0 {
			old = append(old, j.ID)
		}
	}
	_, err := st.Remove(ctx, old)
	must(t, err)
}

func mixedJobs(n int, rng *rand.Rand) (out []settle.New) {
	for i := range n {
		o := settle.EnqueueOpts{Queue: []string{"default", "second"}[rng.IntN(2)], Tenant: fmt.Sprintf("t%d", rng.IntN(5))}
		if i%5 == 0 {
			o.Delay = time.Hour
		}
		if i%3 == 0 {
			o.Key = fmt.Sprintf("key-%d", i)
		}
		j := task(o)
		j.Kind = []string{"work", "other"}[rng.IntN(2)]
		j.Input = []byte(strings.Repeat(string(rune('a'+i%26)), 20+rng.IntN(400)))
		if i%97 == 0 {
			j.Input = []byte(strings.Repeat("L", 20_000)) // overflow pages
		}
		j.Gated = i%11 == 0
		out = append(out, j)
	}
	return out
}

// mixedEvent is what the next claimed job comes to; nil = it stays running.
func mixedEvent(i int, rng *rand.Rand) settle.Event {
	switch i % 6 {
	case 0:
		return nil
	case 1:
		return success(strings.Repeat("o", rng.IntN(300)))
	case 2:
		return failure("broken pipe")
	case 3:
		return terminal("no such thing")
	case 4:
		return settle.Parked{Wait: settle.Wait{Ticket: settle.NewID(), Step: "gpu"}}
	default:
		return success("")
	}
}
