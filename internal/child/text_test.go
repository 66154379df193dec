package child

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestErrorTextsSayHowItEndedAndTheEndOfWhatWasSaid(t *testing.T) {
	for _, c := range []struct {
		how  Result
		said string
		want string
	}{
		{Result{Code: 3}, "", "exit code 3"},
		{Result{Code: 3}, " \n", "exit code 3"},
		{Result{Code: 1}, "a\npassword=hunter2\nboom\n", "exit code 1: a password=[redacted] boom"},
		{Result{Code: -1, Signal: syscall.SIGKILL}, "", "killed by signal 9 (killed)"},
		{Result{Code: -1}, "why", "killed: why"},
	} {
		if got := ErrorText(c.how.String(), []byte(c.said)); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.how, got, c.want)
		}
	}
	long := ErrorText("exit code 1", []byte(strings.Repeat("é wort ", 2000)+"the reason"))
	if !strings.HasPrefix(long, "exit code 1: …") || !strings.HasSuffix(long, "the reason") || len(long) > saidMax+64 {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

func TestTheEnvironmentHoldsEachNameOnce(t *testing.T) {
	base := []string{"A=1", "B=2", "AB=3", "A=4", "odd"}
	if got, want := Environ(base, "A=5", "C="), []string{"B=2", "AB=3", "odd", "A=5", "C="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindSaysInWordsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for program, want := range map[string]string{
		"tool": "", "./tool": "", filepath.Join(dir, "tool"): "",
		"./plain": "cannot be executed", "none": `command "none" not found`, "./none": `command "./none" not found`,
	} {
		path, err := Find(program, dir)
		if want == "" && (err != nil || path != filepath.Join(dir, "tool")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v; want %q", program, path, err, want)
		}
		if missing := strings.Contains(want, "not found"); errors.Is(err, ErrNotFound) != missing {
			t.Errorf("%s: %v", program, err)
		}
	}
}
