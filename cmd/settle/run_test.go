//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// runIn is "settle run" in a process and a folder of its own.
type runIn struct {
	t   *testing.T
	dir string
}

func newRunIn(t *testing.T) *runIn { return &runIn{t, t.TempDir()} }

// program prepares a start; what it says goes to the returned buffer.
func (r *runIn) program(in io.Reader, args ...string) (*exec.Cmd, *bytes.Buffer) {
	said := &bytes.Buffer{}
	c := exec.Command(os.Args[0], append([]string{"run"}, args...)...)
	c.Env = append(os.Environ(), asMain+"=1", "GORACE=atexit_sleep_ms=0", "SETTLE_DB=settle.db")
	c.Dir, c.Stdin, c.Stderr = r.dir, in, said
	return c, said
}

// run carries one start out.
func (r *runIn) run(in string, args ...string) (code int, out, said string) {
	r.t.Helper()
	c, errs := r.program(strings.NewReader(in), args...)
	b, err := c.Output()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		r.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(b), errs.String()
}

func (r *runIn) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

// jobs reads all jobs of the folder's database.
func (r *runIn) jobs() (out []settle.Job) {
	r.t.Helper()
	st, err := sqlite.Open(filepath.Join(r.dir, "settle.db"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer st.Close()
	for j, err := range settle.NewClient(st).List(context.Background(), settle.Filter{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, j)
	}
	return out
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// noProcess reports whether a process has ended (zombies have).
func noProcess(pid string) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strings.TrimSpace(pid)).Output()
	s := strings.TrimSpace(string(out))
	return s == "" || s[0] == 'Z'
}

// Killed again and again, every item runs, none of those that were recorded as
// succeeded runs again, nobody waits for a lease (30 s), and only what was
// running pays with an attempt.
func TestAKilledRunGoesOnAtOnceWhereItWas(t *testing.T) {
	r := newRunIn(t)
	const n, jobs = 150, 3
	args := []string{"-j", fmt.Sprint(jobs), "--attempts", "10", "--", "sh", "-c", `echo x >> "ran.$1"; sleep 0.01; echo "out $1"`, "sh", "{}"}
	began := time.Now()
	done := map[string]int{} // how often an item had run when its success was recorded
	kills := 0
	var all strings.Builder
	for ; kills < 4; kills++ {
		c, _ := r.program(strings.NewReader(numbers(n)), args...)
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		more := len(done) + 15
		waitFor(t, "some more items to run", func() bool {
			ran, _ := filepath.Glob(filepath.Join(r.dir, "ran.*"))
			return len(ran) >= more
		})
		c.Process.Kill()
		c.Wait()
		all.Write(out.Bytes())
		for _, j := range r.jobs() {
			if j.State == settle.Succeeded && done[string(j.Input)] == 0 {
				done[string(j.Input)] = strings.Count(r.file("ran."+string(j.Input)), "x")
			}
		}
	}
	code, out, said := r.run(numbers(n), args...)
	all.WriteString(out)
	if code != 0 || !strings.Contains(said, "150 items succeeded (") || !strings.Contains(said, "goes on") {
		t.Fatalf("code %d: %s", code, said)
	}
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("%d kills and the rest took %s: somebody waited for a lease", kills, took)
	}
	charged := 0
	for _, j := range r.jobs() {
		item := string(j.Input)
		ran := strings.Count(r.file("ran."+item), "x")
		if done[item] > 0 && ran != done[item] {
			t.Errorf("item %s ran %d times, %d of them before its success was recorded", item, ran, done[item])
		}
		if !strings.Contains(all.String(), "out "+item+"\n") {
			t.Errorf("the output of item %s is lost", item)
		}
		charged += j.Charged() - 1
	}
	if charged > kills*jobs {
		t.Errorf("%d kills of %d commands cost %d attempts", kills, jobs, charged)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*.lock")); len(left) > 0 {
		t.Errorf("a finished run left %v", left)
	}
}

func TestChildrenAndGrandchildrenDieWithAKilledRun(t *testing.T) {
	r := newRunIn(t)
	c, _ := r.program(strings.NewReader("a\n"), "--", "sh", "-c", `sh -c 'sleep 1000 & echo $! > grandchild; wait' & echo $$ > child; wait`)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "both pids", func() bool { return r.file("child") != "" && r.file("grandchild") != "" })
	c.Process.Kill()
	c.Wait()
	waitFor(t, "the end of both", func() bool { return noProcess(r.file("child")) && noProcess(r.file("grandchild")) })
}

// An item that kills settle ends as worker_lost, and takes no neighbour along.
func TestAnItemThatKillsSettleDiesAlone(t *testing.T) {
	for _, order := range []string{"--keep-order", "--keep-order=false"} {
		r := newRunIn(t)
		args := []string{"-j4", order, "--attempts", "3", "--", "sh", "-c", `if [ $1 = 3 ]; then sleep 0.3; kill -9 $PPID; sleep 100; fi; sleep 0.2; echo $1`, "sh", "{}"}
		code, said := -1, ""
		for starts := 0; code == -1; starts++ {
			if starts > 3 {
				t.Fatalf("%s: killed %d times: %s", order, starts, said)
			}
			code, _, said = r.run(numbers(8), args...)
		}
		if code != 3 || !strings.Contains(said, "7 items succeeded") || !strings.Contains(said, "dead: worker_lost") || !strings.Contains(said, "#3 '3'") {
			t.Errorf("%s: code %d: %s", order, code, said)
		}
	}
}

func TestASecondStartOfARunUnderWayIsRefused(t *testing.T) {
	r := newRunIn(t)
	c, _ := r.program(strings.NewReader("a\n"), "--name", "x", "--", "sh", "-c", "echo > up; sleep 1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	waitFor(t, "the first start", func() bool { return r.file("up") != "" })
	code, _, said := r.run("a\n", "--name", "x", "--", "true")
	if want := fmt.Sprintf("run x is under way: process %d is at it", c.Process.Pid); code != 1 || !strings.Contains(said, want) {
		t.Errorf("code %d, want 1 and %q: %s", code, want, said)
	}
	if code, _, said := r.run("a\n", "--name", "y", "--", "true"); code != 0 {
		t.Errorf("another run beside it: code %d: %s", code, said)
	}
}

func TestTheFirstWishToStopLetsCommandsEndAndTheSecondKillsThem(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		r := newRunIn(t)
		c, said := r.program(strings.NewReader(numbers(5)), "-j1", "--", "sh", "-c", `echo $$ > up; while ! test -e go; do sleep 0.01; done; echo $1`, "sh", "{}")
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the first command", func() bool { return r.file("up") != "" })
		c.Process.Signal(sig)
		time.Sleep(50 * time.Millisecond)
		os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600)
		c.Wait()
		if c.ProcessState.ExitCode() != 1 || out.String() != "1\n" {
			t.Errorf("%s: code %d, output %q", sig, c.ProcessState.ExitCode(), out.String())
		}
		for _, w := range []string{"1 item succeeded, 4 still to run", "the same command continues: … | settle run --jobs=1 -- sh -c "} {
			if !strings.Contains(said.String(), w) {
				t.Errorf("%s: it does not say %q: %s", sig, w, said)
			}
		}
		os.Remove(filepath.Join(r.dir, "go"))
		os.Remove(filepath.Join(r.dir, "up"))
		c, said = r.program(strings.NewReader(numbers(5)), "-j1", "--", "sh", "-c", `echo $$ > up; while ! test -e go; do sleep 0.01; done; echo $1`, "sh", "{}")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the second command", func() bool { return r.file("up") != "" })
		began := time.Now()
		c.Process.Signal(sig)
		time.Sleep(50 * time.Millisecond)
		c.Process.Signal(sig) // as GNU timeout does: it is one wish
		time.Sleep(sameWish + 100*time.Millisecond)
		if noProcess(r.file("up")) {
			t.Errorf("%s: two signals at once killed the command: %s", sig, said)
		}
		c.Process.Signal(sig)
		c.Wait()
		if c.ProcessState.ExitCode() != 1 || time.Since(began) > 6*time.Second || !noProcess(r.file("up")) {
			t.Errorf("%s: code %d after %s: %s", sig, c.ProcessState.ExitCode(), time.Since(began), said)
		}
	}
}

func TestAnInterruptedAttemptIsNotCharged(t *testing.T) {
	r := newRunIn(t)
	c, said := r.program(strings.NewReader("a\n"), "--grace", "50ms", "--", "sh", "-c", `echo > up; sleep 1000`)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the command", func() bool { return r.file("up") != "" })
	c.Process.Signal(syscall.SIGTERM)
	c.Wait()
	if jobs := r.jobs(); len(jobs) != 1 || jobs[0].State != settle.Pending || jobs[0].Charged() != 0 {
		t.Errorf("it stands at %+v; it said %s", jobs, said)
	}
}

func TestAClosedOutputEndsTheRun(t *testing.T) {
	r := newRunIn(t)
	c, said := r.program(strings.NewReader(numbers(2000)), "-j2", "--", "sh", "-c", `head -c 30000 /dev/zero; echo`)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	io.ReadFull(out, make([]byte, 1000))
	out.Close()
	c.Wait()
	if c.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "standard output was closed by its reader") {
		t.Errorf("code %d: %s", c.ProcessState.ExitCode(), said)
	}
	for _, j := range r.jobs() {
		if j.State == settle.Dead || j.Charged() > 1 {
			t.Errorf("item %s is %s with %d attempts charged", j.Input, j.State, j.Charged())
		}
	}
}

// Thousands of real files, some with names that are no text, give what xargs
// gives.
func TestThousandsOfFilesGiveWhatXargsGives(t *testing.T) {
	r := newRunIn(t)
	var names bytes.Buffer
	for i := range 2000 {
		name := fmt.Sprintf("file %d é.txt", i)
		switch i % 100 {
		case 1:
			name = fmt.Sprintf("new\nline %d", i)
		case 2:
			name = fmt.Sprintf("\xff\xfe %d", i)
		case 3:
			name = fmt.Sprintf("quote'\"\\$(x) %d", i)
		}
		if err := os.WriteFile(filepath.Join(r.dir, name), bytes.Repeat([]byte{byte(i)}, i), 0o600); err != nil {
			t.Skipf("this file system takes no such names: %v", err)
		}
		names.WriteString(name + "\x00")
	}
	xargs := exec.Command("xargs", "-0", "sha256sum", "--zero")
	xargs.Dir, xargs.Stdin = r.dir, bytes.NewReader(names.Bytes())
	want, err := xargs.Output()
	if err != nil {
		t.Fatal(err)
	}
	code, out, said := r.run(names.String(), "-0", "-k", "--durability", "normal", "--", "sha256sum", "--zero", "{}")
	if code != 0 || out != string(want) {
		t.Fatalf("code %d, %d bytes with sum %x, want %d with sum %x; it said %s", code, len(out), sha256.Sum256([]byte(out)), len(want), sha256.Sum256(want), said)
	}
}

func TestFlagsOfRunAreHeldToWhatTheyMean(t *testing.T) {
	r := newRunIn(t)
	if err := os.WriteFile(filepath.Join(r.dir, "items"), []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{}, 2, "want a command"},
		{[]string{"--", "no-such-command"}, 2, `command "no-such-command" not found`},
		{[]string{"-j", "0", "--", "true"}, 2, "--jobs 0: want 1 to"},
		{[]string{"--max-dead", "x", "--", "true"}, 2, "--max-dead"},
		{[]string{"--durability", "x", "--", "true"}, 2, "want full or normal"},
		{[]string{"--items", "none", "--", "true"}, 2, "--items"},
		{[]string{"--items", ".", "--", "true"}, 2, "is a folder"},
		{[]string{"--ok", "x", "--", "true"}, 2, "--ok"},
		{[]string{"--db", ".", "--", "true"}, 2, "--db"},
		{[]string{"--dry-run", "--items", "items", "--", "echo", "-n"}, 0, "would run 2 items"},
	} {
		code, out, said := r.run("a\n", c.args...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%q: code %d, want %d and %q: %s", c.args, code, c.code, c.says, said)
		}
		if c.code == 0 && out != "run     echo -n a\nrun     echo -n b\n" {
			t.Errorf("the dry run showed %q", out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "settle.db*")); len(left) > 0 {
		t.Errorf("usage errors and a dry run left %v", left)
	}
	// Flags behind the command are the command's, also without "--".
	code, out, said := r.run("", "--items", "items", "-k", "--json", "echo", "-n", "-k", "{}")
	if code != 0 || out != "-k a-k b" || !strings.Contains(said, `"succeeded":2`) {
		t.Errorf("code %d, output %q: %s", code, out, said)
	}
}

func TestTheCommandThatContinuesIsTheOneThatWasGiven(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" })
	c := newRunCmd(a)
	args := []string{"-j3", "-k", "--ok", "0,1", "--name", "my run", "--retry-dead", "--grace", "36h", "--", "sh", "-c", "echo \"$1\"", "sh", "{}"}
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	got := again(c.Flags(), c.Flags().Args(), "")
	if want := `… | settle run --jobs=3 --keep-order --ok=0,1 '--name=my run' --grace=36h -- sh -c 'echo "$1"' sh {}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
