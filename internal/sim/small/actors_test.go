package small

import (
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// state is one point of the search: where the store, the clock and the actors
// stand.
type state struct {
	store  num  // contents
	clock  int8 // place in instants
	work   [2]worker
	sweep  sweep
	person person
	bridge person // who brings the answers of a node
}

// num is the number of something that the search has interned; 0 = nothing.
type num int32

// worker remembers the job that it holds, and what it said when the answer was
// lost.
type worker struct {
	steps      int8
	held, said num
}

// sweep remembers what it decided on its last look.
type sweep struct {
	steps int8
	page  num
}

// person remembers the job as they saw it.
type person struct {
	steps int8
	seen  num
}

// instants are where the clock may stand: at the start, after a lease has ended,
// after the deadline.
var instants = []time.Duration{0, 40 * time.Second, 150 * time.Second}

const (
	lease    = 30 * time.Second
	deadline = 100 * time.Second
)

// policy is small: every budget can be spent within the bound.
var policy = settle.Policy{Attempts: 2, Crashes: 2, Deferrals: 1, Redrives: 1, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond, Deadline: deadline,
	Wait: lease}

// move is one step of one actor.
type move struct {
	name string
	do   func(*search, state) state
}

// moves are the steps that are possible in a state.
func (x *search) moves(s state) (out []move) {
	for i := range s.work {
		out = append(out, x.workerMoves(s, i)...)
	}
	if s.sweep.steps < x.bound.sweep {
		if s.sweep.page > 0 {
			out = append(out, move{"sweep acts", (*search).sweepActs})
		} else {
			out = append(out, move{"sweep looks", (*search).sweepLooks})
		}
	}
	if s.person.steps < x.bound.person {
		out = append(out, x.personMoves(s)...)
	}
	if s.bridge.steps < x.bound.bridge {
		out = append(out, x.bridgeMoves(s)...)
	}
	if int(s.clock)+1 < len(instants) {
		out = append(out, move{"time passes", func(_ *search, s state) state { s.clock++; return s }})
	}
	return out
}

// ---- workers

func (x *search) workerMoves(s state, i int) (out []move) {
	w := s.work[i]
	if w.steps == x.bound.worker {
		return nil
	}
	does := func(name string, do func(*search, state, int) state) {
		out = append(out, move{[]string{"worker 1 ", "worker 2 "}[i] + name, func(x *search, s state) state {
			s.work[i].steps++
			return do(x, s, i)
		}})
	}
	switch {
	case w.said > 0:
		does("says it again", (*search).repeat)
	case w.held == 0:
		does("claims", (*search).claim)
	case x.bound.bridge > 0:
		does("renews", (*search).renew)
		does("fails", func(x *search, s state, i int) state { return x.settle(s, i, settle.VerdictRetry, false) })
		switch c := x.claims.list[w.held-1]; {
		case len(c.Steps) > 0:
			does("succeeds", func(x *search, s state, i int) state { return x.settle(s, i, settle.VerdictOK, false) })
		case c.Wait == nil:
			does("submits", (*search).submit)
		default:
			does("parks", func(x *search, s state, i int) state { return x.park(s, i, false) })
			does("parks, its answer is lost", func(x *search, s state, i int) state { return x.park(s, i, true) })
		}
	default:
		does("renews", (*search).renew)
		does("fails, its answer is lost", func(x *search, s state, i int) state { return x.settle(s, i, settle.VerdictRetry, true) })
		for _, v := range []settle.Verdict{settle.VerdictOK, settle.VerdictRetry} {
			does("settles "+string(v), func(x *search, s state, i int) state { return x.settle(s, i, v, false) })
		}
	}
	return out
}

func (x *search) claim(s state, i int) state {
	got := ask(x, &s, "claim", num(i), func() num {
		r := settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: []string{"work"}, Limit: 1, Lease: lease, Worker: int64(i + 1)}
		out, err := x.db.Claim(x.ctx, r)
		x.must(err)
		if len(out.Jobs) == 0 && out.Suspects {
			r.Suspects = true
			out, err = x.db.Claim(x.ctx, r)
			x.must(err)
		}
		if len(out.Jobs) == 0 {
			return 0
		}
		c := out.Jobs[0]
		was := x.before.live(c.Handle)
		x.check(was != nil && was["state"] == "0", "P3 a claim takes a pending job: %v", was)
		x.check(was != nil && was["attempt"] == fmt.Sprint(c.Attempt-1), "an attempt is given once: %d after %v", c.Attempt, was)
		x.check(was != nil && number(was, "deadline") > x.now.UnixMicro(), "P2 an overdue job is not claimed: %v", was)
		return x.claims.put(fmt.Sprint(i, c.Handle, c.Counters, c.Remaining), claimed{c, i})
	})
	s.work[i].held = got
	return s
}

func (x *search) renew(s state, i int) state {
	kept := ask(x, &s, "renew", s.work[i].held, func() bool {
		c := x.claims.list[s.work[i].held-1].ClaimedJob
		holds := x.holds(c, i) && !x.overdue(c.Handle)
		lost, err := x.db.Renew(x.ctx, int64(i+1), []settle.Held{{Job: c.ID, Attempt: c.Attempt, Handle: c.Handle}}, lease)
		x.must(err)
		x.check((len(lost) == 0) == holds, "P3 a renewal succeeds for the holder alone: lost %v, holds %v", lost, holds)
		return len(lost) == 0
	})
	if !kept {
		s.work[i].held = 0 // who does not renew goes on and speaks: another branch
	}
	return s
}

func (x *search) settle(s state, i int, v settle.Verdict, lost bool) state {
	held := s.work[i].held
	deed := x.decide(decision{held, string(v)}, func() settle.Transition {
		c := x.claims.list[held-1]
		t := settle.Decide(c.Snapshot, settle.Settled{Outcome: settle.Outcome{Verdict: v, Error: fmt.Sprint("worker ", i)}}, c.Policy, 0.5)
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

// byHolder carries out what a worker decided on what it held.
func (x *search) byHolder(s *state, deed, held num, i int) {
	x.apply(s, deed, func(t settle.Transition, got settle.Applied) {
		holds := x.holds(x.claims.list[held-1].ClaimedJob, i)
		x.check((got == settle.Done) == holds, "P3 only the holder settles: answer %s, holds %v", got, holds)
	})
}

// decide makes each decision once and gives it its number.
func (x *search) decide(d decision, make func() settle.Transition) num {
	deed, ok := x.decided[d]
	if !ok {
		t := make()
		deed = x.deeds.put(said(t), t)
		x.decided[d] = deed
	}
	return deed
}

func (x *search) repeat(s state, i int) state {
	before := s.store
	x.apply(&s, s.work[i].said, func(settle.Transition, settle.Applied) {})
	x.check(s.store == before, "what was said once changes nothing again")
	s.work[i].said = 0
	return s
}

// ---- the sweep

func (x *search) sweepLooks(s state) state {
	s.sweep.steps++
	s.sweep.page = ask(x, &s, "overdue", 0, func() num {
		page := x.look()
		if len(page) == 0 {
			return 0
		}
		return x.pages.put(fmt.Sprint(page), page)
	})
	return s
}

// look decides what is overdue, as a sweep does that trusts the clock.
func (x *search) look() (page []num) {
	got, err := x.db.Overdue(x.ctx, settle.Cursor{}, 10)
	x.must(err)
	for i := range got.Jobs {
		j := &got.Jobs[i]
		if t := j.Decide(j.Passed(true, true), 0.5, true); t.Refusal == "" {
			page = append(page, x.deeds.put(said(t), t))
		}
	}
	return page
}

func (x *search) sweepActs(s state) state {
	s.sweep.steps++
	for _, deed := range x.pages.list[s.sweep.page-1] {
		x.apply(&s, deed, x.asSeen)
	}
	s.sweep.page = 0
	return s
}

// asSeen: who acts on an old look moves only what still is as it was seen.
func (x *search) asSeen(t settle.Transition, got settle.Applied) {
	fits := x.fits(&t)
	x.check((got == settle.Done) == fits, "P3 who acts on an old look moves only what is still so: answer %s, still so %v", got, fits)
}

// ---- the operator

var wishes = []struct {
	name string
	ev   settle.Event
}{{"operator cancels", settle.CancelAsked{Why: "why"}}, {"operator redrives", settle.RedriveAsked{}}}

func (x *search) personMoves(s state) (out []move) {
	if s.person.seen == 0 {
		for n, id := range x.ids {
			out = append(out, move{[]string{"operator looks at job 1", "operator looks at job 2"}[n], func(x *search, s state) state {
				s.person.steps++
				s.person.seen = ask(x, &s, "job", num(n), func() num {
					j, err := x.db.Job(x.ctx, id)
					x.must(err)
					return x.seenJobs.put(fmt.Sprint(j.Fence, j.Counters, j.Deadline.Sub(j.Now)), j)
				})
				return s
			}})
		}
		return out
	}
	for _, wish := range wishes {
		deed := x.decide(decision{-s.person.seen, wish.name}, func() settle.Transition {
			return x.seenJobs.list[s.person.seen-1].Decide(wish.ev, 0.5, false)
		})
		if x.deeds.list[deed-1].Refusal != "" {
			continue
		}
		out = append(out, move{wish.name, func(x *search, s state) state {
			x.apply(&s, deed, x.asSeen)
			s.person.steps++
			s.person.seen = 0
			return s
		}})
	}
	return out
}

// said is a transition as a name.
func said(t settle.Transition) string {
	text := fmt.Sprintf("%s %+v %s %s %s %s %+v", t.Job, t.Fence, t.Refusal, t.To, t.End, t.After, t.Counters)
	if t.Record != nil {
		text += fmt.Sprintf(" %+v", *t.Record)
	}
	if t.Wait != nil {
		text += fmt.Sprintf(" %+v", *t.Wait)
	}
	if t.Keep != nil {
		text += fmt.Sprintf(" keeps %+v", *t.Keep)
	}
	return text
}
