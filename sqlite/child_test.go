package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// children are what the test program does when it is started as a process of
// its own: args come from the test, lines go to standard output.
var children = map[string]func(args []string) error{
	"open": childOpen, "load": childLoad, "saturate": childSaturate, "claim": childClaim,
	"insert": childInsert, "migrate": childMigrate, "refused": childRefused, "repair": childRepair,
}

const childVar = "SETTLE_SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child is a process under test.
type child struct {
	*exec.Cmd
	t     testing.TB
	in    io.WriteCloser
	lines chan string
	errs  strings.Builder
}

func spawn(t testing.TB, name string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	return spawnAs(t, exe, 0, name, args...)
}

// spawnAs starts the program as a user; 0 = this one.
func spawnAs(t testing.TB, exe string, uid uint32, name string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(exe, args...), t: t, lines: make(chan string, 1<<20)}
	c.Env = append(os.Environ(), childVar+"="+name, "GORACE=atexit_sleep_ms=0")
	if uid != 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		c.Dir = "/"
	}
	c.Stderr = &c.errs
	var err error
	c.in, err = c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { _ = c.Process.Kill(); _, _ = c.Process.Wait() })
	return c
}

func (c *child) line() string {
	c.t.Helper()
	select {
	case s, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("child %v ended early: %v %s", c.Args, c.Cmd.Wait(), c.errs.String())
		}
		return s
	case <-time.After(30 * time.Second):
		c.t.Fatalf("child %v says nothing", c.Args)
		return ""
	}
}

// kill ends the process as kill -9 does, and returns the lines that are left.
func (c *child) kill() []string {
	_ = c.Process.Kill()
	return c.rest()
}

func (c *child) rest() (out []string) {
	for s := range c.lines {
		out = append(out, s)
	}
	_ = c.Cmd.Wait()
	return out
}

// ends waits for a process that must end by itself, and well.
func (c *child) ends() []string {
	c.t.Helper()
	_ = c.in.Close()
	var out []string
	for s := range c.lines {
		out = append(out, s)
	}
	if err := c.Cmd.Wait(); err != nil {
		c.t.Errorf("child %v: %v: %s", c.Args, err, c.errs.String())
	}
	return out
}

// ---- in the child

func childStore(path string) (*Store, error) {
	return Open(path, Config{KeepFree: -1, Synchronous: Normal})
}

// childOpen opens the file, stores some jobs and closes it.
func childOpen(args []string) error {
	st, err := childStore(args[0])
	if err != nil {
		return err
	}
	for range 10 {
		if _, err := st.Insert(context.Background(), task()); err != nil {
			return err
		}
	}
	return st.Close()
}

// childLoad inserts, claims and settles until it is killed. A line is written
// only after the call has been acknowledged.
func childLoad(args []string) error {
	st, err := Open(args[0], Config{KeepFree: -1})
	if err != nil {
		return err
	}
	var out sync.Mutex
	say := func(what string, id settle.ID) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(what, id)
	}
	return errors.Join(together(16, func(i int) error {
		for {
			if i%2 == 0 {
				got, err := st.Insert(context.Background(), task())
				if err != nil {
					return err
				}
				say("inserted", got[0].ID)
				continue
			}
			got, err := st.Claim(context.Background(), request(3))
			if err != nil {
				return err
			}
			for _, c := range got.Jobs {
				said, err := st.Apply(context.Background(), []settle.Transition{decided(c, success(""))})
				if err != nil || said[0] != settle.Done {
					return fmt.Errorf("settle: %v %w", said, err)
				}
				say("settled", c.ID)
			}
		}
	})...)
}

// childSaturate commits back to back until its input ends.
func childSaturate(args []string) error {
	st, err := childStore(args[0])
	if err != nil {
		return err
	}
	var over atomic.Bool
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); over.Store(true) }()
	var n atomic.Int64
	errs := together(8, func(int) error {
		for !over.Load() {
			if _, err := st.Insert(context.Background(), tasks(5, 100)...); err != nil {
				return err
			}
			if n.Add(1) == 50 {
				fmt.Println("ready")
			}
		}
		return nil
	})
	fmt.Println(n.Load())
	return errors.Join(append(errs, st.Close())...)
}

func childClaim(args []string) error {
	st, err := childStore(args[0])
	if err != nil {
		return err
	}
	for {
		got, err := st.Claim(context.Background(), request(7))
		if err != nil || len(got.Jobs) == 0 {
			return errors.Join(err, st.Close())
		}
		for _, c := range got.Jobs {
			fmt.Println(c.ID)
		}
	}
}

// childInsert stores one job for each line of its input.
func childInsert(args []string) error {
	st, err := childStore(args[0])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		got, err := st.Insert(context.Background(), task())
		if err != nil {
			return err
		}
		fmt.Println(got[0].ID)
	}
	return st.Close()
}

// childMigrate opens new files until it is killed.
func childMigrate(args []string) error {
	for i := 0; ; i++ {
		path := args[0] + strconv.Itoa(i)
		fmt.Println(path)
		st, err := childStore(path)
		if err != nil {
			return err
		}
		if _, err := st.Insert(context.Background(), task()); err != nil {
			return err
		}
		fmt.Println("stored")
		if err := st.Close(); err != nil {
			return err
		}
	}
}

// childRefused says how opening a path ends, and whether a job can be stored.
func childRefused(args []string) error {
	st, err := Open(args[0], Config{KeepFree: -1})
	if err == nil {
		_, err = st.Insert(context.Background(), task())
	}
	var r *settle.RefusedError
	switch {
	case errors.As(err, &r):
		fmt.Printf("refused|%s|%s\n", r.Recover, strings.ReplaceAll(err.Error(), "\n", " "))
	case err != nil:
		fmt.Printf("error||%v\n", err)
	default:
		fmt.Println("stored||")
	}
	return nil
}

func childRepair(args []string) error {
	r, err := Repair(context.Background(), args[0])
	if err != nil {
		fmt.Println("error", err)
		return nil
	}
	fmt.Println("sound", r.Sound)
	return nil
}
