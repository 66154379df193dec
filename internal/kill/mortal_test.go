//go:build linux

package kill

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/settle-go/settle"
)

// The operations at which a child can die.
const (
	opEnqueue = "enqueue"
	opClaim   = "claim"
	opHandler = "handler"
	opSettle  = "settle"
	opTicket  = "ticket"
	opKeep    = "keep"
	opPark    = "park"
	opSweep   = "sweep"
	opRenew   = "renew"
	opPrune   = "prune"
	opMigrate = "migrate"
)

// When a child dies, as seen from the call.
const (
	before = "before"
	during = "during"
	after  = "after"
)

// die is kill -9 by one's own hand.
func die() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

// mortality knows the call that the process does not survive.
type mortality struct {
	o     order
	mu    sync.Mutex
	calls map[string]int
	spans map[string][]time.Duration // of earlier calls
}

func newMortality(o order) *mortality {
	return &mortality{o: o, calls: map[string]int{}, spans: map[string][]time.Duration{}}
}

// fatal counts a call and says whether it is the one.
func (m *mortality) fatal(op string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[op]++
	return op == m.o.Op && m.calls[op] == m.o.Nth
}

// around makes one call; it does not return from the fatal one.
func (m *mortality) around(op string, call func() error) error {
	fatal := m.fatal(op)
	switch {
	case fatal && m.o.When == before:
		die()
	case fatal && m.o.When == during:
		go dieIn(time.Duration(m.o.Part * float64(m.usual(op))))
	}
	began := time.Now()
	err := call()
	if fatal {
		if m.o.When == after {
			die()
		}
		select {} // its moment comes
	}
	m.mu.Lock()
	m.spans[op] = append(m.spans[op], time.Since(began))
	m.mu.Unlock()
	return err
}

// usual is how long such calls took so far.
func (m *mortality) usual(op string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := slices.Sorted(slices.Values(m.spans[op]))
	if len(s) == 0 {
		return 3 * time.Millisecond
	}
	return s[len(s)/2]
}

// dieIn waits without sleeping: a sleep is longer than most calls.
func dieIn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
	die()
}

// mortal is a store whose process dies at the order's point. It writes into the
// diary what is asked of it, and what it answered.
type mortal struct {
	settle.Store
	*mortality
	diary diary
}

// tell makes a call about jobs, with its lines before and after.
func (s mortal) tell(op string, about []line, call func() error) error {
	for i := range about {
		about[i].word = doing + op
	}
	s.diary.write(about...)
	err := s.around(op, call)
	if err == nil {
		for i := range about {
			about[i].word = did + op
		}
		s.diary.write(about...)
	}
	return err
}

// Insert wants jobs with ids.
func (s mortal) Insert(ctx context.Context, jobs ...settle.New) (out []settle.Inserted, err error) {
	about := make([]line, len(jobs))
	for i := range jobs {
		about[i].job = jobs[i].ID
	}
	err = s.tell(opEnqueue, about, func() (err error) {
		out, err = s.Store.Insert(ctx, jobs...)
		return err
	})
	return out, err
}

// Claim cannot know beforehand what it will bring.
func (s mortal) Claim(ctx context.Context, r settle.ClaimReq) (out settle.ClaimedJobs, err error) {
	err = s.around(opClaim, func() (err error) {
		out, err = s.Store.Claim(ctx, r)
		return err
	})
	var about []line
	for _, j := range out.Jobs {
		about = append(about, line{word: did + opClaim, job: j.ID, n: j.Attempt})
	}
	s.diary.write(about...)
	return out, err
}

// applies names what one Apply is about: sweeps compare alarms.
func applies(t settle.Transition) string {
	switch {
	case t.Fence.Seen != 0:
		return opSweep
	case t.Keep != nil:
		return opKeep
	case t.To == settle.Running:
		return opTicket
	case t.To == settle.Awaiting:
		return opPark
	default:
		return opSettle
	}
}

func (s mortal) Apply(ctx context.Context, ts []settle.Transition) (said []settle.Applied, err error) {
	if len(ts) == 0 {
		return nil, nil
	}
	about := make([]line, len(ts))
	for i, t := range ts {
		about[i] = line{job: t.Job, n: t.Fence.Attempt}
	}
	err = s.tell(applies(ts[0]), about, func() (err error) {
		said, err = s.Store.Apply(ctx, ts)
		return err
	})
	var ends []line
	for i, a := range said {
		if a == settle.Done && ts[i].To.Ended() {
			ends = append(ends, line{word: ended, job: ts[i].Job, n: ts[i].Attempt})
		}
	}
	s.diary.write(ends...)
	return said, err
}

// Renew writes how many seconds the lease is to last.
func (s mortal) Renew(ctx context.Context, worker int64, held []settle.Held, lease time.Duration) (lost []settle.ID, err error) {
	about := make([]line, len(held))
	for i := range held {
		about[i] = line{job: held[i].Job, n: int(lease / time.Second)}
	}
	err = s.tell(opRenew, about, func() (err error) {
		lost, err = s.Store.Renew(ctx, worker, held, lease)
		return err
	})
	return lost, err
}

// Prune writes how many were removed.
func (s mortal) Prune(ctx context.Context, k settle.Keep, limit int) (p settle.Pruned, err error) {
	err = s.around(opPrune, func() (err error) {
		p, err = s.Store.Prune(ctx, k, limit)
		return err
	})
	if p.Removed > 0 {
		s.diary.write(line{word: did + opPrune, n: p.Removed})
	}
	return p, err
}
