//go:build unix

package child

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// guardEnv in the environment makes a program with this package a guard.
const (
	guardEnv   = "SETTLE_GUARD"
	guardValue = "fd3"
)

// init turns the program into a guard, before anything else of it runs. A
// guard is a process of the same binary, so that no second one is needed.
func init() {
	if os.Getenv(guardEnv) == guardValue {
		watch(os.NewFile(3, "pipe"))
		os.Exit(0)
	}
}

// guard is the program's side of the guard process: a pipe, on which the
// leaders of groups are written as they start (+) and end (−). When the
// program dies, by whatever means, the pipe breaks.
type guard struct {
	pipe *os.File
	p    *os.Process
}

func startGuard(null, lock *os.File) (*guard, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	files := []*os.File{null, null, null, r}
	if lock != nil {
		files = append(files, lock)
	}
	p, err := os.StartProcess(self, []string{"settle-guard"}, &os.ProcAttr{
		Dir: "/", Files: files,
		Env: []string{guardEnv + "=" + guardValue, "GORACE=atexit_sleep_ms=0"}, // the race detector of a test would sleep
		Sys: &syscall.SysProcAttr{Setsid: true},                                // out of reach of Ctrl-C
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &guard{w, p}, nil
}

func (g *guard) add(leader int)    { g.tell(int64(leader)) }
func (g *guard) remove(leader int) { g.tell(-int64(leader)) }

// tell writes one number. A guard that somebody killed is done without: the
// commands themselves still end with the program where the kernel sees to it.
func (g *guard) tell(n int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, _ = g.pipe.Write(b[:])
}

// close ends the guard in peace: no group is left for it to kill.
func (g *guard) close() error {
	err := g.pipe.Close()
	_, _ = g.p.Wait()
	return err
}

// watch is the life of a guard.
func watch(pipe io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	kill(read(pipe))
}

// read follows the pipe to its end and returns the leaders that are left.
func read(pipe io.Reader) map[int]bool {
	leaders := map[int]bool{}
	in := bufio.NewReader(pipe)
	var b [8]byte
	for {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return leaders
		}
		if n := int(int64(binary.LittleEndian.Uint64(b[:]))); n > 1 {
			leaders[n] = true
		} else {
			delete(leaders, -n)
		}
	}
}

// How long a guard waits for the dead: killed processes go within milliseconds
// unless the kernel holds them (a lost disk).
const (
	deathPoll = 2 * time.Millisecond
	deathWait = 5 * time.Second
)

// kill kills the groups and waits until they are gone, so that whoever waits
// for the lock that the guard holds open starts nothing beside them.
func kill(leaders map[int]bool) {
	for g := range leaders {
		signalGroup(g, syscall.SIGKILL)
	}
	for waited := time.Duration(0); waited < deathWait && len(leaders) > 0; waited += deathPoll {
		for g := range leaders {
			if groupGone(g) || groupOfZombies(g) {
				delete(leaders, g)
			}
		}
		time.Sleep(deathPoll)
	}
}
