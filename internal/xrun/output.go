package xrun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// spool takes what a command writes: in memory while it is short, then in a
// file. It is written by one goroutine.
type spool struct {
	make   func() (*os.File, error)
	failed func() // called once, when it cannot be kept whole
	short  []byte
	file   *os.File
	size   int64
	err    error // it is not whole
}

// shortOutput is the longest output that waits in memory: most are shorter,
// and files that are open are few.
const shortOutput = 4 << 10

// Write never fails: a command that is refused would die of it, and be blamed.
func (s *spool) Write(b []byte) (int, error) {
	if s.err == nil {
		if s.err = s.write(b); s.err != nil {
			s.failed()
		}
	}
	return len(b), nil
}

func (s *spool) write(b []byte) (err error) {
	if s.file == nil {
		if len(s.short)+len(b) <= shortOutput {
			s.short = append(s.short, b...)
			s.size = int64(len(s.short))
			return nil
		}
		if s.file, err = s.make(); err != nil {
			return err
		}
		b = append(s.short, b...)
		s.short, s.size = nil, 0
	}
	n, err := s.file.Write(b)
	s.size += int64(n)
	return err
}

// take takes what was written.
func (s *spool) take() spooled { return spooled{s.short, s.file, s.size} }

// spoolError: output cannot be kept until it is passed on. It is this
// machine's fault, and nothing that writes much can succeed.
type spoolError struct{ err error }

func (e *spoolError) Error() string {
	return fmt.Sprintf("the output of items cannot be kept until it is passed on: %v; free some space there, or name another folder with TMPDIR", e.err)
}

func (e *spoolError) Unwrap() error { return e.err }

// passing reports whether a fault of a spool goes away by itself: others that
// run use up what is missing.
func passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// spooled is what a command wrote, until it is passed on: in memory when it is
// short, else in its file.
type spooled struct {
	short []byte
	file  *os.File
	size  int64
}

// tail returns at most the last n bytes.
func (s spooled) tail(n int64) []byte {
	if s.file == nil {
		return s.short[max(0, int64(len(s.short))-n):]
	}
	b := make([]byte, min(n, s.size))
	read, _ := s.file.ReadAt(b, s.size-int64(len(b)))
	return b[:read]
}

// close gives the file up.
func (s spooled) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// copyTo writes it all.
func (s spooled) copyTo(w io.Writer) error {
	if s.file == nil {
		if len(s.short) == 0 {
			return nil
		}
		_, err := w.Write(s.short)
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, io.LimitReader(s.file, s.size))
	return err
}

// tagged writes it all, each line behind a tag. A last line without an end
// gets one, so that the next item's tag begins a line.
func (s spooled) tagged(w io.Writer, tag []byte) error {
	t := &tagger{w: w, tag: tag}
	if err := s.copyTo(t); err != nil {
		return err
	}
	return t.end()
}

// tagger puts a tag before each line.
type tagger struct {
	w    io.Writer
	tag  []byte
	open bool // a line has begun
	buf  bytes.Buffer
}

// Write implements io.Writer.
func (t *tagger) Write(b []byte) (int, error) {
	t.buf.Reset()
	for line := range bytes.Lines(b) {
		if !t.open {
			t.buf.Write(t.tag)
		}
		t.buf.Write(line)
		t.open = line[len(line)-1] != '\n'
	}
	if _, err := t.w.Write(t.buf.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (t *tagger) end() error {
	if !t.open {
		return nil
	}
	_, err := t.w.Write([]byte{'\n'})
	return err
}

// tagOf is the tag of an item: the item and a tabulator, as parallel --tag
// writes it. Line ends in it would break the lines apart and become spaces.
func tagOf(item []byte) []byte {
	tag := append(bytes.Clone(item), '\t')
	for i, c := range tag {
		if c == '\n' || c == '\r' {
			tag[i] = ' '
		}
	}
	return tag
}

// output is standard output.
type output struct {
	w   io.Writer
	con *console
	tag bool
}

// outputError: standard output takes nothing any more. No item can succeed.
type outputError struct{ err error }

func (e *outputError) Error() string {
	if e.closed() {
		return "standard output was closed by its reader"
	}
	return fmt.Sprintf("write to standard output: %v", e.err)
}

func (e *outputError) Unwrap() error { return e.err }

func (e *outputError) closed() bool {
	return errors.Is(e.err, syscall.EPIPE) || errors.Is(e.err, io.ErrClosedPipe)
}

// write writes what one item brought, whole: nothing of another stands in it.
func (o *output) write(item []byte, s spooled) (err error) {
	if s.size == 0 {
		return nil
	}
	o.con.with(func() { err = o.emit(o.w, item, s) })
	if err != nil {
		return &outputError{err}
	}
	return nil
}

// aside writes what belongs on standard error: there a failure changes nothing.
func (o *output) aside(item []byte, s spooled) {
	if s.size > 0 {
		o.con.with(func() { _ = o.emit(o.con.err, item, s) })
	}
}

func (o *output) emit(w io.Writer, item []byte, s spooled) error {
	if o.tag {
		return s.tagged(w, tagOf(item))
	}
	return s.copyTo(w)
}
