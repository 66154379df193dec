//go:build linux

package kill

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// diary is a file to which processes append what they do, in one write a line
// or more. A kill can cut a write short: so a line begins with its own line
// feed, and counts only with its full stop.
type diary struct{ f *os.File }

func openDiary(path string) (diary, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return diary{f}, err
}

// line is one entry: a word, a job, a number.
type line struct {
	word string
	job  settle.ID
	n    int
	at   time.Time
}

// The words. What comes in pairs is written before a call, and after it has
// been acknowledged; n is the attempt, or how many.
const (
	up      = "up"    // the child is about to begin
	started = "start" // a handler begins
	ended   = "end"   // an end has been acknowledged
	doing   = "do:"   // + operation
	did     = "did:"  // + operation
)

func (d diary) write(lines ...line) {
	var b strings.Builder
	now := time.Now().UnixMicro()
	for _, l := range lines {
		fmt.Fprintf(&b, "\n%s %s %d %d .", l.word, l.job, l.n, now)
	}
	if _, err := d.f.WriteString(b.String()); err != nil {
		panic(err)
	}
}

// reader reads a diary that grows, each line once.
type reader struct {
	path  string
	from  int64
	lines []line
}

// all returns all lines so far. A last line that is not whole is left for later.
func (r *reader) all(t *testing.T) []line {
	t.Helper()
	f, err := os.Open(r.path)
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	defer f.Close()
	_, err = f.Seek(r.from, io.SeekStart)
	must(t, err)
	b, err := io.ReadAll(f)
	must(t, err)
	if !bytes.HasSuffix(b, []byte(" .")) {
		b = b[:max(0, bytes.LastIndexByte(b, '\n'))]
	}
	r.from += int64(len(b))
	for s := range strings.Lines(string(b)) {
		if s, whole := strings.CutSuffix(strings.TrimSuffix(s, "\n"), " ."); whole {
			r.lines = append(r.lines, parseLine(t, s))
		}
	}
	return r.lines
}

func parseLine(t *testing.T, s string) (l line) {
	t.Helper()
	var id string
	var at int64
	_, err := fmt.Sscan(s, &l.word, &id, &l.n, &at)
	if err == nil {
		l.job, err = settle.ParseID(id)
	}
	must(t, err)
	l.at = time.UnixMicro(at)
	return l
}
