//go:build linux

package kill

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// point is a named point: what the child does, and how one sees afterwards
// whether the call that it died in had been done.
type point struct {
	op, do string
	jobs   int // to be there when the child starts
	slots  int // of the child's worker; 0 = 8
	ended  bool
	stands func(f *file, s sight, lines []line) (done, whole bool)
}

var points = []point{
	{op: opEnqueue, do: "enqueue", stands: each(opEnqueue, func(j settle.Job, there bool, _ line) bool { return there })},
	{op: opClaim, do: "work", jobs: 150, stands: claimed},
	{op: opHandler, do: "work", jobs: 60},
	{op: opSettle, do: "work", jobs: 150, stands: each(opSettle, func(j settle.Job, _ bool, _ line) bool { return j.State.Ended() })},
	{op: opTicket, do: "submit", jobs: 20, slots: 1, stands: each(opTicket, func(j settle.Job, _ bool, _ line) bool { return j.Wait != nil })},
	{op: opKeep, do: "submit", jobs: 20, slots: 1, stands: each(opKeep, func(j settle.Job, _ bool, _ line) bool { return j.Answer != nil })},
	{op: opPark, do: "submit", jobs: 20, slots: 1, stands: each(opPark, parked)},
	{op: opSweep, do: "sweep", jobs: 150, stands: each(opSweep, swept)},
	{op: opRenew, do: "renew", jobs: page, stands: each(opRenew, func(j settle.Job, _ bool, l line) bool {
		return j.Alarm.Sub(j.Now) > time.Duration(l.n-6)*time.Second // the one before gave 10 s less
	})},
	{op: opPrune, do: "prune", jobs: 120, ended: true, stands: pruned},
}

// each asks of every job of the call: a call is done for all, or for none.
func each(op string, is func(j settle.Job, there bool, l line) bool) func(*file, sight, []line) (done, whole bool) {
	return func(f *file, s sight, lines []line) (done, whole bool) {
		about := unanswered(lines, op)
		n := 0
		for _, l := range about {
			if j, there := s.jobs[l.job]; is(j, there, l) {
				n++
			}
		}
		f.check(len(about) > 0, "the diary knows the call")
		return n > 0, n == 0 || n == len(about)
	}
}

// parked: the park and what was kept for it are one; never is only one of them
// there.
func parked(j settle.Job, _ bool, l line) bool {
	return j.State == settle.Pending && j.Excused == 1 && j.Attempt == l.n
}

func swept(j settle.Job, _ bool, l line) bool {
	return j.State != settle.Running || j.Attempt != l.n
}

// claimed: jobs run that no answered claim brought.
func claimed(_ *file, s sight, lines []line) (done, whole bool) {
	brought := map[settle.ID]int{}
	for _, l := range lines {
		if l.word == did+opClaim {
			brought[l.job] = l.n
		}
	}
	for id, j := range s.jobs {
		done = done || j.State == settle.Running && brought[id] != j.Attempt
	}
	return done, true
}

// pruned: more is removed than answered calls told of, and that by a page.
func pruned(f *file, s sight, _ []line) (done, whole bool) {
	more := s.books.Removed
	for _, l := range f.lines() {
		if l.word == did+opPrune {
			more -= int64(l.n)
		}
	}
	more -= f.unsaid
	f.unsaid += more
	return more > 0, more == 0 || more == page
}

// moments are how often a child dies before, during and after a call.
func moments() map[string]int {
	return map[string]int{before: size(1, 6), during: size(2, 48), after: size(1, 6)}
}

// perFile is how many kills one file sees before its jobs must be finished.
const perFile = 6

func TestP1P2P3P14KilledAtANamedPoint(t *testing.T) {
	t.Parallel()
	for _, p := range points {
		t.Run(p.op, func(t *testing.T) {
			t.Parallel()
			n, f := 0, (*file)(nil)
			for _, when := range []string{before, during, after} {
				for i := range moments()[when] {
					if n++; f == nil || n%perFile == 0 {
						if f != nil {
							f.finish()
						}
						f = newFile(t, p.op)
					}
					p.kill(f, when, uint64(i))
				}
			}
			f.finish()
			if p.stands != nil {
				kills.bothWays(t, p.op)
			}
		})
	}
}

// seeded makes the choices of one kill repeatable.
func seeded(what string, i uint64) (*rand.Rand, string) {
	h := fnv.New64a()
	h.Write([]byte(what))
	return rand.New(rand.NewPCG(*firstSeed, h.Sum64()+i)), fmt.Sprintf("%s, number %d (-kill.seed %d)", what, i, *firstSeed)
}

// kill lets one child die at the point, and judges what is left.
func (p point) kill(f *file, when string, i uint64) {
	f.t.Helper()
	rng, what := seeded(when+" "+p.op, i)
	f.what = what
	switch {
	case p.do == "submit":
		f.enqueue(freshOf(distant, p.jobs)...)
	case p.jobs > 0:
		f.enqueue(fresh(p.jobs)...)
	}
	if p.ended {
		f.finish()
	}
	mark := len(f.lines())
	o := f.order(order{Do: p.do, Op: p.op, When: when, Nth: 3 + rng.IntN(3), Part: rng.Float64() * 1.25,
		Shift: shift{Slots: cmp.Or(p.slots, 8), Lease: time.Minute}})
	start(f.t, o).died(f.t)
	s := f.judge()
	if p.stands == nil {
		kills.add(p.op)
	} else {
		done, whole := p.stands(f, s, f.lines()[mark:])
		f.check(whole, "the call is done for all of its jobs or for none")
		f.check(when != before || !done, "a call that was not made has done nothing")
		f.check(when != after || done, "a call that returned is done")
		kills.addAsked(p.op, done, when == during)
	}
	f.recover()
	f.judgeKept()
}

func TestP14P15B065KilledWhileMigrating(t *testing.T) {
	t.Parallel()
	for _, when := range []string{before, during, after} {
		for i := range moments()[when] {
			rng, what := seeded(when+" migrate", uint64(i))
			f := newFile(t, what)
			start(t, f.order(order{Do: "migrate", Op: opMigrate, When: when, Nth: 3, Part: rng.Float64() * 1.25})).died(t)
			done := schemaIsThere(f)
			f.check(when != before || !done, "nothing is there before")
			f.check(when != after || done, "all is there after")
			kills.addAsked(opMigrate, done, when == during)
			f.enqueue(fresh(5)...) // the next start completes what was begun
			f.finish()
		}
	}
	kills.bothWays(t, opMigrate)
}

// schemaIsThere asks a copy of the files: a look would change them.
func schemaIsThere(f *file) bool {
	if !exists(f.path) {
		return false
	}
	c := f.copy(f.take())
	n, err := ask(c.path, "select count(*) from sqlite_schema where name = 'schema_version'")
	must(f.t, err)
	return n == "1"
}
