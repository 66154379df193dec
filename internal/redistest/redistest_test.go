package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/settle-go/settle/internal/faultproxy"
)

// TestMain makes the test binary also a program that starts a server and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("REDISTEST_VICTIM") != "" {
		var t victim
		fmt.Println(Start(&t).Pid())
		select {}
	}
	os.Exit(m.Run())
}

// victim is a test that never ends.
type victim struct{ testing.TB }

func (*victim) Helper()         {}
func (*victim) Cleanup(func())  {}
func (*victim) TempDir() string { return os.Getenv("REDISTEST_VICTIM") }
func (*victim) Fatal(a ...any)  { panic(fmt.Sprint(a...)) }

func TestAServerKeepsItsDataOverAKill(t *testing.T) {
	s := Start(t, "maxmemory 30mb")
	if got := s.Do("CONFIG", "GET", "maxmemory"); fmt.Sprint(got) != "[maxmemory 31457280]" {
		t.Errorf("a line of conf: %v", got)
	}
	addr, pid := s.Addr(), s.Pid()
	s.Do("SET", "k", "v")
	s.Do("RPUSH", "l", "a", "b")
	s.Restart()
	if s.Addr() != addr || s.Pid() == pid {
		t.Errorf("now %s by process %d, before %s by %d", s.Addr(), s.Pid(), addr, pid)
	}
	if got := s.Text("GET", "k"); got != "v" {
		t.Errorf("k is %q", got)
	}
	if got := fmt.Sprint(s.Do("LRANGE", "l", "0", "-1"), s.Do("GET", "none"), s.Int("LLEN", "l")); got != "[a b] <nil> 2" {
		t.Errorf("replies: %s", got)
	}
	var e Error
	if _, err := s.Try("LPUSH", "k", "x"); !errors.As(err, &e) || !strings.HasPrefix(string(e), "WRONGTYPE") {
		t.Errorf("an error reply: %v", err)
	}
	if n := s.Calls("get"); n != 2 {
		t.Errorf("GET ran %d times, want 2", n)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	v := &lone{TB: t}
	func() {
		defer func() { _ = recover() }() // Fatal
		Start(v, "no-such-line yes")
	}()
	if !strings.Contains(v.said, "no-such-line") {
		t.Errorf("it says %q", v.said)
	}
}

// lone is a test that must fail.
type lone struct {
	testing.TB
	said string
}

func (l *lone) Fatal(a ...any) {
	l.said = fmt.Sprint(a...)
	panic(l.said)
}

func TestAServerDiesWithTheTestsProcess(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "REDISTEST_VICTIM="+t.TempDir())
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the server is not there: %v", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	Eventually(t, "the server is dead", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestAPausedServerGoesOn(t *testing.T) {
	s := Start(t)
	s.Pause()
	got := make(chan string)
	go func() { got <- s.Text("PING") }()
	Eventually(t, "the process is stopped", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
		return strings.Contains(string(stat), ") T ")
	})
	select {
	case text := <-got:
		t.Errorf("a paused server answers %q", text)
	default:
	}
	s.Resume()
	if text := <-got; text != "PONG" {
		t.Errorf("then it answers %q", text)
	}
}

func TestASentinelPromotesTheReplicaOfADeadMaster(t *testing.T) {
	master := Start(t)
	link := faultproxy.New(t, master.Addr())
	replica := StartReplica(t, link.Addr())
	sentinel := StartSentinel(t, "inbox", master)
	if !master.IsMaster() || replica.IsMaster() {
		t.Fatal("the wrong one is the master")
	}
	master.Kill()
	Eventually(t, "the replica is the master", replica.IsMaster)
	Eventually(t, "the sentinel says so", func() bool {
		return fmt.Sprint(sentinel.Do("SENTINEL", "get-master-addr-by-name", "inbox")) == "[127.0.0.1 "+replica.Port()+"]"
	})
}

func TestAClusterSharesItsSlots(t *testing.T) {
	all := StartCluster(t, 3)
	taken := 0
	for _, s := range all {
		switch _, err := s.Try("SET", "k", "v"); {
		case err == nil:
			taken++
		case !strings.HasPrefix(err.Error(), "MOVED "):
			t.Error(err)
		}
	}
	if taken != 1 {
		t.Errorf("%d masters took the key", taken)
	}
	all[2].Restart()
	Eventually(t, "the cluster is whole again", func() bool {
		return strings.Contains(all[0].Text("CLUSTER", "INFO"), "cluster_state:ok")
	})
}

func TestAFrontAnswersForTheServer(t *testing.T) {
	s := Start(t)
	f := NewFront(t, s.Addr())
	ask := func(words ...string) string {
		reply, err := Ask(f.Addr(), words...)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(reply)
	}
	f.Answer(1, "MOVED 1 127.0.0.1:1", "SET")
	f.Answer(-1, "READONLY You can't write against a read only replica.", "SET", "XADD")
	for _, c := range []struct{ words, want string }{
		{"SET k v", "MOVED 1 127.0.0.1:1"}, {"set k v", "READONLY You can't write against a read only replica."}, {"GET k", "<nil>"},
	} {
		if got := ask(strings.Fields(c.words)...); got != c.want {
			t.Errorf("%s: %q, want %q", c.words, got, c.want)
		}
	}
	f.Answer(-1, "LOADING Redis is loading the dataset in memory")
	if got := ask("PING"); got != "LOADING Redis is loading the dataset in memory" {
		t.Errorf("PING: %q", got)
	}
	f.Clear()
	if got := ask("SET", "k", "v") + ask("GET", "k"); got != "OKv" {
		t.Errorf("afterwards: %q", got)
	}
	if n := f.Seen("set"); n != 3 {
		t.Errorf("saw %d SET, want 3", n)
	}
}
