package child

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// How long a pipe is still read after its command has ended: a process that
// left the group may hold it open for ever. What the command itself wrote is
// read in any case: it is on its way as long as something comes, or is being
// written; pipeRounds bounds that for others who go on writing.
const (
	pipeWait   = 250 * time.Millisecond
	pipeRounds = 20
)

// streams are a command's standard streams. What is in memory goes through
// pipes.
type streams struct {
	files  []*os.File // the command's
	theirs []*os.File // its ends of pipes, which are ours until it has started
	ours   []*os.File // the other ends
	copies []func()
	copy   sync.WaitGroup
	moved  atomic.Int64 // bytes that have been read from the command
	busy   atomic.Int64 // writers that are at work with them
}

// connect makes the streams of a command.
func connect(s Spec, null *os.File) (*streams, error) {
	st := &streams{}
	in, err1 := st.input(s.Input, null)
	out, err2 := st.output(s.Stdout, null)
	errs, err3 := st.output(s.Stderr, null)
	if err := errors.Join(err1, err2, err3); err != nil {
		st.close()
		return nil, err
	}
	st.files = []*os.File{in, out, errs}
	return st, nil
}

func (st *streams) input(b []byte, null *os.File) (*os.File, error) {
	if len(b) == 0 {
		return null, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	st.theirs, st.ours = append(st.theirs, r), append(st.ours, w)
	st.copies = append(st.copies, func() {
		_, _ = w.Write(b) // a command may leave its input unread
		w.Close()
	})
	return r, nil
}

func (st *streams) output(to io.Writer, null *os.File) (*os.File, error) {
	switch to := to.(type) {
	case nil:
		return null, nil
	case *os.File:
		return to, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	st.theirs, st.ours = append(st.theirs, w), append(st.ours, r)
	st.copies = append(st.copies, func() { _, _ = io.Copy(&counted{to, st}, r) })
	return w, nil
}

// counted tells the streams what passes through a writer.
type counted struct {
	w  io.Writer
	st *streams
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	c.st.busy.Add(1)
	defer c.st.busy.Add(-1)
	c.st.moved.Add(int64(len(b)))
	return c.w.Write(b)
}

// begin lets go of the command's ends, once it has started, and copies.
func (st *streams) begin() {
	for _, f := range st.theirs {
		f.Close()
	}
	for _, f := range st.copies {
		st.copy.Go(f)
	}
}

// finish reads what is still in the pipes.
func (st *streams) finish() {
	done := make(chan struct{})
	go func() { st.copy.Wait(); close(done) }()
	tick := time.NewTicker(pipeWait)
	defer tick.Stop()
	for moved, rounds := st.moved.Load(), 0; ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if st.busy.Load() > 0 {
			moved = -1 // there may be more behind it
			continue
		}
		now := st.moved.Load()
		if rounds++; now == moved || rounds == pipeRounds {
			st.close()
			<-done
			return
		}
		moved = now
	}
}

// close closes every pipe; one that is closed stays so.
func (st *streams) close() {
	for _, f := range append(st.theirs[:len(st.theirs):len(st.theirs)], st.ours...) {
		f.Close()
	}
}
