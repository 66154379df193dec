//go:build linux

package kill

import (
	"fmt"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// Producers flat out and two workers on one file, killed one after the other and
// started again. The living go on while the file is judged.
func TestP1P2P3P14KilledAtRandomUnderFullLoad(t *testing.T) {
	t.Parallel()
	for i := range size(1, 10) {
		rng, what := seeded("full load", uint64(i))
		f := newFile(t, what)
		crew := []order{f.order(order{Do: "load", Producers: 3})}
		for range 2 {
			crew = append(crew, f.order(order{Do: "load", Shift: shift{Slots: 32, Lease: 2 * time.Second, Sweep: 100 * time.Millisecond}}))
		}
		running := make([]*process, len(crew))
		for c := range crew {
			running[c] = start(t, crew[c])
		}
		for range size(5, 15) {
			mark := len(f.lines())
			if !waits(30*time.Second, func() bool { return busy(f.lines()[mark:]) }) {
				f.tellStall(mark, running)
			}
			pause(time.Duration(rng.IntN(100)) * time.Millisecond) // the moment is the case
			c := rng.IntN(len(crew))
			running[c].kill(t)
			kills.add("full load")
			f.judgeLive()
			running[c] = start(t, crew[c])
		}
		for _, p := range running {
			p.kill(t)
			kills.add("full load")
		}
		f.judge()
		s := f.finish()
		t.Logf("%s: %d jobs, %d of them dead", what, s.books.Accepted, s.books.Dead)
	}
}

// busy: jobs came, began and ended.
func busy(lines []line) bool {
	seen := map[string]int{}
	for _, l := range lines {
		seen[l.word]++
	}
	return seen[did+opEnqueue] > 20 && seen[started] > 20 && seen[ended] > 20
}

// judgeLive looks at a file on which others work, and ends the leases of the
// killed: none of the living ever waits ten seconds.
func (f *file) judgeLive() {
	f.t.Helper()
	lines := f.lines() // before the look: all of it must be there
	f.with(func(st *sqlite.Store) {
		s, err := look(st)
		must(f.t, err)
		f.check(s.books.Balanced(), "the books balance while others work: %+v", s.books)
		for _, l := range lines {
			j, there := s.jobs[l.job]
			f.check(there || l.word != did+opEnqueue, "acknowledged job %s is there", l.job)
			f.check(l.word != ended || j.State.Ended() && j.Attempt == l.n, "the acknowledged end of job %s stands: %s", l.job, j.State)
		}
		must(f.t, sweep(f.hand(st)))
	})
}

// A job that kills whoever runs it ends, after its budget of crashes, alone: the
// jobs that ran beside it succeed.
func TestP1P2AJobThatKillsItsWorkerIsDeadAndItsNeighboursAreNot(t *testing.T) {
	t.Parallel()
	for i := range size(1, 8) {
		_, what := seeded("poison", uint64(i))
		f := newFile(t, what)
		bad := poison.New(0, settle.EnqueueOpts{ID: settle.NewID()})
		f.enqueue(append(fresh(30), bad)...)
		times := 0
		for ; ; times++ {
			p := start(t, f.order(order{Do: "work", Shift: shift{Slots: 8, Lease: time.Minute, UntilIdle: true}}))
			<-p.over
			if p.err == nil {
				break
			}
			if !p.wasKilled() || times > poison.Policy().Crashes {
				t.Fatalf("%s: after %d kills: %v: %s", what, times, p.err, &p.errs)
			}
			kills.add("poison")
			f.judge()
			f.recover()
		}
		s := f.judge()
		j := s.jobs[bad.ID]
		f.check(j.State == settle.Dead && j.Reason == settle.EndWorkerLost && j.Crashed == j.Policy.Crashes && times == j.Crashed,
			"it is dead of lost workers: %s %s, %d crashes, %d kills", j.State, j.Reason, j.Crashed, times)
		f.check(s.books.Succeeded == 30 && s.books.Live == 0, "all others succeed: %+v", s.books)
	}
}

// tellStall says what a file looks like on which nobody gets on.
func (f *file) tellStall(mark int, running []*process) {
	f.t.Helper()
	for _, p := range running {
		if p.ended() {
			f.t.Fatalf("%s: a child ended by itself: %v: %s", f.what, p.err, &p.errs)
		}
	}
	words, states := map[string]int{}, map[string]int{}
	for _, l := range f.lines()[mark:] {
		words[l.word]++
	}
	f.with(func(st *sqlite.Store) {
		s, err := look(st)
		must(f.t, err)
		for _, j := range s.jobs {
			states[fmt.Sprintf("%s, %d crashes, suspect %v", j.Label(), j.Crashed, j.Suspect)]++
		}
	})
	f.t.Fatalf("%s: nobody gets on: since the last kill %v; jobs %v", f.what, words, states)
}
