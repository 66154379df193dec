//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain makes the test binary also a program that is killed: it starts what
// its arguments say and waits.
func TestMain(m *testing.M) {
	if script := os.Getenv("CHILD_TEST_SCRIPT"); script != "" {
		victim(script)
	}
	os.Exit(m.Run())
}

// victim runs the script and prints what it prints, until it is killed. The
// file 3, if any, is a lock.
func victim(script string) {
	r, err := New(os.NewFile(3, "lock"))
	if err != nil {
		panic(err)
	}
	_, err = r.Run(context.Background(), Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: os.Stdout, Stderr: os.Stderr})
	panic(fmt.Sprint("the script ended: ", err))
}

func runner(t *testing.T) *Runner {
	t.Helper()
	r, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func sh(t *testing.T, script string) Spec {
	t.Helper()
	out, err := Spool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: out, Stderr: out, Grace: func(error) time.Duration { return 5 * time.Second }}
}

// text is what a command of sh has written so far.
func text(t *testing.T, s Spec) string {
	t.Helper()
	b := make([]byte, 1<<16)
	n, _ := s.Stdout.(*os.File).ReadAt(b, 0)
	return string(b[:n])
}

func TestACommandEndsWithItsCodeOrItsSignal(t *testing.T) {
	r := runner(t)
	for script, want := range map[string]Result{
		"exit 0":        {},
		"exit 7":        {Code: 7},
		"kill -9 $$":    {Code: -1, Signal: syscall.SIGKILL},
		"kill -SEGV $$": {Code: -1, Signal: syscall.SIGSEGV},
	} {
		got, err := r.Run(context.Background(), sh(t, script))
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", script, got, err, want)
		}
	}
}

func TestACommandHasAGroupOfItsOwnAndNoInput(t *testing.T) {
	s := sh(t, `ps -o pgid= -p $$; echo $$; cat; echo end`)
	if _, err := runner(t).Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(text(t, s))
	if len(f) != 3 || f[0] != f[1] || f[2] != "end" {
		t.Errorf("got %q: want its pid twice, and an end at once", f)
	}
}

func TestTheEndOfTheContextEndsTheWholeGroup(t *testing.T) {
	for name, script := range map[string]string{
		"polite":   `sleep 100 & echo $!; wait`,
		"stubborn": `trap '' TERM; sleep 100 & echo $!; while :; do wait; done`,
	} {
		s := sh(t, script)
		s.Grace = func(error) time.Duration { return 50 * time.Millisecond }
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			await(t, func() bool { return text(t, s) != "" })
			cancel()
		}()
		got, err := runner(t).Run(ctx, s)
		if err != nil || !got.Cut || got.Code != -1 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(text(t, s)))
		await(t, func() bool { return dead(pid) })
	}
}

func TestWhatACommandLeavesBehindIsLeftAlone(t *testing.T) {
	s := sh(t, `sleep 100 & echo $!`)
	if _, err := runner(t).Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(text(t, s)))
	if dead(pid) {
		t.Error("a process in the background was killed")
	}
	syscall.Kill(pid, syscall.SIGKILL)
}

func TestKillEndsAllAtOnceAndStartsNothingMore(t *testing.T) {
	r := runner(t)
	s := sh(t, `trap '' TERM; echo up; sleep 100`)
	ended := make(chan Result)
	go func() {
		got, _ := r.Run(context.Background(), s)
		ended <- got
	}()
	await(t, func() bool { return text(t, s) != "" })
	r.Kill()
	if got := <-ended; got.Code != -1 {
		t.Errorf("got %+v", got)
	}
	if got, err := r.Run(context.Background(), sh(t, "sleep 100")); !errors.Is(err, ErrKilled) {
		t.Errorf("a command started after Kill and ended with %+v, %v", got, err)
	}
}

// The heart of it: after a SIGKILL of the program neither its command nor what
// that has started lives on, and the lock is free only then.
func TestAKillOfTheProgramKillsEveryDescendant(t *testing.T) {
	lock, err := os.CreateTemp(t.TempDir(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "CHILD_TEST_SCRIPT=sh -c 'sleep 100 & echo $!; sleep 100' & sleep 100 & echo $!; wait")
	c.ExtraFiles = []*os.File{lock}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close() // from now on the victim and its guard hold it
	other, err := os.OpenFile(lock.Name(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	pids := bufio.NewScanner(out)
	var descendants []int
	for len(descendants) < 2 && pids.Scan() {
		pid, err := strconv.Atoi(pids.Text())
		if err != nil {
			t.Fatal(err)
		}
		descendants = append(descendants, pid)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		t.Fatal("the lock is free while the program runs")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Process.Wait()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil { // waits for the guard
		t.Fatal(err)
	}
	for _, pid := range descendants {
		if !dead(pid) {
			t.Errorf("process %d lives on after the lock is free", pid)
		}
	}
}

func TestACommandThatCannotBeStartedHasTheCodeOfAShell(t *testing.T) {
	plain := t.TempDir() + "/plain"
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("echo no first line"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := runner(t)
	for path, want := range map[string]int{"/no/such/program": 127, plain: 126, script: 126, "/": 126} {
		s := sh(t, "")
		s.Path = path
		_, err := r.Run(context.Background(), s)
		if code, ok := StartCode(err); !ok || code != want {
			t.Errorf("%s: got %d, %v (%v); want %d", path, code, ok, err, want)
		}
	}
	s := sh(t, "")
	s.Args = []string{"sh", "-c", ":", strings.Repeat("x", 1<<20)}
	if _, err := r.Run(context.Background(), s); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("a megabyte of argument: %v", err)
	} else if code, _ := StartCode(err); code != 126 {
		t.Errorf("a megabyte of argument: code %d", code)
	}
	if _, ok := StartCode(syscall.EAGAIN); ok {
		t.Error("too many processes is of this moment only")
	}
}

// dead reports whether a process has ended; zombies that nobody waits for count.
func dead(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	s := strings.TrimSpace(string(out))
	return s == "" || s[0] == 'Z'
}

// await polls until what must come true has come true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("timed out")
			return
		}
	}
}
