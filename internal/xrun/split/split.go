// Package split reads items from a stream: one a line, or separated by NUL.
package split

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Max is the longest item in bytes.
const Max = 1 << 20

// buffer is how much is read at once.
const buffer = 64 << 10

// TooLongError: an item is longer than Max. It was skipped, and reading may go
// on.
type TooLongError struct {
	Line int64 // its line, or its place among the items with NUL
	Size int64 // its length in bytes
}

// Error names the line and both lengths.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("input line %d is %d bytes long, the limit is %d", e.Line, e.Size, Max)
}

// ErrNUL: a NUL byte stands at the beginning of input that is read by lines.
var ErrNUL = errors.New("the input holds NUL bytes, which no argument of a command can hold: if its items are separated by NUL (find -print0), add -0")

// Reader reads items. It is not safe for concurrent use.
type Reader struct {
	r    *bufio.Reader
	end  byte
	nul  bool
	line int64
}

// New returns a reader of r. nul says that items are separated by NUL bytes,
// not by line ends.
func New(r io.Reader, nul bool) *Reader {
	s := &Reader{r: bufio.NewReaderSize(r, buffer), end: '\n', nul: nul}
	if nul {
		s.end = 0
	}
	return s
}

// Check looks at the first bytes of the input, waiting for them, and returns
// ErrNUL if items are read by lines and a NUL is among them.
func (s *Reader) Check() error {
	if s.nul {
		return nil
	}
	s.r.Peek(1) // an error comes back from the first Next
	head, _ := s.r.Peek(s.r.Buffered())
	if bytes.IndexByte(head, 0) >= 0 {
		return ErrNUL
	}
	return nil
}

// Line is the number of the line that Next returned last, from 1; blank lines
// count.
func (s *Reader) Line() int64 { return s.line }

// Next returns the next item, exactly as it stands, without what ends it. The
// last line may lack its end. Blank lines (spaces, tabs and carriage returns
// alone) are skipped, with NUL empty items. Errors: io.EOF at the end,
// TooLongError, errors of the stream (what had been read of the item then is
// lost: it may be cut).
func (s *Reader) Next() ([]byte, error) {
	for {
		item, size, err := s.read()
		if size == 0 && err != nil {
			return nil, err
		}
		s.line++
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("input line %d: %w", s.line, err)
		case size > Max:
			return nil, &TooLongError{s.line, size}
		case s.blank(item):
			continue
		}
		return item, nil
	}
}

// read reads up to the next end. It keeps at most Max bytes and counts all.
func (s *Reader) read() (item []byte, size int64, err error) {
	for {
		piece, err := s.r.ReadSlice(s.end)
		ended := err == nil
		read := len(piece)
		if ended {
			piece = piece[:read-1]
		}
		size += int64(len(piece))
		if size <= Max {
			item = append(item, piece...)
		}
		switch {
		case ended && size == 0:
			return nil, 0, nil
		case ended:
			return item, size, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return item, size, err
		}
	}
}

func (s *Reader) blank(item []byte) bool {
	if s.nul {
		return len(item) == 0
	}
	return len(bytes.Trim(item, " \t\r")) == 0
}
