//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is settle in a process of its own.
type process struct {
	*exec.Cmd
	err  syncBuffer
	done chan struct{}
}

// syncBuffer may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends.
func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns what has been written so far.
func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// command prepares a process; who, if not 0, is the user that it runs as.
func command(t *testing.T, who uint32, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...), done: make(chan struct{})}
	p.Env = append(os.Environ(), asMain+"=1")
	p.Stderr = &p.err
	if who != 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who, Gid: who}}
	}
	return p
}

// start starts it, and reaps it in the background.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := command(t, 0, args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.done) }()
	t.Cleanup(func() { _ = p.Process.Kill(); <-p.done })
	return p
}

// exits waits for its end and returns the exit code.
func (p *process) exits(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		t.Fatal("does not end")
		return 0
	}
}

// waitFor polls until ok.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in 20 s: " + what)
		}
	}
}

// slow is a target that writes its pid and sleeps.
func slow(file string) string {
	return fmt.Sprintf(`slow=sh -c "echo $$ > '%s'; exec sleep 1000"`, file)
}

// gone reports whether the process whose pid stands in the file has ended.
func gone(t *testing.T, file string) func() bool {
	return func() bool {
		b, err := os.ReadFile(file)
		pid, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
	}
}

func written(file string) func() bool {
	return func() bool { b, _ := os.ReadFile(file); return bytes.HasSuffix(b, []byte("\n")) }
}

// begun starts a worker with one slow job, and waits until it runs.
func begun(t *testing.T, flags ...string) (p *process, db, id, pid string) {
	t.Helper()
	db, pid = newDB(t), filepath.Join(t.TempDir(), "pid")
	id = strings.TrimSpace(must(t, db, "", "enqueue", "slow", "1"))
	p = start(t, append([]string{"work", "--db", db, "--exec", slow(pid)}, flags...)...)
	waitFor(t, "the command", written(pid))
	return p, db, id, pid
}

func state(t *testing.T, db, id string) string {
	return must(t, db, "", "job", id, "--json")
}

func TestTheFirstSignalHandsBackUnchargedAfterTheGrace(t *testing.T) {
	t.Parallel()
	p, db, id, pid := begun(t, "--grace", "200ms")
	_ = p.Process.Signal(syscall.SIGTERM)
	if code := p.exits(t); code != exitOK {
		t.Errorf("exit %d: %s", code, p.err.String())
	}
	if j := state(t, db, id); !strings.Contains(j, `"state":"pending"`) || !strings.Contains(j, `"charged":0`) || !strings.Contains(j, `"reason":"shutdown"`) {
		t.Error(j)
	}
	waitFor(t, "the end of the command", gone(t, pid))
}

func TestTheSecondSignalKillsWhatRuns(t *testing.T) {
	t.Parallel()
	p, db, id, pid := begun(t, "--grace", "1h")
	_ = p.Process.Signal(syscall.SIGINT)
	waitFor(t, "the word of the first signal", func() bool { return strings.Contains(p.err.String(), "stopping") })
	if why := must(t, db, "", "why", id); !strings.Contains(why, "is running") || gone(t, pid)() {
		t.Error(why)
	}
	_ = p.Process.Signal(syscall.SIGINT) // the same wish
	time.Sleep(sameWish + 100*time.Millisecond)
	if gone(t, pid)() {
		t.Error("two signals at once killed the command")
	}
	_ = p.Process.Signal(syscall.SIGINT)
	if code := p.exits(t); code != exitFailed {
		t.Errorf("exit %d", code)
	}
	waitFor(t, "the end of the command", gone(t, pid))
}

func TestAKilledWorkerTakesItsCommandAlongAndAnotherFinishesTheJob(t *testing.T) {
	t.Parallel()
	p, db, id, pid := begun(t, "--lease", "1s")
	_ = p.Process.Kill()
	p.exits(t)
	waitFor(t, "the end of the command", gone(t, pid))
	second := start(t, "work", "--db", db, "--exec", "slow=cat", "--limit", "1")
	if code := second.exits(t); code != exitOK {
		t.Errorf("exit %d: %s", code, second.err.String())
	}
	if j := state(t, db, id); !strings.Contains(j, `"state":"succeeded"`) || !strings.Contains(j, `"reason":"worker_lost"`) {
		t.Error(j)
	}
}

func TestAKilledWorkerTakesGrandchildrenAlong(t *testing.T) {
	t.Parallel()
	db, dir := newDB(t), t.TempDir()
	must(t, db, "", "enqueue", "tree", "1")
	p := start(t, "work", "--db", db, "--exec", fmt.Sprintf(
		`tree=sh -c "cd '%s'; sh -c 'trap \"\" TERM HUP; sleep 1000 & echo $! > grandchild; wait' & echo $$ > child; wait"`, dir))
	child, grandchild := filepath.Join(dir, "child"), filepath.Join(dir, "grandchild")
	waitFor(t, "both commands", func() bool { return written(child)() && written(grandchild)() })
	_ = p.Process.Kill()
	p.exits(t)
	waitFor(t, "the end of both", func() bool { return gone(t, child)() && gone(t, grandchild)() })
}

func TestACancelledJobsCommandIsKilled(t *testing.T) {
	t.Parallel()
	_, db, id, pid := begun(t, "--lease", "1s")
	must(t, db, "", "cancel", id, "--why", "wrong customer")
	waitFor(t, "the end of the command", gone(t, pid))
	if why := must(t, db, "", "why", id); !strings.Contains(why, "wrong customer") {
		t.Error(why)
	}
}

func TestAJobsTimeoutKillsItsCommand(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	id := strings.TrimSpace(must(t, db, "", "enqueue", "slow", "1", "--timeout", "300ms", "--attempts", "1"))
	must(t, db, "", "work", "-q", "--limit", "1", "--exec", `slow=sh -c "echo page 7 >&2; sleep 1000"`)
	if j := state(t, db, id); !strings.Contains(j, `"reason":"timed_out"`) || !strings.Contains(j, "page 7") {
		t.Error(j)
	}
}

// TestEverythingWorksBesideARunningWorker of another process.
func TestEverythingWorksBesideARunningWorker(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	must(t, db, "", "enqueue", "echo", "0")
	p := start(t, "work", "--db", db, "--exec", "echo=cat")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 10 {
				id := strings.TrimSpace(must(t, db, "", "enqueue", "echo", strconv.Itoa(100*i+n)))
				for _, args := range [][]string{{"jobs"}, {"age"}, {"status"}, {"why", id}, {"dead", "list"}} {
					if a := run(t, db, "", args...); a.code != exitOK {
						t.Errorf("%v: exit %d %s", args, a.code, a.err)
					}
				}
			}
		})
	}
	wg.Wait()
	waitFor(t, "41 successes", func() bool {
		return strings.Count(must(t, db, "", "jobs", "--state", "succeeded", "--all", "--json"), "\n") == 41
	})
	_ = p.Process.Signal(syscall.SIGTERM)
	if code := p.exits(t); code != exitOK {
		t.Errorf("exit %d: %s", code, p.err.String())
	}
}

func TestHTTPTargetsDoWork(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch b, _ := io.ReadAll(r.Body); r.URL.Path {
		case "/ok":
			fmt.Fprintf(w, `{"job":%q,"in":%s}`, r.Header.Get("Settle-Job"), b)
		case "/busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			http.Error(w, "no such customer", http.StatusUnprocessableEntity)
		}
	}))
	defer srv.Close()
	db := newDB(t)
	ids := map[string]string{}
	for _, kind := range []string{"ok", "busy", "bad"} {
		ids[kind] = strings.TrimSpace(must(t, db, "", "enqueue", kind, `{"n":1}`))
	}
	must(t, db, "", "work", "--drain", "-q", "--http", "ok="+srv.URL+"/ok", "--http", "busy="+srv.URL+"/busy", "--http", "bad="+srv.URL+"/bad")
	for kind, want := range map[string]string{
		"ok":   fmt.Sprintf(`"output":{"job":%q,"in":{"n":1}}`, ids["ok"]),
		"busy": `"label":"retrying"`,
		"bad":  `"reason":"refused","last_error":"HTTP 422 Unprocessable Entity: no such customer"`,
	} {
		if j := state(t, db, ids[kind]); !strings.Contains(j, want) {
			t.Errorf("%s: want %s in %s", kind, want, j)
		}
	}
	if why := must(t, db, "", "why", ids["busy"]); !strings.Contains(why, "in 2m") {
		t.Errorf("B-031: %s", why)
	}
}
