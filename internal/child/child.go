// Package child runs commands that end with the program that runs them, also
// when that is killed by SIGKILL:
//
//   - the kernel kills the command itself when the thread that started it dies
//     (Linux);
//   - a guard, a small process of the same binary, kills the whole process
//     groups when its pipe to the program breaks (every Unix).
//
// Every command is the leader of a process group of its own, so that what it
// has started ends with it when its context ends.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec is one command to run.
type Spec struct {
	Path string   // the program's file: see Find
	Args []string // with the program's name as the first
	Env  []string // see Environ
	Dir  string   // "" = the current folder
	// Input is its standard input, of which it may leave any part unread.
	Input []byte
	// Stdout and Stderr get what it writes; nil = nobody does. A file is
	// written by the command itself. Another writer is written while it runs,
	// must not be used before Run has returned, and should take everything: a
	// command whose writing fails dies of that.
	Stdout, Stderr io.Writer
	// Grace says how long the command has between SIGTERM and SIGKILL when its
	// context has ended for this cause. nil = no time.
	Grace func(cause error) time.Duration
	// KillRest kills what a command that ended by itself has left running in
	// its group. Otherwise that is left alone, for good.
	KillRest bool
}

// Runner starts and kills commands. Make it with New; its methods may be
// called from any number of goroutines.
type Runner struct {
	starts chan start
	quit   chan struct{} // closed by Close: the starting thread is to end
	ended  chan struct{} // it has
	guard  *guard
	null   *os.File

	mu     sync.Mutex
	groups map[int]struct{} // leaders of the groups that run
	killed bool             // Kill was called
}

type start struct {
	spec  Spec
	files []*os.File
	reply chan<- started
}

type started struct {
	p   *os.Process
	err error
}

// New returns a Runner. The guard also holds the file lock, if not nil, open
// until what it has to kill is dead: a lock on it stays for so long.
func New(lock *os.File) (*Runner, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	g, err := startGuard(null, lock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard: %w", err), null.Close())
	}
	r := &Runner{starts: make(chan start), quit: make(chan struct{}), ended: make(chan struct{}),
		guard: g, null: null, groups: map[int]struct{}{}}
	go r.startAll()
	return r, nil
}

// startAll starts every command from one thread that lives as long as the
// Runner: the kernel ties a command's life to the thread that started it.
func (r *Runner) startAll() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(r.ended)
	for {
		select {
		case <-r.quit:
			return
		case s := <-r.starts:
			p, err := os.StartProcess(s.spec.Path, s.spec.Args, &os.ProcAttr{
				Dir: s.spec.Dir, Env: s.spec.Env, Sys: attributes(), Files: s.files})
			if err == nil {
				r.guard.add(p.Pid)
			}
			s.reply <- started{p, err}
		}
	}
}

// Close kills what still runs and ends the Runner. It is called once.
func (r *Runner) Close() error {
	r.Kill()
	close(r.quit)
	<-r.ended
	return errors.Join(r.guard.close(), r.null.Close())
}

// ErrKilled: the Runner starts nothing any more.
var ErrKilled = errors.New("commands are not started any more")

// Kill kills everything that runs, at once, and lets nothing start any more.
func (r *Runner) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = true
	for g := range r.groups {
		signalGroup(g, syscall.SIGKILL)
	}
}

// Run runs one command and waits until it has ended. When ctx ends, its whole
// group gets SIGTERM, and after the grace SIGKILL. An error says that it could
// not be started: ErrKilled, or see StartCode.
func (r *Runner) Run(ctx context.Context, s Spec) (Result, error) {
	st, err := connect(s, r.null)
	if err != nil {
		return Result{}, err
	}
	defer st.close()
	p, err := r.start(s, st.files)
	if err != nil {
		return Result{}, err
	}
	st.begin()
	res := wait(ctx, p, s.Grace)
	if s.KillRest {
		signalGroup(p.Pid, syscall.SIGKILL)
	}
	r.forget(p.Pid)
	st.finish()
	return res, nil
}

// wait waits for the end of a command, and brings it about when ctx ends.
func wait(ctx context.Context, p *os.Process, grace func(error) time.Duration) Result {
	ended := make(chan *os.ProcessState, 1)
	go func() {
		st, _ := p.Wait() // a child of ours that nobody else waits for
		ended <- st
	}()
	select {
	case st := <-ended:
		return result(st)
	case <-ctx.Done():
	}
	var d time.Duration
	if grace != nil {
		d = grace(context.Cause(ctx))
	}
	res := result(terminate(p.Pid, ended, d))
	res.Cut = true
	return res
}

// terminate ends a group: SIGTERM, the grace, SIGKILL.
func terminate(group int, ended <-chan *os.ProcessState, grace time.Duration) *os.ProcessState {
	signalGroup(group, syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	var st *os.ProcessState
	select {
	case st = <-ended:
	case <-t.C:
	}
	signalGroup(group, syscall.SIGKILL) // also what the leader left behind
	if st == nil {
		st = <-ended
	}
	return st
}

func (r *Runner) start(s Spec, files []*os.File) (*os.Process, error) {
	if r.isKilled() {
		return nil, ErrKilled
	}
	reply := make(chan started, 1)
	select {
	case <-r.quit:
		return nil, ErrKilled
	case r.starts <- start{s, files, reply}:
	}
	got := <-reply
	if got.err != nil {
		return nil, got.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[got.p.Pid] = struct{}{}
	if r.killed { // in the meantime
		signalGroup(got.p.Pid, syscall.SIGKILL)
	}
	return got.p, nil
}

func (r *Runner) isKilled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed
}

func (r *Runner) forget(group int) {
	r.mu.Lock()
	delete(r.groups, group)
	r.mu.Unlock()
	r.guard.remove(group)
}
