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
)

// shell is a command that runs a script.
func shell(script string) *Command {
	return &Command{Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Group: &Group{}}
}

var request = Request{Job: settle.DeriveID([]byte("x")), Attempt: 3, Input: []byte("hello\x00\xff")}

func TestACommandGetsTheInputAndItsOutputIsTheOutput(t *testing.T) {
	o := shell(`cat; printf " %s %s" "$SETTLE_JOB" "$SETTLE_ATTEMPT"; echo noise >&2`).Do(t.Context(), request)
	want := "hello\x00\xff " + request.Job.String() + " 3"
	if o.Verdict != settle.VerdictOK || string(o.Output) != want {
		t.Errorf("%+v, want %q", o, want)
	}
}

func TestACommandMayLeaveItsInputUnread(t *testing.T) {
	r := request
	r.Input = bytes.Repeat([]byte("x"), settle.MaxPayload)
	if o := shell("echo done").Do(t.Context(), r); o.Verdict != settle.VerdictOK || string(o.Output) != "done\n" {
		t.Errorf("%.100v", o)
	}
}

func TestAnExitCodeIsAVerdictAndTheEndOfStandardErrorItsText(t *testing.T) {
	for script, want := range map[string]settle.Outcome{
		"echo a >&2; echo boom >&2; exit 1": {Verdict: settle.VerdictRetry, Error: "exit code 1: a boom"},
		"exit 75":                           {Verdict: settle.VerdictRetry, Error: "exit code 75"},
		"echo bad input >&2; exit 65":       {Verdict: settle.VerdictTerminal, Error: "exit code 65: bad input"},
		"exit 127":                          {Verdict: settle.VerdictTerminal, Error: "exit code 127"},
		"kill -9 $$":                        {Verdict: settle.VerdictRetry, Error: "killed by signal 9"},
		"kill -SEGV $$":                     {Verdict: settle.VerdictRetry, Error: "killed by signal 11"},
	} {
		o := shell(script).Do(t.Context(), request)
		if o.Verdict != want.Verdict || o.Error != want.Error {
			t.Errorf("%s: %s %q, want %s %q", script, o.Verdict, o.Error, want.Verdict, want.Error)
		}
	}
}

func TestB056TheEndOfStandardErrorShowsNoSecretAndB055CannotWriteOnTheScreen(t *testing.T) {
	o := shell(`printf '\033[2J password=hunter2\n postgres://u:hunter2@host/db \342\200\256x\n' >&2; exit 1`).Do(t.Context(), request)
	if strings.Contains(o.Error, "hunter2") || strings.ContainsAny(o.Error, "\x1b\u202e\n") {
		t.Errorf("%q", o.Error)
	}
}

func TestALongStandardErrorKeepsItsEnd(t *testing.T) {
	o := shell(`i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done >&2; echo the reason >&2; exit 1`).Do(t.Context(), request)
	if !strings.HasSuffix(o.Error, "the reason") || len(o.Error) > 2048 {
		t.Errorf("%d bytes: …%q", len(o.Error), o.Error[max(0, len(o.Error)-60):])
	}
}

func TestAnEndlessOutputIsTerminalAndStopped(t *testing.T) {
	o := shell("yes").Do(t.Context(), request)
	if o.Verdict != settle.VerdictTerminal || o.Reason != settle.AttemptOutput {
		t.Errorf("%+v", o)
	}
	o = shell("head -c "+strconv.Itoa(settle.MaxPayload)+" /dev/zero").Do(t.Context(), request)
	if o.Verdict != settle.VerdictOK || len(o.Output) != settle.MaxPayload {
		t.Errorf("an output of the limit: %s, %d bytes", o.Verdict, len(o.Output))
	}
}

func TestACommandThatIsNotThereIsTerminal(t *testing.T) {
	c := &Command{Argv: []string{"/no/such/command"}}
	if o := c.Do(t.Context(), request); o.Verdict != settle.VerdictTerminal || !strings.Contains(o.Error, "cannot start") {
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
			c := shell(script)
			c.Argv = append(c.Argv, file)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				waitFor(t, "the child's pid", exists(file))
				cancel(errors.New("timed out"))
			}()
			begin := time.Now()
			o := c.Do(ctx, request)
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
	c := shell(`sleep 1000 & echo $! > "$0"; echo done`)
	c.Argv = append(c.Argv, file)
	if o := c.Do(t.Context(), request); o.Verdict != settle.VerdictOK || string(o.Output) != "done\n" {
		t.Errorf("%+v", o)
	}
	waitFor(t, "the end of what was left behind", func() bool { return !alive(t, file) })
}

func TestWhoLeavesTheGroupWithTheOutputOpenHoldsNothingUp(t *testing.T) {
	begin := time.Now()
	o := shell("setsid sleep 20 & sleep 0.2; echo done").Do(t.Context(), request)
	if o.Verdict != settle.VerdictOK || string(o.Output) != "done\n" || time.Since(begin) > 10*time.Second {
		t.Errorf("%+v after %s", o, time.Since(begin))
	}
}

func TestKillTakesAllAlongAndRefusesNewOnes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := shell(`echo $$ > "$0"; sleep 1000`)
	c.Argv = append(c.Argv, file)
	done := make(chan settle.Outcome)
	go func() { done <- c.Do(t.Context(), request) }()
	waitFor(t, "the child's pid", exists(file))
	c.Group.Kill()
	if o := <-done; o.Verdict != settle.VerdictRetry || o.Error != "killed by signal 9" {
		t.Errorf("%+v", o)
	}
	if o := c.Do(t.Context(), request); o.Verdict != settle.VerdictRetry || !strings.Contains(o.Error, "leaving") {
		t.Errorf("after Kill: %+v", o)
	}
}
