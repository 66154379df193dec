package xrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

func TestItemsAreBytesAndStandInArgumentsAndEnvironment(t *testing.T) {
	r := newRunner(t)
	c := r.config("sh", "-c", `printf '%s|%s|%s|%s\n' "$1" "$2" "$SETTLE_ITEM" "$SETTLE_ATTEMPT"; test -n "$SETTLE_JOB"`, "sh", "{}", "n{#}-{/.}")
	c.Ordered, c.NUL = true, true
	r.run(c, "d/a b.txt\x00two\nlines\x00\xff\xfe.x\x00 \x00").want(t, 0,
		"d/a b.txt|n1-a b|d/a b.txt|1\ntwo\nlines|n2-two\nlines|two\nlines|1\n\xff\xfe.x|n3-\xff\xfe|\xff\xfe.x|1\n |n4- | |1\n")
}

func TestAnItemThatNoCommandCanTakeDiesWithAReason(t *testing.T) {
	r := newRunner(t)
	s := r.run(r.config("true"), "ok\n"+strings.Repeat("fill", 20_000)+"\nnul\x00here\n"+strings.Repeat("x", 200_000)+"\n"+strings.Repeat("y", 2<<20)+"\n")
	if s.code != 3 {
		t.Fatalf("code %d: %s", s.code, s.err)
	}
	s.says(t, "2 items succeeded, 3 did not", "holds a NUL byte", "add -0", "argument list too long", "refused", "2097152 bytes long")
}

func TestReadingPausesWhileTheStoreIsFull(t *testing.T) {
	r := newRunner(t)
	r.conf.MaxJobs = 20
	c := r.sh(`sleep 0.005; echo $1`)
	c.Ordered = true
	s := r.run(c, lines(200))
	s.want(t, 0, lines(200))
	s.says(t, "the store is full", "200 items succeeded")
}

func TestASlowInputIsRunAsItComes(t *testing.T) {
	r := newRunner(t)
	in, w := io.Pipe()
	var out safeBuffer
	c := r.sh(`echo $1`)
	c.Out = &out
	done := make(chan said)
	go func() { done <- r.read(c, in) }()
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(w, "%d\n", i)
		await(t, "the output of an item while the input is open", func() bool { return out.String() == lines(i) })
	}
	w.Close()
	if s := <-done; s.code != 0 {
		t.Error(s.err)
	}
}

func TestItemsSeparatedByNULWithoutTheFlagAreAUsageError(t *testing.T) {
	r := newRunner(t)
	s := r.run(r.sh(`echo "$1" >> log`), "a\x00b\x00")
	var usage *UsageError
	if !errors.As(s.fault, &usage) || !strings.Contains(s.fault.Error(), "add -0") {
		t.Errorf("got %v: %s", s.fault, s.err)
	}
	if jobs := r.jobs(); len(jobs) > 0 || r.file("log") != "" {
		t.Errorf("%d items were stored", len(jobs))
	}
}

func TestABrokenInputIsSaidAndWhatWasReadRuns(t *testing.T) {
	r := newRunner(t)
	boom := errors.New("the disk is gone")
	s := r.read(r.sh(`echo $1`), io.MultiReader(strings.NewReader("a\nb\ncut"), &failing{boom}))
	if s.code != 1 || sorted(s.out) != "a\nb\n" {
		t.Fatalf("code %d, output %q: %s", s.code, s.out, s.err)
	}
	s.says(t, "the disk is gone")
}

type failing struct{ err error }

// Read implements io.Reader.
func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestWhatCannotBeRunIsAUsageErrorBeforeAnythingIsStored(t *testing.T) {
	r := newRunner(t)
	plain := r.dir + "/plain"
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"not found":                  r.config("no-such-command", "{}"),
		"cannot be executed":         r.config("./plain"),
		"without a shell":            r.config("echo {} | wc -l"),
		"sh -c":                      r.config("echo a > b"),
		"want a command":             r.config(),
		"--jobs 0":                   func() Config { c := r.config("true"); c.Jobs = 0; return c }(),
		"--attempts 1001":            func() Config { c := r.config("true"); c.Attempts = 1001; return c }(),
		"--timeout -1s":              func() Config { c := r.config("true"); c.Timeout = -time.Second; return c }(),
		"in --ok and in --ter":       func() Config { c := r.config("true"); c.OK, c.Terminal = []int{1}, []int{1}; return c }(),
		"--terminal 0: 0 is success": func() Config { c := r.config("true"); c.Terminal = []int{3, 0}; return c }(),
		"want 1ms to 30d":            func() Config { c := r.config("true"); c.Timeout = 31 * 24 * time.Hour; return c }(),
		"want 0 to 255":              func() Config { c := r.config("true"); c.OK = []int{256}; return c }(),
		"control or invisible":       func() Config { c := r.config("true"); c.Name = "a\x1bb"; return c }(),
		"the limit is 200":           func() Config { c := r.config("true"); c.Name = strings.Repeat("x", 300); return c }(),
	} {
		c.In = strings.NewReader("a\n")
		_, err := Prepare(c)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("want a usage error that says %q, got %v", name, err)
		}
	}
}

func TestADryRunShowsWhatWouldRunAndChangesNothing(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`test $1 != b || exit 64`)
	r.run(c, "a\nb\n")
	dry := func(st settle.Store, c Config) string {
		var out, errs strings.Builder
		c.In, c.Out, c.Err = strings.NewReader("a\nb\nc d\n"), &out, &errs
		p, err := Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.DryRun(context.Background(), st); err != nil {
			t.Fatal(err)
		}
		return out.String() + errs.String()
	}
	st, err := sqlite.Open(r.db, sqlite.Config{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	line := "run     sh -c 'test $1 != b || exit 64' sh "
	if got, want := dry(st, c), "skip    'a' (succeeded)\nskip    'b' (dead)\n"+line+"'c d'\nsettle: run test would run 1 item and skip 1 succeeded, 1 dead; nothing was changed\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.RetryDead = true
	if got, want := dry(st, c), "skip    'a' (succeeded)\n"+line+"b\n"+line+"'c d'\nsettle: run test would run 2 items and skip 1 succeeded; nothing was changed\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.RetryDead = false
	if got := dry(nil, c); strings.Count(got, line) != 3 || !strings.Contains(got, "run 3 items and skip none") {
		t.Errorf("without a database: %s", got)
	}
}

func TestTheNumberOfAnItemStaysWhenItIsTriedAgain(t *testing.T) {
	r := newRunner(t)
	c := r.config("sh", "-c", `echo "$1 is $2"; test $1 != b || test -e go`, "sh", "{}", "{#}")
	c.Ordered, c.Attempts = true, 1
	r.run(c, "a\nb\nc\n").want(t, 3, "a is 1\nc is 3\n")
	if err := os.WriteFile(r.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.RetryDead = true
	r.run(c, "x\nc\nb\n").want(t, 0, "x is 1\nb is 2\n")
}
