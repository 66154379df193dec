//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/settle-go/settle"
)

// nobody is a user without any rights.
const nobody = 65534

// asNobody runs a command line as an unprivileged user. Root does so by
// another user's name; everybody else is one already.
func asNobody(t *testing.T, args ...string) answer {
	t.Helper()
	who := uint32(0)
	if os.Geteuid() == 0 {
		who = nobody
	}
	p := command(t, who, args...)
	p.Dir = "/"
	var out bytes.Buffer
	p.Stdout = &out
	err := p.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return answer{p.ProcessState.ExitCode(), out.String(), p.err.String()}
}

// openUp lets other users through to the test binary and the folder.
func openUp(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir)), filepath.Dir(os.Args[0]), filepath.Dir(filepath.Dir(os.Args[0]))} {
		if info, err := os.Stat(d); err == nil && info.Mode().Perm()&0o005 != 0o005 {
			if err := os.Chmod(d, info.Mode()|0o055); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAReadOnlyFolderIsAClearError for one who may not write there.
func TestAReadOnlyFolderIsAClearError(t *testing.T) {
	dir := t.TempDir()
	openUp(t, dir)
	db := filepath.Join(dir, "settle.db")
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	a := asNobody(t, "enqueue", "a", "1", "--db", db)
	if a.code != exitFailed || !strings.Contains(a.err, "to recover:") || !strings.Contains(a.err, db) {
		t.Errorf("a new file: exit %d, %s", a.code, a.err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		must(t, db, "", "enqueue", "a", "1") // root's file
		for _, args := range [][]string{{"enqueue", "a", "1"}, {"work", "--exec", "a=cat", "--drain"}, {"cancel", settle.NewID().String()}, {"migrate"}, {"repair"}} {
			a := asNobody(t, append(args, "--db", db)...)
			if a.code == exitOK || !strings.Contains(a.err, "to recover:") || strings.Contains(a.err, "panic") {
				t.Errorf("%v on another's file: exit %d, %s", args, a.code, a.err)
			}
		}
	}
}

// TestWhatIsNoDatabaseIsAClearError: folders, other files, pipes.
func TestWhatIsNoDatabaseIsAClearError(t *testing.T) {
	dir := t.TempDir()
	text, fifo, empty := filepath.Join(dir, "text"), filepath.Join(dir, "fifo"), filepath.Join(dir, "empty")
	if err := errors.Join(os.WriteFile(text, []byte(strings.Repeat("hello world\n", 1000)), 0o644), syscall.Mkfifo(fifo, 0o644), os.WriteFile(empty, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{dir, text, fifo, filepath.Join(dir, "no", "settle.db"), filepath.Join(text, "settle.db")} {
		for _, args := range [][]string{{"enqueue", "a", "1"}, {"jobs"}, {"status"}, {"work", "--exec", "a=cat"}, {"migrate"}} {
			a := run(t, db, "", args...)
			if a.code != exitFailed && a.code != exitUsage || !strings.HasPrefix(a.err, "settle: ") || !strings.Contains(a.err, filepath.Base(db)) {
				t.Errorf("%v on %s: exit %d, %q", args, db, a.code, a.err)
			}
		}
	}
	if b, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(b), "hello world\nhello") {
		t.Errorf("the text has been changed: %v", err)
	}
	must(t, empty, "", "enqueue", "a", "1") // an empty file is an empty database
}
