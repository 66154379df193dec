package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faultproxy"
)

// patience is how long a server may take to start, to stop, or to answer.
const patience = 20 * time.Second

// Server is one redis-server process. Its methods must not be called at once by
// several goroutines, except Addr, Do and Try.
type Server struct {
	t    testing.TB
	addr string
	dir  string
	args []string
	pid  int
	gone chan struct{} // closed when the process has ended; nil before the first start
}

// Start starts a server that keeps an append-only log, synced each second, and
// evicts nothing, unless the lines of conf (redis.conf) say otherwise.
func Start(t testing.TB, conf ...string) *Server {
	t.Helper()
	return start(t, append([]string{
		`save ""`, "appendonly yes", "appendfsync everysec", "repl-diskless-sync-delay 0", "enable-debug-command yes",
	}, conf...))
}

// start tries another port when somebody was faster on the first.
func start(t testing.TB, conf []string, args ...string) *Server {
	t.Helper()
	var err error
	for range 5 {
		s := &Server{t: t, addr: faultproxy.FreeAddr(t), dir: t.TempDir(), args: args}
		s.write(conf)
		t.Cleanup(s.Kill)
		if err = s.launch(); err == nil {
			return s
		}
	}
	t.Fatal(err)
	return nil
}

func (s *Server) write(conf []string) {
	s.t.Helper()
	all := append([]string{"port " + s.Port(), "bind 127.0.0.1", "dir " + s.dir, "logfile " + s.log()}, conf...)
	if err := os.WriteFile(s.conf(), []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) conf() string { return filepath.Join(s.dir, "redis.conf") }
func (s *Server) log() string  { return filepath.Join(s.dir, "redis.log") }
func (s *Server) out() string  { return filepath.Join(s.dir, "redis.out") }

// Addr is "127.0.0.1:port", the same after a restart.
func (s *Server) Addr() string { return s.addr }

// Port is the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// Dir is the folder of its data.
func (s *Server) Dir() string { return s.dir }

// Pid is the process that runs, or ran last.
func (s *Server) Pid() int { return s.pid }

// Launch starts a server that was killed, on the same port and data, and waits
// until it has loaded them.
func (s *Server) Launch() {
	s.t.Helper()
	if err := s.launch(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) launch() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatal("redis-server is not installed: make setup")
	}
	cmd := exec.Command(path, append([]string{s.conf()}, s.args...)...)
	cmd.SysProcAttr = withUs()
	out, err := os.Create(s.out())
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	started, gone := make(chan error), make(chan struct{})
	go func() {
		// The kernel ties the process to this thread, which therefore must live
		// as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // however it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	s.pid, s.gone = cmd.Process.Pid, gone
	return s.ready()
}

// ready waits until it answers, which it does after it has loaded its data.
func (s *Server) ready() error {
	var err error
	for range patience / (5 * time.Millisecond) {
		if _, err = s.Try("PING"); err == nil {
			return nil
		}
		select {
		case <-s.gone:
			log, _ := os.ReadFile(s.log())
			out, _ := os.ReadFile(s.out()) // a bad line of conf
			return fmt.Errorf("redis-server ended at once:\n%s%s", log, out)
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
	s.Kill()
	return fmt.Errorf("redis-server at %s does not get ready: %w", s.addr, err)
}

// Kill kills it with SIGKILL and waits for its end. A server that is not there
// is fine.
func (s *Server) Kill() {
	if s.gone == nil {
		return
	}
	s.signal(syscall.SIGKILL)
	<-s.gone
}

// Restart is a Kill, and a Launch.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.Launch()
}

// Pause stops the process: its connections stay, and nobody answers.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	select {
	case <-s.gone: // its pid may be another's by now
	default:
		_ = syscall.Kill(s.pid, sig)
	}
}

// Try runs one command on a connection of its own. Its error is an [Error] if
// the server said so. Replies are string, int64, nil and []any of these.
func (s *Server) Try(words ...string) (any, error) { return Ask(s.addr, words...) }

// Ask is [Server.Try] for any address.
func Ask(addr string, words ...string) (any, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	w := bufio.NewWriter(c)
	writeCommand(w, words)
	if err := w.Flush(); err != nil {
		return nil, err
	}
	reply, err := readReply(bufio.NewReader(c))
	if e, ok := reply.(Error); ok && err == nil {
		return nil, e
	}
	return reply, err
}

// Do is Try, and fails the test when that has failed.
func (s *Server) Do(words ...string) any {
	s.t.Helper()
	reply, err := s.Try(words...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return reply
}

// Int is Do for a command that answers a number.
func (s *Server) Int(words ...string) int {
	s.t.Helper()
	n, ok := s.Do(words...).(int64)
	if !ok {
		s.t.Fatalf("%s: no number", strings.Join(words, " "))
	}
	return int(n)
}

// Text is Do for a command that answers a text; "" for none.
func (s *Server) Text(words ...string) string {
	s.t.Helper()
	text, _ := s.Do(words...).(string)
	return text
}

// Info reads one field of INFO, from all its sections; "" if it is not there.
func (s *Server) Info(field string) string {
	s.t.Helper()
	for line := range strings.Lines(s.Text("INFO", "everything")) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Calls is how often a command ran since the server started.
func (s *Server) Calls(command string) int {
	s.t.Helper()
	v := strings.TrimPrefix(s.Info("cmdstat_"+strings.ToLower(command)), "calls=")
	v, _, _ = strings.Cut(v, ",")
	n, _ := strconv.Atoi(v)
	return n
}
