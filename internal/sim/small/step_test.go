package small

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/settle-go/settle"
)

// ---- a worker that submits

// submit records a ticket, of which the worker then knows. Each attempt has one.
func (x *search) submit(s state, i int) state {
	held := s.work[i].held
	c := x.claims.list[held-1]
	w := settle.Wait{Ticket: settle.DeriveID([]byte("ticket"), []byte{byte(c.Attempt), byte(i)}), Step: "s"}
	deed := x.decide(decision{held, "submit"}, func() settle.Transition {
		t := settle.Decide(c.Snapshot, settle.Submitting{Wait: w}, c.Policy, 0.5)
		t.Fence.Handle = c.Handle
		return t
	})
	x.apply(&s, deed, func(_ settle.Transition, got settle.Applied) {
		may := x.holds(c.ClaimedJob, i) && !x.overdue(c.Handle)
		x.check((got == settle.Done) == may, "P3 only the holder of a job that is not overdue submits: answer %s, may %v", got, may)
	})
	c.Wait = &w
	s.work[i].held = x.claims.put(fmt.Sprint(i, c.Handle, c.Counters, c.Remaining, w), c)
	return s
}

func (x *search) park(s state, i int, lost bool) state {
	held := s.work[i].held
	deed := x.decide(decision{held, "park"}, func() settle.Transition {
		c := x.claims.list[held-1]
		t := settle.Decide(c.Snapshot, settle.Parked{Wait: *c.Wait}, c.Policy, 0.5)
		t.Fence.Handle, t.Fence.Worker = c.Handle, int64(i+1)
		return t
	})
	x.byHolder(&s, deed, held, i)
	s.work[i].held = 0
	if lost {
		s.work[i].said = deed
	}
	return s
}

// ---- the bridge

// bridgeMoves: it looks where the job stands, and then acts on what it saw.
func (x *search) bridgeMoves(s state) (out []move) {
	if s.bridge.seen == 0 {
		return []move{{"bridge looks", func(x *search, s state) state {
			s.bridge.steps++
			s.bridge.seen = ask(x, &s, "waits", 0, func() num {
				jobs, err := x.db.Waits(x.ctx, x.ids)
				x.must(err)
				j := jobs[0]
				if j.Wait == nil {
					return 0
				}
				return x.seenJobs.put(fmt.Sprint("waits", j.Fence, j.Counters, j.Deadline.Sub(j.Now), j.WaitEnds.Sub(j.Now), *j.Wait, j.Answer != nil), j)
			})
			return s
		}}}
	}
	for _, v := range []settle.Verdict{settle.VerdictOK, settle.VerdictRetry} {
		deed := x.decide(decision{-s.bridge.seen, "answer " + string(v)}, func() settle.Transition {
			j := x.seenJobs.list[s.bridge.seen-1]
			return j.Decide(j.Answered(settle.Delivered{Ticket: j.Wait.Ticket, Outcome: settle.Outcome{Verdict: v, Reason: settle.AttemptStepError, Error: "node"}}), 0.5, false)
		})
		out = append(out, move{"bridge brings " + string(v), func(x *search, s state) state {
			x.apply(&s, deed, x.asSeen)
			s.bridge.steps++
			s.bridge.seen = 0
			return s
		}})
	}
	return out
}

// ticketFits says whether the ticket of an answer is the one that is out, and
// nothing has been kept for it.
func (x *search) ticketFits(t *settle.Transition) bool {
	if t.Keep == nil {
		return true
	}
	return ticketOf(x.before.live(t.Fence.Handle)) == t.Keep.Ticket && x.before.kept(t.Keep.Ticket).values == nil
}

// ---- what must be true

func (c contents) kept(ticket settle.ID) row {
	return c[fmt.Sprintf("inbox and ticket = x'%x'", ticket[:])]
}

// ticketOf is the ticket that is out in a live row.
func ticketOf(l map[string]string) (ticket settle.ID) {
	text, ok := strings.CutPrefix(l["wait"], "x'")
	if !ok {
		return ticket
	}
	var b []byte
	if _, err := fmt.Sscanf(strings.TrimSuffix(text, "'"), "%x", &b); err != nil {
		panic(err)
	}
	var w settle.Wait
	if err := json.Unmarshal(b, &w); err != nil {
		panic(err)
	}
	return w.Ticket
}

// recorded says whether an attempt or a result stands there with this ticket.
func (c contents) recorded(ticket settle.ID) bool {
	for _, r := range c {
		if (r.table == "attempt" || r.table == "step") && r.named()["ticket"] == fmt.Sprintf("x'%x'", ticket[:]) {
			return true
		}
	}
	return false
}

func (c contents) steps() (n int64) {
	for _, r := range c {
		if r.table == "step" {
			n++
		}
	}
	return n
}

// lawfulStep checks what became of answers.
func (x *search) lawfulStep(before, after contents, how string) {
	was, now := before.live(1), after.live(1)
	if was == nil || now == nil {
		return
	}
	out := ticketOf(now)
	x.check(now["state"] != "2" || !out.IsZero() && after.kept(out).values == nil, "P9 a park finds what was kept: %s led to %v", how, now)
	x.check(now["state"] != "0" || out.IsZero(), "a pending job waits for nothing: %v", now)
	if was["state"] == "1" && now["state"] == "0" && !ticketOf(was).IsZero() {
		x.check(after.recorded(ticketOf(was)), "P10 who ends an attempt has seen its ticket: %s led from %v to %v", how, was, now)
	}
	kept := before.kept(ticketOf(was))
	if was["state"] != "1" || kept.values == nil {
		return
	}
	if now["state"] == "1" && out == ticketOf(was) {
		x.check(after.kept(out).text() == kept.text(), "P9 the first answer that is kept stays: %s changed %v to %v", how, kept.values, after.kept(out).values)
	}
	x.check(number(now, "crashed") == number(was, "crashed"), "P9 a lease that ends with a kept answer is no crash: %s", how)
	x.check(number(now, "excused")-number(was, "excused") == after.steps()-before.steps(), "P10 each result excuses one attempt: %s led from %v to %v", how, was, now)
}
