//go:build linux

package kill

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// A power cut is a process that stops, and writes that never reached the disk.
// The process is stopped at a random moment, its files are copied, and what had
// not been synced is lost in one of the ways in which disks lose it.
func TestP3P14APowerCutAtFullLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	tails := 0
	for i := range size(2, 30) {
		p := cutPower(t, "full", false, uint64(i))
		if tails += p.wal.whole - p.wal.known; p.wal.known == 0 {
			continue // it stopped between two generations of the log
		}
		for n, loss := range losses {
			left := p.lose(loss, p.wal.known)
			gone := left.missing()
			left.check(len(gone) == 0, "all that was acknowledged is there: %d of %d are not, the first %+v", len(gone), len(p.acks), first(gone))
			left.judgeBooks(left.sight)
			if n == int(i)%len(losses) { // one copy stands for all: they differ in what is there
				left.finishCopy()
			}
		}
	}
	t.Logf("%d frames were not synced when the power was cut", tails)
	if long && tails == 0 {
		t.Error("no cut came between a write and its sync")
	}
}

// At NORMAL the last acknowledged work may be lost, that of sqlite.Normal's
// comment: accepted jobs vanish, finished jobs run again. What is left is what
// once was: of two things that were acknowledged, the later one never survives
// alone, and the books balance.
func TestP14APowerCutAtNormalLeavesAMomentOfThePast(t *testing.T) {
	t.Parallel()
	lost := 0
	for i := range size(2, 30) {
		p := cutPower(t, "normal", true, uint64(i))
		for n, loss := range losses {
			left := p.lose(loss, p.wal.synced)
			gone := left.missing()
			lost += len(gone)
			left.judgePast(gone)
			left.judgeBooks(left.sight)
			if n == int(i)%len(losses) { // one copy stands for all: they differ in what is there
				left.finishCopy()
			}
		}
	}
	t.Logf("%d acknowledged things were lost", lost)
	if lost == 0 {
		t.Error("nothing was lost: no power was cut")
	}
}

// Damage where all had been synced is no power cut. It may cost what follows it,
// but nobody is told that a damaged file is sound.
func TestP14AGarbledLogIsReportedOrLeavesAMomentOfThePast(t *testing.T) {
	t.Parallel()
	said := map[string]int{}
	for i := range size(2, 20) {
		p := cutPower(t, "garbled", i%2 == 1, uint64(i))
		for n := range size(3, 10) {
			if p.wal.known == 0 {
				continue
			}
			from, when := p.files, "before a checkpoint"
			if n%2 == 1 {
				from, when = p.checkpointed(), "after a checkpoint"
			}
			f := p.damaged(from, func(f files) {
				at := p.rng.IntN(end(p.wal.known))
				for b := range f[theLog][at:min(at+1+p.rng.IntN(100), len(f[theLog]))] {
					f[theLog][at+b] ^= byte(1 + p.rng.IntN(255))
				}
			})
			f.what += fmt.Sprint(", damage ", n)
			how, err := f.lookDamaged()
			if said[when+": "+how]++; err == nil {
				f.judgePast(f.missing())
				f.judgeBooks(f.sight)
			}
		}
	}
	t.Logf("what became of garbled logs: %v", said)
}

// cut is a stopped process and what it left.
type cut struct {
	*file
	files files
	wal   wal
	acks  []line // the whole diary until then
	rng   *rand.Rand
}

// cutPower lets a child work, and stops it.
func cutPower(t *testing.T, name string, normal bool, i uint64) *cut {
	t.Helper()
	rng, what := seeded("power cut at "+name, i)
	f := newFile(t, what)
	p := start(t, f.order(order{Do: "load", Normal: normal, Producers: 2, Shift: shift{Slots: 8, Lease: time.Minute}}))
	until(t, 30*time.Second, "the child works", func() bool { return busy(f.lines()) })
	pause(time.Duration(rng.IntN(size(150, 600))) * time.Millisecond)
	must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	until(t, 30*time.Second, "the child stops", func() bool { return stopped(p.cmd.Process.Pid) })
	c := &cut{file: f, files: f.take(), acks: f.lines(), rng: rng}
	p.kill(t)
	kills.add("power cut at " + name)
	c.wal = readWAL(c.files)
	return c
}

// stopped asks whether all threads of a process stand still.
func stopped(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task.Name()))
		if _, rest, ok := strings.Cut(string(b), ") "); err != nil || !ok || rest[0] != 'T' {
			return false
		}
	}
	return err == nil && len(tasks) > 0
}

// loss is what can become of the bytes of a log that were not synced: those from
// a place on.
type loss struct {
	name string
	do   func(rng *rand.Rand, log []byte, from int) []byte
}

var losses = []loss{
	{"all lost", func(_ *rand.Rand, log []byte, from int) []byte { return log[:from] }},
	{"cut", func(rng *rand.Rand, log []byte, from int) []byte { return log[:from+rng.IntN(len(log)-from+1)] }},
	{"garbled", func(rng *rand.Rand, log []byte, from int) []byte {
		for i := from + rng.IntN(len(log)-from+1); i < len(log); i++ {
			log[i] = byte(rng.Uint32())
		}
		return log
	}},
	{"zeroed", func(rng *rand.Rand, log []byte, from int) []byte {
		clear(log[from+rng.IntN(len(log)-from+1):])
		return log
	}},
	{"holes", func(rng *rand.Rand, log []byte, from int) []byte { // sectors reach the disk in any order
		for at := from; at < len(log); at += 512 {
			if rng.IntN(4) == 0 {
				clear(log[at:min(at+512, len(log))])
			}
		}
		return log
	}},
}

// checkpointed are the files after a checkpoint that nobody has written behind
// since: all of the log stands in the file, and the log still counts.
func (c *cut) checkpointed() files {
	c.t.Helper()
	at := c.copy(c.files)
	conn, err := zs.OpenConn(at.path, zs.OpenReadWrite)
	must(c.t, err)
	s, _, err := conn.PrepareTransient("pragma wal_checkpoint(passive)")
	must(c.t, err)
	_, err = s.Step()
	must(c.t, errors.Join(err, s.Finalize()))
	f := at.take() // before the connection is closed: that empties the log
	must(c.t, conn.Close())
	return f
}

// damaged puts a copy of files, damaged, where it can be looked at.
func (c *cut) damaged(from files, do func(files)) *survivor {
	f := files{theFile: bytes.Clone(from[theFile]), theLog: bytes.Clone(from[theLog])}
	do(f)
	return &survivor{file: c.copy(f), acks: c.acks}
}

// lose loses what was not synced: the log behind a frame, and halves of those
// pages of the file that a checkpoint may have been copying.
func (c *cut) lose(how loss, synced int) *survivor {
	c.t.Helper()
	s := c.damaged(c.files, func(f files) {
		from := min(end(synced), len(f[theLog]))
		for _, page := range c.wal.pages(c.wal.synced) {
			if half := page*pageSize - pageSize/2; page > 1 && half+pageSize/2 <= len(f[theFile]) && c.rng.IntN(4) == 0 {
				clear(f[theFile][half : half+pageSize/2])
			}
		}
		f[theLog] = how.do(c.rng, f[theLog], from)
	})
	s.what += ", " + how.name
	s.with(func(st *sqlite.Store) {
		var err error
		s.sight, err = look(st)
		must(s.t, err)
	})
	s.check(sound(s.path) == nil, "SQLite finds no fault: %v", sound(s.path))
	return s
}

// survivor is what the next start finds.
type survivor struct {
	*file
	sight sight
	acks  []line
}

// stands says whether something that was acknowledged is there.
func (s *survivor) stands(l line) bool {
	j, there := s.sight.jobs[l.job]
	switch l.word {
	case did + opEnqueue:
		return there
	case ended:
		return there && j.State.Ended()
	}
	return true
}

// missing are the acknowledged things that are gone.
func (s *survivor) missing() (gone []line) {
	for _, l := range s.acks {
		if !s.stands(l) {
			gone = append(gone, l)
		}
	}
	return gone
}

// judgePast: nothing is left that was only begun after something that is gone
// had been acknowledged.
func (s *survivor) judgePast(gone []line) {
	s.t.Helper()
	lost := map[line]bool{}
	for _, l := range gone {
		lost[l] = true
	}
	over := false
	for _, l := range s.acks {
		over = over || lost[l]
		_, there := s.sight.jobs[l.job]
		s.check(!over || l.word != doing+opEnqueue || !there, "job %s is there although what was acknowledged before it was begun is gone", l.job)
	}
}

// finishCopy lets a clean worker do the rest of the copy.
func (s *survivor) finishCopy() {
	s.t.Helper()
	for range 20 {
		s.ahead += 10 * time.Minute
		s.with(func(st *sqlite.Store) {
			must(s.t, sweep(st))
			s.drain(mortal{st, newMortality(order{}), diary{discarded(s.t)}})
			got, err := look(st)
			must(s.t, err)
			s.sight = got
		})
		if s.judgeBooks(s.sight); s.sight.books.Live == 0 {
			return
		}
	}
	s.check(false, "a clean worker finishes: %d jobs are live", s.sight.books.Live)
}

func discarded(t *testing.T) *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// lookDamaged looks at a file as people do: the start, all reads, settle audit,
// settle repair. It returns who complained.
func (s *survivor) lookDamaged() (how string, err error) {
	st, err := openStore(s.path, s.ahead, true)
	if err != nil {
		var refused *settle.RefusedError
		s.check(errors.As(err, &refused) && refused.Recover != "", "P15: a refusal names the command that recovers: %v", err)
		return "refused", err
	}
	s.sight, err = look(st)
	if err == nil && !s.sight.books.Balanced() {
		err = errors.New("the books do not balance")
	}
	if err := errors.Join(err, st.Close()); err != nil {
		return "audit reports it", err
	}
	if err := sound(s.path); err != nil {
		return "settle repair finds it", err
	}
	return "a moment of the past", nil
}

func first(l []line) line {
	if len(l) == 0 {
		return line{}
	}
	return l[0]
}
