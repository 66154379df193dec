//go:build unix

package child

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// piped is a script whose streams are in memory.
func piped(script, input string) (s Spec, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Input: []byte(input), Stdout: out, Stderr: errs}, out, errs
}

func TestInputAndOutputInMemory(t *testing.T) {
	r := runner(t)
	big := strings.Repeat("0123456789abcdef", 1<<16) // more than a pipe holds
	s, out, errs := piped("cat; echo bad >&2; exit 3", big)
	if got, err := r.Run(context.Background(), s); err != nil || got != (Result{Code: 3}) || out.String() != big || errs.String() != "bad\n" {
		t.Errorf("got %+v, %v, %d bytes, %q", got, err, out.Len(), errs)
	}
	s, out, _ = piped("exec <&-; echo done", big) // the input is left unread
	if got, err := r.Run(context.Background(), s); err != nil || got != (Result{}) || out.String() != "done\n" {
		t.Errorf("got %+v, %v, %q", got, err, out)
	}
	s.Stdout, s.Stderr = nil, nil
	if got, err := r.Run(context.Background(), s); err != nil || got != (Result{}) {
		t.Errorf("without readers: got %+v, %v", got, err)
	}
}

func TestWhoLeavesTheGroupWithTheOutputOpenHoldsNothingUp(t *testing.T) {
	s, out, _ := piped("setsid sleep 20 & sleep 0.2; echo done", "x")
	began := time.Now()
	if _, err := runner(t).Run(context.Background(), s); err != nil || out.String() != "done\n" || time.Since(began) > 10*time.Second {
		t.Errorf("%v, %q after %s", err, out, time.Since(began))
	}
}

func TestWhatACommandLeavesBehindIsKilledOnRequest(t *testing.T) {
	s, out, _ := piped(`sleep 100 & echo $!`, "")
	s.KillRest = true
	if _, err := runner(t).Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(out.String()))
	await(t, func() bool { return dead(pid) })
}

func TestTheCauseOfTheEndChoosesTheGrace(t *testing.T) {
	r := runner(t)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	s, _, _ := piped(`trap 'echo last words >&2; sleep 100' TERM; echo up; while :; do sleep 0.01; done`, "")
	s.Stdout = writer(func([]byte) { cancel(over) })
	s.Grace = func(cause error) time.Duration {
		if errors.Is(cause, over) {
			return 0
		}
		return time.Hour
	}
	if got, err := r.Run(ctx, s); err != nil || !got.Cut || got.Code != -1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestCloseKillsWhatRunsAndWhatStartsBesideIt(t *testing.T) {
	r, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	up := make(chan bool, 100)
	for range 4 {
		wg.Go(func() {
			for err := error(nil); err == nil; {
				s, _, _ := piped("echo; sleep 100", "")
				s.Stdout = writer(func([]byte) { up <- true })
				var got Result
				if got, err = r.Run(context.Background(), s); err == nil && got.Code != -1 {
					t.Errorf("ended by itself: %+v", got)
				}
			}
		})
	}
	<-up
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
