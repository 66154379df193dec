package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The store is a model of the product's: waits in memory, a compare-and-set on
// (job, attempt), and a journal that is synced before an answer counts as
// settled. It lives in the measuring process, so it survives every bridge.

type verdict uint8

const (
	applied verdict = iota
	already         // this attempt had been settled
	stale           // the job has another attempt
	unknown         // no such job, or unreadable
	verdicts
)

type wait struct {
	attempt           uint64
	answered, settled time.Duration // since the case began; 0 = not yet
	acked             time.Duration // when Redis confirmed the answer to the node
}

type store struct {
	mu      sync.Mutex
	began   time.Time
	waits   []wait
	open    []int // not answered yet
	ended   []int // settled, in this order
	count   [verdicts]int
	commits int
	stall   atomic.Bool   // commits wait
	lag     time.Duration // between a commit and its confirmation
	journal *os.File
	socket  net.Listener
}

func newStore(dir string, waits int) *store {
	f, err := os.Create(filepath.Join(dir, "journal"))
	must(err)
	l, err := net.Listen("unix", filepath.Join(dir, "store"))
	must(err)
	s := &store{journal: f, socket: l, began: time.Now()}
	for range waits {
		s.park()
	}
	server := rpc.NewServer()
	must(server.RegisterName("Store", &remote{s}))
	go s.serve(server)
	return s
}

func (s *store) serve(r *rpc.Server) {
	for {
		c, err := s.socket.Accept()
		if err != nil {
			return
		}
		go r.ServeConn(c)
	}
}

func (s *store) now() time.Duration { return time.Since(s.began) }

func (s *store) park() {
	s.open = append(s.open, len(s.waits))
	s.waits = append(s.waits, wait{attempt: rand.Uint64()})
}

// answer takes a random open wait as answered now, and parks another.
func (s *store) answer() ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := rand.IntN(len(s.open))
	job := s.open[i]
	s.open[i] = s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.waits[job].answered = s.now()
	s.park()
	return ticket{job, s.waits[job].attempt}
}

func (s *store) ack(t ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := &s.waits[t.Job]; w.attempt == t.Attempt && w.answered > 0 {
		w.acked = s.now()
	}
}

// apply settles what can be settled, in one commit.
func (s *store) apply(batch []ticket) []verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]verdict, len(batch))
	for i, t := range batch {
		out[i] = s.settle(t)
		s.count[out[i]]++
	}
	must(syscall.Fdatasync(int(s.journal.Fd())))
	s.commits++
	at := s.now()
	for i, t := range batch {
		if out[i] == applied {
			s.waits[t.Job].settled = at
		}
	}
	return out
}

func (s *store) settle(t ticket) verdict {
	switch {
	case t.Job < 0 || t.Job >= len(s.waits):
		return unknown
	case s.waits[t.Job].attempt != t.Attempt:
		return stale
	case s.waits[t.Job].settled > 0:
		return already
	}
	s.waits[t.Job].settled = s.now()
	s.ended = append(s.ended, t.Job)
	_, err := fmt.Fprintf(s.journal, "%d %x\n", t.Job, t.Attempt)
	must(err)
	return applied
}

// doubled reads the journal back: how many attempts stand there twice.
func (s *store) doubled() (n int) {
	_, err := s.journal.Seek(0, 0)
	must(err)
	seen := map[string]bool{}
	for in := bufio.NewScanner(s.journal); in.Scan(); {
		if seen[in.Text()] {
			n++
		}
		seen[in.Text()] = true
	}
	return n
}

// left answers how many confirmed answers are not settled.
func (s *store) left() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.waits {
		if s.waits[i].acked > 0 && s.waits[i].settled == 0 {
			n++
		}
	}
	return n
}

func (s *store) settledSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[applied]
}

func (s *store) close() {
	s.socket.Close()
	s.journal.Close()
}

// remote is what a bridge may call.
type remote struct{ s *store }

func (r *remote) Apply(batch []ticket, out *[]verdict) error {
	for r.s.stall.Load() {
		time.Sleep(time.Millisecond)
	}
	*out = r.s.apply(batch)
	time.Sleep(r.s.lag)
	return nil
}

// Seen says how much of the list of waits and of their ends a bridge knows.
type Seen struct{ Waits, Ended int }

// Changes is what has been added to the lists since.
type Changes struct {
	Waits []ticket
	Ended []int
}

// Waits is asked by form A only: what to poll.
func (r *remote) Waits(from Seen, out *Changes) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	to := min(from.Waits+50_000, len(r.s.waits))
	for job := from.Waits; job < to; job++ {
		out.Waits = append(out.Waits, ticket{job, r.s.waits[job].attempt})
	}
	out.Ended = append(out.Ended, r.s.ended[from.Ended:]...)
	return nil
}
