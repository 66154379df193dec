package xrun

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// runner carries out starts of runs in a folder of its own.
type runner struct {
	t    *testing.T
	dir  string
	db   string
	conf sqlite.Config
}

func newRunner(t *testing.T) *runner {
	dir := t.TempDir()
	return &runner{t: t, dir: dir, db: filepath.Join(dir, "settle.db"), conf: sqlite.Config{Synchronous: sqlite.Normal}}
}

// config is what most tests start with.
func (r *runner) config(command ...string) Config {
	return Config{Command: command, Name: "test", DB: r.db, Again: "settle run …", Folder: r.dir, dir: r.dir, Env: os.Environ(), Out: io.Discard, Err: io.Discard,
		Jobs: 2, Attempts: 3, Timeout: time.Minute, Grace: 10 * time.Second, Backoff: 10 * time.Millisecond}
}

// sh is a shell script as a command; the item is $1.
func (r *runner) sh(script string) Config { return r.config("sh", "-c", script, "sh", "{}") }

// said is what one start came to.
type said struct {
	code     int
	out, err string
	fault    error
}

// run carries out one start with this input.
func (r *runner) run(c Config, input string) said {
	r.t.Helper()
	return r.read(c, strings.NewReader(input))
}

func (r *runner) read(c Config, in io.Reader) (s said) {
	r.t.Helper()
	st, err := sqlite.Open(r.db, r.conf)
	if err != nil {
		r.t.Fatal(err)
	}
	defer st.Close()
	return r.on(st, c, in)
}

// on carries out one start on an open store.
func (r *runner) on(st settle.Store, c Config, in io.Reader) (s said) {
	var out, err safeBuffer
	c.In = in
	if c.Out == io.Discard {
		c.Out = &out
	}
	c.Err = &err
	p, fault := Prepare(c)
	if fault != nil {
		return said{code: -1, fault: fault}
	}
	s.code, s.fault = p.Start(context.Background(), st)
	s.out, s.err = out.String(), err.String()
	return s
}

// want checks the exit code and the output.
func (s said) want(t *testing.T, code int, out string) {
	t.Helper()
	if s.fault != nil {
		t.Fatalf("%v", s.fault)
	}
	if s.code != code || s.out != out {
		t.Fatalf("exit code %d, want %d; output %q, want %q; it said:\n%s", s.code, code, s.out, out, s.err)
	}
}

// says checks what was said.
func (s said) says(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(s.err, w) {
			t.Errorf("it does not say %q, but:\n%s", w, s.err)
		}
	}
}

// jobs reads all jobs of the run.
func (r *runner) jobs() (out []settle.Job) {
	r.t.Helper()
	st, err := sqlite.Open(r.db, sqlite.Config{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer st.Close()
	for j, err := range settle.NewClient(st).List(context.Background(), settle.Filter{Queue: "run/test"}) {
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, j)
	}
	return out
}

// file reads a file of the folder; "" if there is none.
func (r *runner) file(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(b)
}

// safeBuffer may be written and read at once.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await polls until what must come true has come true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(number(i+1) + "\n")
	}
	return b.String()
}
