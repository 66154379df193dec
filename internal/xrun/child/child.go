// Package child runs commands that end with the program that runs them, also
// when that is killed by SIGKILL:
//
//   - the kernel kills the command itself when the thread that started it dies
//     (Linux);
//   - a guard, a small process of the same binary, kills the whole process
//     groups when its pipe to the program breaks (every Unix).
//
// Every command is the leader of a process group of its own, so that what it
// has started ends with it at a timeout. What it leaves running when it ends
// by itself is left alone.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec is one command to run. Its standard input is empty.
type Spec struct {
	Path           string   // the program's file
	Args           []string // with the program's name as the first
	Env            []string
	Dir            string   // "" = the current folder
	Stdout, Stderr *os.File // written by the command itself
	// Grace says, when its context has ended, how long the command has between
	// SIGTERM and SIGKILL.
	Grace func() time.Duration
}

// Signalled is the exit code of a command that a signal killed.
const Signalled = -1

// Result is how a command ended.
type Result struct {
	Code   int    // exit code, or Signalled
	Signal string // what killed it, for people; "" = it exited
	// Cut: its context ended before it did.
	Cut bool
}

// Runner starts and kills commands. Make it with New; its methods may be
// called from any number of goroutines.
type Runner struct {
	starts chan start
	ended  chan struct{} // the starting thread has ended
	guard  *guard
	null   *os.File

	mu     sync.Mutex
	groups map[int]struct{} // leaders of the groups that run
	killed bool             // Kill was called
}

type start struct {
	spec  Spec
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
	r := &Runner{starts: make(chan start), ended: make(chan struct{}), guard: g, null: null, groups: map[int]struct{}{}}
	go r.startAll()
	return r, nil
}

// startAll starts every command from one thread that lives as long as the
// Runner: the kernel ties a command's life to the thread that started it.
func (r *Runner) startAll() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(r.ended)
	for s := range r.starts {
		p, err := os.StartProcess(s.spec.Path, s.spec.Args, &os.ProcAttr{
			Dir: s.spec.Dir, Env: s.spec.Env, Sys: attributes(),
			Files: []*os.File{r.null, s.spec.Stdout, s.spec.Stderr},
		})
		if err == nil {
			r.guard.add(p.Pid)
		}
		s.reply <- started{p, err}
	}
}

// Close ends the Runner. No command may run any more.
func (r *Runner) Close() error {
	close(r.starts)
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
// not be started: see StartCode.
func (r *Runner) Run(ctx context.Context, s Spec) (Result, error) {
	p, err := r.start(s)
	if err != nil {
		return Result{}, err
	}
	ended := make(chan *os.ProcessState, 1)
	go func() {
		st, _ := p.Wait() // a child of ours that nobody else waits for
		ended <- st
	}()
	defer r.forget(p.Pid)
	select {
	case st := <-ended:
		return result(st), nil
	case <-ctx.Done():
	}
	res := result(terminate(p.Pid, ended, s.Grace()))
	res.Cut = true
	return res, nil
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

func (r *Runner) start(s Spec) (*os.Process, error) {
	reply := make(chan started, 1)
	r.starts <- start{s, reply}
	got := <-reply
	if got.err != nil {
		return nil, got.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[got.p.Pid] = struct{}{}
	if r.killed {
		signalGroup(got.p.Pid, syscall.SIGKILL)
	}
	return got.p, nil
}

func (r *Runner) forget(group int) {
	r.mu.Lock()
	delete(r.groups, group)
	r.mu.Unlock()
	r.guard.remove(group)
}

// StartCode returns the exit code that a shell gives to a command that cannot
// be started: 127 not found, 126 cannot be executed. ok is false when the
// error is of this moment only, such as too many processes.
func StartCode(err error) (code int, ok bool) {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return 0, false
	}
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR:
		return 127, true
	case syscall.EACCES, syscall.EPERM, syscall.ENOEXEC, syscall.E2BIG, syscall.EINVAL, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EISDIR:
		return 126, true
	}
	return 0, false
}
