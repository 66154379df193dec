package sqlite

import (
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// early is a running job whose ticket is out, and an answer that is kept for it.
func early(t *testing.T, st *Store) (settle.ClaimedJob, settle.Wait) {
	t.Helper()
	insert(t, st, task())
	c := takeOne(t, st)
	w := settle.Wait{Ticket: settle.NewID(), Step: "gpu", Node: "a"}
	check(t, apply(t, st, decided(c, settle.Submitting{Wait: w}))[0] == settle.Done, "the ticket is recorded")
	c.Wait = &w
	check(t, say(t, st, c.ID, w.Ticket) == settle.Done, "the answer is kept")
	return c, w
}

// say brings an answer as a bridge does.
func say(t *testing.T, st *Store, id, ticket settle.ID) settle.Applied {
	t.Helper()
	jobs, err := st.Waits(t.Context(), []settle.ID{id})
	must(t, err)
	answer := settle.Delivered{Ticket: ticket, Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: []byte(`"out"`)}}
	return apply(t, st, jobs[0].Decide(jobs[0].Answered(answer), 0.5, false))[0]
}

func inboxRows(t *testing.T, st *Store) int64 {
	t.Helper()
	n, err := number(st.w.c, `select count(*) from inbox`)
	must(t, err)
	return n
}

func TestP9TicketsAndWhatIsKeptForThemSurviveARestart(t *testing.T) {
	for _, parks := range []bool{true, false} {
		clk, path := newClock(), newPath(t)
		first, err := Open(path, free(Config{Clock: clk.source()}))
		must(t, err)
		c, w := early(t, first)
		must(t, first.Close())

		st := openAt(t, path, Config{Clock: clk.source()})
		j := get(t, st, c.ID)
		check(t, j.Wait != nil && *j.Wait == w, "the ticket is there: %+v", j.Wait)
		check(t, j.Answer != nil && string(j.Answer.Output) == `"out"`, "so is the answer: %+v", j.Answer)
		if parks {
			check(t, apply(t, st, decided(c, settle.Parked{Wait: w}))[0] == settle.Done, "the park is carried out")
		} else {
			clk.advance(lease + time.Second)
			page, err := st.Overdue(t.Context(), settle.Cursor{}, 10)
			must(t, err)
			check(t, apply(t, st, page.Jobs[0].Decide(page.Jobs[0].Passed(true, true), 0.5, true))[0] == settle.Done, "the sweep finds the lease over")
		}
		j = get(t, st, c.ID)
		check(t, j.State == settle.Pending && len(j.Steps) == 1 && j.Crashed == 0, "the answer is delivered: %s %+v", j.State, j.Counters)
		check(t, inboxRows(t, st) == 0, "nothing is left of it in the inbox")
	}
}

func TestP9WhatIsKeptGoesWithItsTicketOrByPrune(t *testing.T) {
	st := newStore(t)
	for name, c := range map[string]struct {
		ev   settle.Event
		left int64 // until Prune: nobody reads it any more
	}{
		"a park":      {nil, 0},
		"a failure":   {failure("no"), 0},
		"a cancel":    {settle.CancelAsked{}, 0},
		"a crash":     {settle.LeaseOver{}, 0},
		"a success":   {success("1"), 1},
		"a deferral":  {settle.Deferred{Reason: settle.AttemptShutdown}, 1},
		"a refusal":   {settle.Settled{Refused: true, Outcome: settle.Outcome{Verdict: settle.VerdictRetry}}, 1},
		"next ticket": {settle.Submitting{Wait: settle.Wait{Ticket: settle.NewID(), Step: "gpu"}}, 1},
	} {
		job, w := early(t, st)
		if c.ev == nil {
			c.ev = settle.Parked{Wait: w}
		}
		check(t, apply(t, st, decided(job, c.ev))[0] == settle.Done, "%s is carried out", name)
		check(t, inboxRows(t, st) <= c.left, "after %s the inbox has %d rows", name, inboxRows(t, st))
		_, err := st.Prune(t.Context(), settle.Keep{}, 10)
		must(t, err)
		check(t, inboxRows(t, st) == 0, "after %s and Prune the inbox has %d rows", name, inboxRows(t, st))
		if get(t, st, job.ID).State.Live() {
			apply(t, st, get(t, st, job.ID).Decide(settle.CancelAsked{}, 0, false))
		}
	}
}

// An answer that cannot be read is as if it had been lost, and keeps nobody back.
func TestADamagedKeptAnswerKeepsNobodyBack(t *testing.T) {
	clk := newClock()
	st := newStore(t, Config{Clock: clk.source()})
	bad, w := early(t, st)
	_, err := st.w.c.exec(`update inbox set doc = x'99'`)
	must(t, err)
	lost, _ := early(t, st)
	_, err = st.w.c.exec(`update live set wait = x'99' where n = ?`, lost.Handle)
	must(t, err)
	good, w2 := early(t, st)

	check(t, get(t, st, bad.ID).Answer == nil, "it is shown as none")
	said := apply(t, st, decided(bad, settle.Parked{Wait: w}), decided(good, settle.Parked{Wait: w2}))
	check(t, said[0] == settle.Done && said[1] == settle.Done, "both parks are carried out: %v", said)
	check(t, get(t, st, bad.ID).State == settle.Awaiting && get(t, st, good.ID).State == settle.Pending, "the other is delivered")
	check(t, say(t, st, bad.ID, w.Ticket) == settle.Done, "the node may answer once more")
	_, err = st.Prune(t.Context(), settle.Keep{}, 10)
	must(t, err)
	check(t, inboxRows(t, st) == 0, "Prune removes what belongs to a ticket that cannot be read")
	clk.advance(lease + time.Second)
	page, err := st.Overdue(t.Context(), settle.Cursor{}, 10)
	must(t, err)
	check(t, len(page.Jobs) == 1 && page.Jobs[0].ID == lost.ID, "the lease of the third is over")
	ev := page.Jobs[0].Passed(true, true)
	check(t, ev == settle.LeaseOver{}, "which is a crash: %T", ev)
	check(t, apply(t, st, page.Jobs[0].Decide(ev, 0.5, true))[0] == settle.Done, "and is carried out")
}
