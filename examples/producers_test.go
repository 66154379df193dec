// Package examples tests the producers in its folders: each is started for real.
package examples

import (
	"bufio"
	"bytes"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build makes a program of a folder, once.
var build = struct {
	sync.Mutex
	dir  string
	made map[string]string
}{made: map[string]string{}}

// TestMain lets many tests run at once, whatever the number of processors: they
// wait for pauses.
func TestMain(m *testing.M) {
	err := flag.Set("test.parallel", "12")
	if err != nil {
		panic(err)
	}
	if build.dir, err = os.MkdirTemp("", "examples"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(build.dir)
	os.Exit(code)
}

func program(t *testing.T, folder string) string {
	t.Helper()
	build.Lock()
	defer build.Unlock()
	if build.made[folder] == "" {
		to := filepath.Join(build.dir, folder)
		if out, err := exec.Command("go", "build", "-o", to, "./"+folder).CombinedOutput(); err != nil {
			t.Fatalf("go build ./%s: %v\n%s", folder, err, out)
		}
		build.made[folder] = to
	}
	return build.made[folder]
}

// interpreter finds one that has to be there.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: make setup", name)
	}
	return path
}

const python = "/usr/bin/python3" // Debian's, which has the package redis

// shell checks what the shell examples call.
func shell(t *testing.T, script string) []string {
	t.Helper()
	for _, name := range []string{"jq", "curl", "openssl", "redis-cli"} {
		interpreter(t, name)
	}
	return []string{interpreter(t, "bash"), script}
}

// process is a producer that runs. It ends with its test.
type process struct {
	cmd  *exec.Cmd
	said lockedBuffer
	gone chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start starts a producer in a group of its own, after prepare.
func start(t *testing.T, words []string, env []string, prepare func(*exec.Cmd)) *process {
	t.Helper()
	p := &process{cmd: exec.Command(words[0], words[1:]...), gone: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"}, env...) // and no proxies
	p.cmd.Stderr = &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	prepare(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // however it ended
		close(p.gone)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(words, " "), p.said.String())
		}
	})
	return p
}

// kill ends it, and whatever it has started, at once.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.gone
}

// end asks it to end, and whatever it has started.
func (p *process) end() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) }

// ended waits for its end, and returns the exit code.
func (p *process) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-p.gone:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatal("the producer does not end")
		return 0
	}
}

// node is one that takes submissions, one at a time.
type node interface {
	// submit returns the status of the reply.
	submit(t *testing.T, a *asked) int
	// cancel returns the status of the reply.
	cancel(t *testing.T, a *asked) int
	// idle waits until the node works on nothing.
	idle(t *testing.T)
}

// starter starts a node. redis is the address of one, or "". A server has one slot
// unless its flags say otherwise.
type starter func(t *testing.T, redis string, flags ...string) node

// each runs a test with each node.
func each(t *testing.T, test func(t *testing.T, start starter)) {
	t.Parallel()
	for name, words := range map[string]func(*testing.T) []string{
		"go":     func(t *testing.T) []string { return []string{program(t, "node-go")} },
		"python": func(*testing.T) []string { return []string{python, "node-python/node.py"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(t *testing.T, redis string, flags ...string) node { return startServer(t, words(t), redis, flags) })
		})
	}
	t.Run("shell", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T, redis string, _ ...string) node {
			return &script{redis: redis, dir: t.TempDir(), running: map[string]*process{}}
		})
	})
}

// server is a node that is asked by HTTP.
type server struct {
	*process
	url string
}

func startServer(t *testing.T, words []string, redis string, flags []string) *server {
	t.Helper()
	words = append(words, "--addr", "127.0.0.1:0", "--slots", "1")
	if redis != "" {
		words = append(words, "--redis", "redis://"+redis)
	}
	lines := make(chan string, 1)
	p := start(t, append(words, flags...), nil, func(cmd *exec.Cmd) {
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			line, _ := bufio.NewReader(out).ReadString('\n')
			lines <- line
		}()
	})
	url, ok := strings.CutPrefix(<-lines, "listening on ")
	if !ok {
		t.Fatalf("%s does not say where it listens", words[0])
	}
	return &server{p, strings.TrimSpace(url)}
}

func (s *server) request(t *testing.T, method, url string, body []byte) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (s *server) submit(t *testing.T, a *asked) int {
	t.Helper()
	return s.request(t, http.MethodPost, s.url, a.body()).StatusCode
}

func (s *server) cancel(t *testing.T, a *asked) int {
	t.Helper()
	return s.request(t, http.MethodDelete, s.url+"/"+a.attempt, nil).StatusCode
}

// idle asks for something else until it is accepted.
func (s *server) idle(t *testing.T) {
	t.Helper()
	other := newConsumer(t).ask(map[string]any{"text": text}, always(200))
	until(t, "the node is idle", func() bool { return s.submit(t, other) == 202 })
	other.done(t)
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.After(patience); !holds(); {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// script is a node that is started for each submission.
type script struct {
	redis string
	dir   string

	mu      sync.Mutex
	running map[string]*process // by attempt
}

func (s *script) submit(t *testing.T, a *asked) int {
	t.Helper()
	s.run(t, a.attempt, a.body())
	return http.StatusAccepted
}

func (s *script) run(t *testing.T, attempt string, submission []byte) {
	t.Helper()
	env := []string{"TMPDIR=" + s.dir}
	if s.redis != "" {
		env = append(env, "REDIS_URL=redis://"+s.redis)
	}
	p := start(t, shell(t, "node-shell/node.sh"), env, func(cmd *exec.Cmd) { cmd.Stdin = bytes.NewReader(submission) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[attempt] = p
}

// working is how many of them run.
func (s *script) working() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.running {
		select {
		case <-p.gone:
		default:
			n++
		}
	}
	return n
}

// process is the one that works on an attempt.
func (s *script) process(attempt string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[attempt]
}

func (s *script) cancel(t *testing.T, a *asked) int {
	t.Helper()
	if err := s.process(a.attempt).end(); err != nil {
		t.Fatal(err)
	}
	return http.StatusNoContent
}

// idle also wants nothing to be left behind.
func (s *script) idle(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.running {
		p.ended(t)
	}
	left, err := os.ReadDir(s.dir)
	if err != nil || len(left) != 0 {
		t.Errorf("the script left files behind: %v, %v", left, err)
	}
}
