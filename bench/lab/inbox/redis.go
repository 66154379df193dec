package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// server is a private redis-server on loopback with its own folder.
type server struct {
	dir, port string
	args      []string
	cmd       *exec.Cmd
	admin     rueidis.Client
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// startRedis starts a server that keeps a log synced each second and evicts nothing.
func startRedis(more ...string) *server {
	s := &server{dir: fresh(), port: freePort()}
	s.args = append([]string{"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"}, more...)
	s.start()
	return s
}

func startSentinel(master *server) *server {
	s := &server{dir: fresh(), port: freePort()}
	conf := filepath.Join(s.dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor inbox 127.0.0.1 %s 1\nsentinel down-after-milliseconds inbox 1000\n",
		s.port, s.dir, master.port)
	must(os.WriteFile(conf, []byte(text), 0o600))
	s.args = []string{conf, "--sentinel"}
	s.start()
	return s
}

func (s *server) addr() string { return "127.0.0.1:" + s.port }

// start starts the process and waits until it has loaded its data.
func (s *server) start() {
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(s.cmd.Start())
	if s.admin != nil {
		s.admin.Close()
	}
	for {
		var err error
		s.admin, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr()}, ForceSingleClient: true, DisableCache: true})
		if err == nil && s.try("PING") == nil {
			return
		}
		if s.admin != nil {
			s.admin.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *server) reply(words ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.admin.Do(ctx, s.admin.B().Arbitrary(words...).Build())
}

func (s *server) try(words ...string) error { return s.reply(words...).Error() }

func (s *server) do(words ...string) string {
	text, err := s.reply(words...).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		must(fmt.Errorf("%v: %w", words, err))
	}
	return text
}

func (s *server) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

func (s *server) close() {
	s.admin.Close()
	s.kill()
	os.RemoveAll(s.dir)
}

// info reads one number of INFO; 0 when the server does not answer.
func (s *server) info(section, field string) float64 {
	text, err := s.reply("INFO", section).ToString()
	if err != nil {
		return 0
	}
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		if v, ok := strings.CutPrefix(in.Text(), field+":"); ok {
			f, _ := strconv.ParseFloat(v, 64)
			return f
		}
	}
	return 0
}

// cpu is seconds of the server's processor time so far.
func (s *server) cpu() float64 {
	return s.info("cpu", "used_cpu_sys") + s.info("cpu", "used_cpu_user")
}

// calls is how often a command ran.
func (s *server) calls(command string) int {
	text := s.do("INFO", "commandstats")
	_, rest, _ := strings.Cut(text, "cmdstat_"+command+":calls=")
	n, _ := strconv.Atoi(rest[:max(0, strings.IndexByte(rest, ','))])
	return n
}

// logFile is the part of the append-only log that grows.
func (s *server) logFile() string {
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	must(err)
	return files[len(files)-1]
}

// startCluster starts masters that share the slots, without replicas.
func startCluster(masters int) []*server {
	var all []*server
	for i := range masters {
		s := startRedis("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		s.do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*16384/masters), strconv.Itoa((i+1)*16384/masters-1))
		all = append(all, s)
	}
	for _, s := range all[1:] {
		all[0].do("CLUSTER", "MEET", "127.0.0.1", s.port)
	}
	for _, s := range all {
		for !strings.Contains(s.do("CLUSTER", "INFO"), "cluster_state:ok") ||
			strings.Count(s.do("CLUSTER", "NODES"), "connected") < masters {
			time.Sleep(50 * time.Millisecond)
		}
	}
	return all
}
