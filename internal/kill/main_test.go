//go:build linux

package kill

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

var firstSeed = flag.Uint64("kill.seed", 1, "the seed from which the moments of all kills are drawn")

// long runs the same tests with bigger numbers.
var long = os.Getenv("SETTLE_LONG") != ""

func size(short, full int) int {
	if long {
		return full
	}
	return short
}

func TestMain(m *testing.M) {
	if s := os.Getenv(childVar); s != "" {
		if err := obey(s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// A first use by two tests at once looks like a race in encoding/json where
	// packages are built without the race detector, as make test does.
	_, _ = json.Marshal(order{})
	code := m.Run()
	if err := kills.close(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = 1
	}
	os.Exit(code)
}

// process is a child of the test.
type process struct {
	cmd  *exec.Cmd
	what order
	errs bytes.Buffer
	over chan struct{}
	err  error
}

// start starts a child and does not wait for it.
func start(t *testing.T, o order) *process {
	t.Helper()
	text, err := json.Marshal(o)
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	p := &process{cmd: exec.Command(exe), what: o, over: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVar+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.errs
	must(t, p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.over) }()
	t.Cleanup(p.end)
	return p
}

// end makes sure that the child is gone.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.over
}

func (p *process) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// died waits for the child's death by its own hand.
func (p *process) died(t *testing.T) {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(time.Minute):
		p.end()
		t.Fatalf("the child did not die in a minute: %+v: %s", p.what, &p.errs)
	}
	if !p.wasKilled() {
		t.Fatalf("the child ended by itself: %v: %+v: %s", p.err, p.what, &p.errs)
	}
}

// kill ends the child as kill -9 does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.end()
	if !p.wasKilled() {
		t.Fatalf("the child ended before it was killed: %v: %+v: %s", p.err, p.what, &p.errs)
	}
}

func (p *process) wasKilled() bool {
	s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

// pause lets real time pass: other processes know no other.
func pause(d time.Duration) { time.Sleep(d) }

// until polls what another process brings about.
func until(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	if !waits(limit, ok) {
		t.Fatalf("must be true within %s: %s", limit, what)
	}
}

func waits(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); !ok(); pause(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
