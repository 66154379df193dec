package xwork

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/internal/verdict"
)

// Command is a target that runs a command for every attempt, without a shell:
// the input is its standard input, its standard output the output. It runs in a
// process group of its own, all of which is killed when the attempt's context
// ends, when the command itself has ended, and on Linux when this process dies.
type Command struct {
	Argv []string // Argv[0] is looked up in PATH
	Env  []string // the environment; SETTLE_JOB and SETTLE_ATTEMPT are added
	// Grace is how long a command may go on after SIGTERM. 0 = 500 ms.
	Grace time.Duration
	// Group, if set, knows the commands that run.
	Group *Group
	// OK and Terminal are exit codes beside those of [verdict.Exit].
	OK, Terminal []int
}

const (
	// defaultGrace and pipeWait together stay below the second after which a
	// worker gives a handler up for abandoned.
	defaultGrace = 500 * time.Millisecond
	// pipeWait is how long the output is still read after the group is dead: a
	// process that left the group may hold the pipe open for ever.
	pipeWait = 250 * time.Millisecond
)

// Do runs one attempt.
func (c *Command) Do(ctx context.Context, r Request) settle.Outcome {
	over := make(chan struct{})
	out := &limited{max: settle.MaxPayload, over: sync.OnceFunc(func() { close(over) })}
	errs := &tail{max: redact.TailRead + 1}
	ended, err := c.run(ctx, r, out, errs, over)
	said := ""
	if b := errs.bytes(); len(bytes.TrimSpace(b)) > 0 {
		said = redact.Tail(b)
	}
	switch {
	case err != nil:
		return startFault(err)
	case out.full:
		return tooLarge("standard output")
	case ended.stopped:
		return settle.Outcome{Verdict: settle.VerdictRetry, Error: said}
	}
	v := verdict.Exit(ended.code, c.OK, c.Terminal)
	if v == settle.VerdictOK {
		return settle.Outcome{Verdict: v, Output: out.buf.Bytes()}
	}
	return settle.Outcome{Verdict: v, Reason: settle.AttemptError, Error: redact.Text(ended.text(said))}
}

// ending is how a command ended.
type ending struct {
	code    int  // exit code, or minus the number of the signal
	stopped bool // we stopped it because its context had ended
}

// text says it for people, with the end of what the command said itself.
func (e ending) text(said string) string {
	text := "exit code " + strconv.Itoa(e.code)
	if e.code < 0 {
		text = fmt.Sprintf("killed by signal %d", -e.code)
	}
	if said == "" {
		return text
	}
	const room = redact.Max - 64
	if len(said) > room {
		said = "…" + strings.ToValidUTF8(said[len(said)-room:], "")
	}
	return text + ": " + said
}

// startFault judges a command that could not be started: one that is not there
// or not executable stays so (as 127 and 126 would), all else may pass.
func startFault(err error) settle.Outcome {
	v := settle.VerdictRetry
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		v = settle.VerdictTerminal
	}
	return settle.Outcome{Verdict: v, Reason: settle.AttemptError, Error: redact.Text("cannot start the command: " + err.Error())}
}

// run starts the command and waits for its end. over asks for that.
func (c *Command) run(ctx context.Context, r Request, out, errs io.Writer, over <-chan struct{}) (end ending, err error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(slices.Clip(c.Env), "SETTLE_JOB="+r.Job.String(), "SETTLE_ATTEMPT="+strconv.Itoa(r.Attempt))
	ownGroup(cmd)
	p, err := connect(cmd, r.Input, out, errs)
	if err != nil {
		return end, err
	}
	defer p.close()
	if err := c.Group.start(cmd); err != nil {
		return end, err
	}
	p.begin()
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { end.stopped = c.watch(ctx, cmd.Process.Pid, over, ended) })
	state, err := cmd.Process.Wait()
	close(ended)
	watch.Wait()
	killGroup(cmd.Process.Pid) // what it left behind in its group
	c.Group.end(cmd)
	p.finish(pipeWait)
	if err == nil {
		end.code = exitCode(state)
	}
	return end, err
}

// watch ends the group when the attempt is over: first politely, then not. It
// reports whether it did so because the context had ended.
func (c *Command) watch(ctx context.Context, pid int, over, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	case <-over:
		killGroup(pid)
		return false
	case <-ctx.Done():
	}
	termGroup(pid)
	grace := c.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		killGroup(pid)
	}
	return true
}

// Group knows the commands that run, so that a program that must leave at once
// takes them along. The zero Group is ready; a nil one knows nothing.
type Group struct {
	mu   sync.Mutex
	pids map[int]bool
	shut bool
}

// Kill kills every command that runs, with its group, and refuses new ones.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for pid := range g.pids {
		killGroup(pid)
	}
}

// start starts the command under the lock, so that Kill misses none.
func (g *Group) start(cmd *exec.Cmd) error {
	if g == nil {
		return cmd.Start()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return errors.New("the program is leaving")
	}
	err := cmd.Start()
	if err == nil {
		if g.pids == nil {
			g.pids = map[int]bool{}
		}
		g.pids[cmd.Process.Pid] = true
	}
	return err
}

func (g *Group) end(cmd *exec.Cmd) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pids, cmd.Process.Pid)
}
