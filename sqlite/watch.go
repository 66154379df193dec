package sqlite

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/settle-go/settle"
)

// hints is what a transaction tells others once it is committed.
type hints struct {
	lanes map[hint]struct{}
	ends  []settle.ID
	all   bool
}

type hint struct {
	queue string
	lane  settle.Lane
}

func (h *hints) lane(queue string, lane int64) {
	if h.lanes == nil {
		h.lanes = map[hint]struct{}{}
	}
	h.lanes[hint{queue, settle.Lane(lane)}] = struct{}{}
}

func (h *hints) anywhere()        { h.all = true }
func (h *hints) end(id settle.ID) { h.ends = append(h.ends, id) }

// bus tells this process about its own commits.
type bus struct {
	mu      sync.RWMutex
	listen  map[*listener]struct{}
	watched map[settle.ID][]chan<- settle.ID
}

type listener struct {
	queue string
	nudge func(settle.Lane)
}

func (s *Store) tell(h *hints) {
	if len(h.lanes) == 0 && len(h.ends) == 0 && !h.all {
		return
	}
	b := &s.bus
	b.mu.RLock()
	defer b.mu.RUnlock()
	for l := range b.listen {
		for k := range h.lanes {
			if k.queue == l.queue {
				l.nudge(k.lane)
			}
		}
		if h.all {
			l.nudge(0)
		}
	}
	if len(b.watched) == 0 {
		return
	}
	for _, id := range h.ends {
		for _, c := range b.watched[id] {
			select {
			case c <- id:
			default: // its reader polls too
			}
		}
	}
}

// How often another process's commits are looked for, and how often once nothing
// has been written for a while: a process with nothing to do should cost nothing.
const (
	otherPoll = 10 * time.Millisecond
	quietPoll = 30 * time.Millisecond
)

// Listen calls nudge for every commit of this process that concerns the queue,
// and with 0 when another process has committed anything: that is seen by
// PRAGMA data_version on the writing connection, where only others' commits
// change it. It is asked while the log has been written to of late: looking at
// a file costs a hundredth of it.
func (s *Store) Listen(ctx context.Context, queue string, nudge func(settle.Lane)) error {
	l := &listener{queue, nudge}
	s.bus.mu.Lock()
	if s.bus.listen == nil {
		s.bus.listen = map[*listener]struct{}{}
	}
	s.bus.listen[l] = struct{}{}
	s.bus.mu.Unlock()
	defer func() {
		s.bus.mu.Lock()
		delete(s.bus.listen, l)
		s.bus.mu.Unlock()
	}()
	tick := time.NewTimer(otherPoll)
	defer tick.Stop()
	var log fileLook
	for last := int64(-1); ; tick.Reset(log.pause()) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s.closed.Load() {
			return fmt.Errorf("listen: %w", settle.ErrClosed)
		}
		if !log.written(s.path+"-wal") && last >= 0 {
			continue
		}
		version, ok := s.version()
		if ok && last >= 0 && version != last {
			nudge(0)
		}
		if ok {
			last = version
		}
	}
}

// fileLook tells whether the write-ahead log has been written to lately. A clock
// of files may stand still for some milliseconds, so after a change it goes on
// saying yes for a while.
type fileLook struct {
	size  int64
	at    time.Time
	quiet int // looks since the last change
}

const quietLooks = 20

// pause is how long until the next look.
func (l *fileLook) pause() time.Duration {
	if l.quiet < 10*quietLooks {
		return otherPoll
	}
	return quietPoll
}

func (l *fileLook) written(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err != nil: // nobody knows
		l.quiet = 0
	case info.Size() != l.size || !info.ModTime().Equal(l.at):
		l.size, l.at, l.quiet = info.Size(), info.ModTime(), 0
	default:
		l.quiet++
	}
	return l.quiet < quietLooks
}

// version asks for others' commits, unless the writer is at work: then it is
// asked at the next tick.
func (s *Store) version() (int64, bool) {
	select {
	case s.w.turn <- struct{}{}:
	default:
		return 0, false
	}
	defer func() { <-s.w.turn }()
	v, err := number(s.w.c, `pragma data_version`)
	return v, err == nil
}

// Watch returns a channel that gets the id of each job when a commit of this
// process ends it.
func (s *Store) Watch(ids []settle.ID) (<-chan settle.ID, func()) {
	c := make(chan settle.ID, len(ids))
	b := &s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watched == nil {
		b.watched = map[settle.ID][]chan<- settle.ID{}
	}
	for _, id := range ids {
		b.watched[id] = append(b.watched[id], c)
	}
	return c, func() { b.unwatch(ids, c) }
}

func (b *bus) unwatch(ids []settle.ID, c chan<- settle.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		rest := b.watched[id][:0:0]
		for _, w := range b.watched[id] {
			if w != c {
				rest = append(rest, w)
			}
		}
		if len(rest) == 0 {
			delete(b.watched, id)
		} else {
			b.watched[id] = rest
		}
	}
}
