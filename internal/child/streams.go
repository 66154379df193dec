package child

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// pipeWait is how long a pipe is still read after its command has ended: a
// process that left the group may hold it open for ever.
const pipeWait = 250 * time.Millisecond

// streams are a command's standard streams. What is in memory goes through
// pipes.
type streams struct {
	files  []*os.File // the command's
	theirs []*os.File // its ends of pipes, which are ours until it has started
	ours   []*os.File // the other ends
	copies []func()
	copy   sync.WaitGroup
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
	st.copies = append(st.copies, func() { _, _ = io.Copy(to, r) })
	return w, nil
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
	late := time.AfterFunc(pipeWait, st.close)
	st.copy.Wait()
	late.Stop()
}

// close closes every pipe; one that is closed stays so.
func (st *streams) close() {
	for _, f := range append(st.theirs[:len(st.theirs):len(st.theirs)], st.ours...) {
		f.Close()
	}
}
