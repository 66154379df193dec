package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trial is one case: a form, its servers, three bridges, and what happens to them.
type trial struct {
	config             // of every bridge
	label       string // of its line
	waits       int
	load, idle  time.Duration
	servers     []*server // which are measured; the first gets the answers
	addrs       []string  // what clients are told
	via         *proxy    // the way of bridge 0, if not direct
	happens     func(*trial)
	hold        bool // bridges start only when the load has ended
	kids        [bridges]*kid
	store       *store
	nodes       *nodes
	starts      int
	stats       []stats
	loadedCPU   float64
	loadedKids  float64
	idleCPU     float64
	idleKids    float64
	memory, rss float64
	conns       float64
	settled     int
}

// kid is a bridge process.
type kid struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newTrial(form, label string, waits int, servers ...*server) *trial {
	t := &trial{label: label, waits: waits, load: seconds(*secs), servers: servers}
	t.config = config{Form: form, PollAll: true, MinIdle: 2 * time.Second, Every: time.Second}
	for _, s := range servers {
		t.addrs = append(t.addrs, s.addr())
	}
	return t
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// start starts bridge i, with a name that no earlier one had.
func (t *trial) start(i int) {
	c := t.config
	c.Number, c.Redis, c.Store = i, t.addrs, t.store.socket.Addr().String()
	t.starts++
	c.Name = fmt.Sprintf("bridge-%d-%d", i, t.starts)
	if i == 0 && t.via != nil {
		c.Redis = []string{t.via.addr()}
	}
	text, err := json.Marshal(c)
	must(err)
	self, err := os.Executable()
	must(err)
	k := &kid{cmd: exec.Command(self, "-child", string(text))}
	k.cmd.Stderr = os.Stderr
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	k.in, err = k.cmd.StdinPipe()
	must(err)
	out, err := k.cmd.StdoutPipe()
	must(err)
	k.out = bufio.NewReader(out)
	must(k.cmd.Start())
	t.kids[i] = k
	_, err = k.out.ReadString('\n') // ready
	must(err)
}

func (t *trial) kill(i int) {
	t.kids[i].cmd.Process.Kill()
	t.kids[i].cmd.Wait()
}

// stop ends a bridge in order and keeps its last words.
func (t *trial) stop(i int) {
	k := t.kids[i]
	k.in.Close()
	var s stats
	must(json.NewDecoder(k.out).Decode(&s))
	must(k.cmd.Wait())
	t.stats = append(t.stats, s)
}

// run runs the case to its end and prints its line.
func (t *trial) run() {
	dir := fresh()
	defer os.RemoveAll(dir)
	t.store = newStore(dir, t.waits)
	t.store.lag = t.Lag
	defer t.store.close()
	client, err := connect(t.addrs, t.Sentinel)
	must(err)
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.nodes = &nodes{redis: client, store: t.store, form: t.Form, ctx: ctx}
	if !t.hold {
		t.startAll()
	}
	t.underLoad()
	if t.hold {
		t.startAll()
	}
	t.drain()
	cancel()
	t.atRest()
	t.memory = t.each(func(s *server) float64 { return s.info("memory", "used_memory") }) / 1e6
	t.conns = t.each(func(s *server) float64 { return s.info("clients", "connected_clients") })
	for i := range t.kids {
		t.stop(i)
	}
	t.print()
}

func (t *trial) startAll() {
	for i := range t.kids {
		t.start(i)
	}
}

func (t *trial) underLoad() {
	done := make(chan struct{})
	if t.happens != nil {
		go func() { t.happens(t); close(done) }()
	} else {
		close(done)
	}
	at, redis, kids, before := time.Now(), t.redisCPU(), t.kidsCPU(), t.store.settledSoFar()
	t.nodes.run(t.load)
	took := time.Since(at).Seconds()
	t.settled = t.store.settledSoFar() - before
	t.loadedCPU, t.loadedKids = (t.redisCPU()-redis)/took, (t.kidsCPU()-kids)/took
	<-done
}

// drain waits until all confirmed answers are settled, or nothing moves for 12 s.
func (t *trial) drain() {
	left, since := t.store.left(), time.Now()
	for left > 0 && time.Since(since) < 12*time.Second {
		time.Sleep(100 * time.Millisecond)
		if now := t.store.left(); now != left {
			left, since = now, time.Now()
		}
	}
	time.Sleep(2500 * time.Millisecond) // what else is removed or taken over
}

func (t *trial) atRest() {
	for _, k := range t.kids {
		t.rss += procNumber(k, "status", "VmRSS:") / 1e3
	}
	if t.idle == 0 {
		return
	}
	at, redis, kids := time.Now(), t.redisCPU(), t.kidsCPU()
	time.Sleep(t.idle)
	took := time.Since(at).Seconds()
	t.idleCPU, t.idleKids = (t.redisCPU()-redis)/took, (t.kidsCPU()-kids)/took
}

func (t *trial) each(f func(*server) float64) (sum float64) {
	for _, s := range t.servers {
		sum += f(s)
	}
	return sum
}

func (t *trial) redisCPU() float64 { return t.each((*server).cpu) }

// kidsCPU is seconds of processor time of all bridges that run now.
func (t *trial) kidsCPU() (sum float64) {
	for _, k := range t.kids {
		if k == nil {
			continue
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.cmd.Process.Pid))
		if f := strings.Fields(string(text)); len(f) > 14 {
			user, _ := strconv.ParseFloat(f[13], 64)
			sys, _ := strconv.ParseFloat(f[14], 64)
			sum += (user + sys) / 100
		}
	}
	return sum
}

func procNumber(k *kid, file, field string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", k.cmd.Process.Pid, file))
	_, rest, _ := strings.Cut(string(text), field)
	if f := strings.Fields(rest); len(f) > 0 {
		n, _ := strconv.ParseFloat(f[0], 64)
		return n
	}
	return 0
}

// latencies are milliseconds from a node's first try to the commit, sorted.
func (t *trial) latencies() (ms []float64) {
	for _, w := range t.store.waits {
		if w.answered > 0 && w.settled > 0 {
			ms = append(ms, (w.settled-w.answered).Seconds()*1000)
		}
	}
	slices.Sort(ms)
	return ms
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
