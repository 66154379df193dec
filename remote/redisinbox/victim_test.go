package redisinbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// victimConfig is what a bridge that is a process is told.
type victimConfig struct {
	Addr string
	Lag  time.Duration // of each commit
	Die  string        // a document at which the process dies
}

// victim is a bridge that commits to its standard output, one attempt a line, and
// ends with its standard input: with the test, if nobody kills it before.
func victim(config string) {
	var c victimConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		panic(err)
	}
	in, err := New(Config{Client: at(c.Addr), Block: 100 * time.Millisecond, TakeOver: 600 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	in.pace = quick
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(4)
	}()
	err = in.Run(context.Background(), func(ctx context.Context, list []Entry) ([]bool, error) {
		done := make([]bool, len(list))
		var out strings.Builder
		for n, e := range list {
			if string(e.Doc) == c.Die && !e.Poisoned {
				os.Exit(3)
			}
			fmt.Fprintln(&out, e.Attempt, e.Poisoned)
			done[n] = true
		}
		sleep(ctx, c.Lag)
		_, err := os.Stdout.WriteString(out.String()) // the commit: one write
		sleep(ctx, c.Lag)
		return done, err
	})
	panic(err)
}

// process is a victim that runs.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
}

// commits is the store of all victims.
type commits struct {
	mu       sync.Mutex
	times    map[settle.ID]int
	poisoned []settle.ID
}

func startVictim(t *testing.T, c victimConfig, to *commits) *process {
	t.Helper()
	config, _ := json.Marshal(c)
	p := &process{cmd: exec.Command(os.Args[0]), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "REDISINBOX_VICTIM="+string(config))
	if _, err := p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		for in := bufio.NewScanner(out); in.Scan(); {
			text, poisoned, _ := strings.Cut(in.Text(), " ")
			if id, err := settle.ParseID(text); err == nil {
				to.add(id, poisoned == "true")
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

func (c *commits) add(id settle.ID, poisoned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = map[settle.ID]int{}
	}
	c.times[id]++
	if poisoned {
		c.poisoned = append(c.poisoned, id)
	}
}

func (c *commits) has(ids []settle.ID) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if c.times[id] > 0 {
			n++
		}
	}
	return n
}
