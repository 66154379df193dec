//go:build unix

package xwork

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// shell is a command that runs a script.
func shell(t *testing.T, script string) *Command {
	t.Helper()
	r, err := child.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Command{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "SETTLE_JOB=of settle run"}, Runner: r}
}

var request = Request{Job: settle.DeriveID([]byte("x")), Attempt: 3, Input: []byte("hello\x00\xff")}

func TestACommandGetsTheInputAndItsOutputIsTheOutput(t *testing.T) {
	o := do(t.Context(), shell(t, `cat; printf " %s %s" "$SETTLE_JOB" "$SETTLE_ATTEMPT"; echo noise >&2`), request)
	want := "hello\x00\xff " + request.Job.String() + " 3"
	if o.Verdict != settle.VerdictOK || string(o.Output) != want {
		t.Errorf("%+v, want %q", o, want)
	}
}

func TestACommandMayLeaveItsInputUnread(t *testing.T) {
	r := request
	r.Input = bytes.Repeat([]byte("x"), settle.MaxPayload)
	if o := do(t.Context(), shell(t, "echo done"), r); o.Verdict != settle.VerdictOK || string(o.Output) != "done\n" {
		t.Errorf("%.100v", o)
	}
}

func TestAnExitCodeIsAVerdictAndTheEndOfStandardErrorItsText(t *testing.T) {
	for script, want := range map[string]settle.Outcome{
		"echo a >&2; echo boom >&2; exit 1": {Verdict: settle.VerdictRetry, Error: "exit code 1: a boom"},
		"exit 75":                           {Verdict: settle.VerdictRetry, Error: "exit code 75"},
		"echo bad input >&2; exit 65":       {Verdict: settle.VerdictTerminal, Error: "exit code 65: bad input"},
		"exit 127":                          {Verdict: settle.VerdictTerminal, Error: "exit code 127"},
		"kill -9 $$":                        {Verdict: settle.VerdictRetry, Error: "killed by signal 9 (killed)"},
		"kill -SEGV $$":                     {Verdict: settle.VerdictRetry, Error: "killed by signal 11 (segmentation fault)"},
	} {
		o := do(t.Context(), shell(t, script), request)
		if o.Verdict != want.Verdict || o.Error != want.Error {
			t.Errorf("%s: %s %q, want %s %q", script, o.Verdict, o.Error, want.Verdict, want.Error)
		}
	}
}

func TestB056TheEndOfStandardErrorShowsNoSecretAndB055CannotWriteOnTheScreen(t *testing.T) {
	o := do(t.Context(), shell(t, `printf '\033[2J password=hunter2\n postgres://u:hunter2@host/db \342\200\256x\n' >&2; exit 1`), request)
	if strings.Contains(o.Error, "hunter2") || strings.ContainsAny(o.Error, "\x1b\u202e\n") {
		t.Errorf("%q", o.Error)
	}
}

func TestALongStandardErrorKeepsItsEnd(t *testing.T) {
	o := do(t.Context(), shell(t, `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done >&2; echo the reason >&2; exit 1`), request)
	if !strings.HasSuffix(o.Error, "the reason") || len(o.Error) > 2048 {
		t.Errorf("%d bytes: …%q", len(o.Error), o.Error[max(0, len(o.Error)-60):])
	}
}

func TestAnEndlessOutputIsTerminalAndStopped(t *testing.T) {
	o := do(t.Context(), shell(t, "yes"), request)
	if o.Verdict != settle.VerdictTerminal || o.Reason != settle.AttemptOutput {
		t.Errorf("%+v", o)
	}
	o = do(t.Context(), shell(t, "head -c "+strconv.Itoa(settle.MaxPayload)+" /dev/zero"), request)
	if o.Verdict != settle.VerdictOK || len(o.Output) != settle.MaxPayload {
		t.Errorf("an output of the limit: %s, %d bytes", o.Verdict, len(o.Output))
	}
}

func TestACommandThatIsNotThereIsTerminal(t *testing.T) {
	c := &Command{Argv: []string{"no-such-command"}}
	if o := do(t.Context(), c, request); o.Verdict != settle.VerdictTerminal || o.Error != `exit code 127: command "no-such-command" not found` {
		t.Errorf("%+v", o)
	}
}

// alive reads a pid from a file and asks whether that process still runs (a
// zombie that nobody has reaped yet does not).
func alive(t *testing.T, file string) bool {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}

// waitFor polls until ok: processes die in their own time.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in 10 s: " + what)
		}
	}
}

func exists(file string) func() bool {
	return func() bool { b, _ := os.ReadFile(file); return len(b) > 1 }
}

func TestTheEndOfTheContextStopsTheWholeGroup(t *testing.T) {
	for name, script := range map[string]string{
		"polite":    `sleep 1000 & echo $! > "$0"; wait`,
		"stubborn":  `trap "" TERM; sleep 1000 & echo $! > "$0"; while :; do wait; done`,
		"exits 0":   `trap "exit 0" TERM; sleep 1000 & echo $! > "$0"; wait`,
		"last word": `trap "echo stopped at page 7 >&2; exit 1" TERM; sleep 1000 & echo $! > "$0"; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			c := shell(t, script)
			c.Argv = append(c.Argv, file)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				waitFor(t, "the child's pid", exists(file))
				cancel(errors.New("timed out"))
			}()
			begin := time.Now()
			o := do(ctx, c, request)
			if o.Verdict != settle.VerdictRetry { // also where the command then says 0
				t.Errorf("%+v", o)
			}
			if name == "last word" && o.Error != "stopped at page 7" {
				t.Errorf("error %q", o.Error)
			}
			waitFor(t, "the end of the grandchild", func() bool { return !alive(t, file) })
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestWhatACommandLeavesBehindInItsGroupIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := shell(t, `sleep 1000 & echo $! > "$0"; echo done`)
	c.Argv = append(c.Argv, file)
	if o := do(t.Context(), c, request); o.Verdict != settle.VerdictOK || string(o.Output) != "done\n" {
		t.Errorf("%+v", o)
	}
	waitFor(t, "the end of what was left behind", func() bool { return !alive(t, file) })
}

func TestWhatCannotBeStartedForNowCostsNoAttempt(t *testing.T) {
	c := shell(t, "true")
	c.Runner.Kill()
	if o, err := c.Do(t.Context(), request); !errors.Is(err, child.ErrKilled) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := notStarted(&os.PathError{Op: "fork/exec", Path: "/bin/sh", Err: syscall.EAGAIN}); err == nil {
		t.Errorf("too many processes: %+v", o)
	}
	if o, err := notStarted(&os.PathError{Op: "fork/exec", Path: "/opt/x", Err: syscall.ENOEXEC}); err != nil || o.Verdict != settle.VerdictTerminal {
		t.Errorf("no program: %+v, %v", o, err)
	}
}
