//go:build linux

package runlock

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	idA = [16]byte{1, 2, 3}
	idB = [16]byte{4, 5, 6}
)

// TestMain makes the test binary also a program that takes the lock, notes an
// attempt and waits for its end.
func TestMain(m *testing.M) {
	if path := os.Getenv("RUNLOCK_TEST_PATH"); path != "" {
		l, err := Take(path)
		if err != nil {
			panic(err)
		}
		l.Begin(0, idB, 1)
		l.Begin(2, idA, 3)
		l.End(0)
		println("held")
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

// elsewhere starts a process that holds the lock.
func elsewhere(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "RUNLOCK_TEST_PATH="+path)
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if s := bufio.NewScanner(out); !s.Scan() || s.Text() != "held" {
		t.Fatalf("the other process said %q", s.Text())
	}
	return c
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "run.lock") }

func TestALivingProcessKeepsTheLockAndIsNamed(t *testing.T) {
	p := path(t)
	c := elsewhere(t, p)
	_, err := Take(p)
	var busy *BusyError
	if !errors.As(err, &busy) || busy.PID != c.Process.Pid {
		t.Fatalf("got %v, want busy with process %d", err, c.Process.Pid)
	}
}

func TestAKilledProcessLeavesTheLockAndWhatItRan(t *testing.T) {
	p := path(t)
	elsewhere(t, p).Process.Kill()
	l, err := Take(p)
	if err != nil {
		t.Fatal(err)
	}
	b := l.Before()
	for _, c := range []struct {
		id  [16]byte
		n   int
		ran bool
	}{{idA, 3, true}, {idA, 2, false}, {idB, 1, false}} {
		if got := b.Ran(c.id, c.n); got != c.ran {
			t.Errorf("attempt %d of %x: ran = %v, want %v", c.n, c.id[:3], got, c.ran)
		}
	}
	l.Release(false)
	l, err = Take(p)
	if err != nil {
		t.Fatal(err)
	}
	if l.Before().Ran(idA, 3) {
		t.Error("the table of the process before the last is still believed")
	}
	l.Release(true)
	if _, err := os.Stat(p); !os.IsNotExist(err) {
		t.Errorf("the file stays after a finished run: %v", err)
	}
}

func TestATableThatIsNotKnownToBeOfThisStartOfTheMachineIsNotBelieved(t *testing.T) {
	for name, content := range map[string]string{
		"none": "", "short": "settle-run 1 pid 3", "garbage": strings.Repeat("x", 500),
		"other boot": "settle-run 1 pid 3 boot other" + strings.Repeat(" ", 500),
	} {
		p := path(t)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Take(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !l.Before().Ran(idA, 1) {
			t.Errorf("%s: an attempt is taken to have never run", name)
		}
		l.Release(true)
	}
}

func TestAFolderThatDoesNotExistIsNamed(t *testing.T) {
	_, err := Take("/no/such/folder/x.lock")
	if err == nil || !strings.Contains(err.Error(), "/no/such/folder/x.lock") {
		t.Errorf("got %v", err)
	}
}
