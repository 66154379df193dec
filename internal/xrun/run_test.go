package xrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

func number(n int) string { return strconv.Itoa(n) }

// sorted sorts the lines of an output.
func sorted(s string) string {
	l := strings.SplitAfter(s, "\n")
	slices.Sort(l)
	return strings.Join(l, "")
}

func TestEveryItemRunsOnceAndAFinishedRunRunsOnlyWhatIsNew(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo "$1" >> log; echo "out $1"`)
	first := r.run(c, "a\nb\nb\n\nc\n") // the same text twice is two items
	first.says(t, "run test, 2 at a time", "done in", "4 items succeeded")
	if sorted(first.out) != "out a\nout b\nout b\nout c\n" || first.code != 0 {
		t.Fatalf("code %d, output %q", first.code, first.out)
	}
	again := r.run(c, "a\nb\nb\nc\n")
	again.want(t, 0, "")
	again.says(t, "run test finished", "4 succeeded", "only new items run", "--forget", "4 items succeeded (4 before this start)")
	more := r.run(c, "c\nb\nd\nb\nb\na\n")
	more.says(t, "6 items succeeded (4 before this start)")
	if got := sorted(more.out); got != "out b\nout d\n" {
		t.Errorf("the third start ran %q, want d and one more b", got)
	}
	if got := sorted(r.file("log")); got != "a\nb\nb\nb\nc\nd\n" {
		t.Errorf("in all it ran %q", got)
	}
}

func TestForgetRunsAFinishedRunAnewAndRefusesAnUnfinishedOne(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo "$1"`)
	r.run(c, "a\nb\n")
	c.Forget = true
	s := r.run(c, "a\n")
	s.want(t, 0, "a\n")
	s.says(t, "forgot 2 items")
	if jobs := r.jobs(); len(jobs) != 1 {
		t.Errorf("%d rows after it, want 1", len(jobs))
	}
	st, _ := sqlite.Open(r.db)
	st.Insert(context.Background(), settle.New{Kind: kind, Input: []byte("x"), EnqueueOpts: settle.EnqueueOpts{Queue: "run/test"}})
	st.Close()
	if s := r.run(c, "a\n"); s.fault == nil || !strings.Contains(s.fault.Error(), "not finished") {
		t.Errorf("an unfinished run was forgotten: %v", s.fault)
	}
}

func TestFailuresEndAsTheyShouldAndTheTableSaysSo(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`case $1 in
		ok) echo fine;;
		flaky) echo x >> flaky; echo "no $1" >&2; test $(wc -l < flaky) -ge 3 && echo at last;;
		poison) echo half a result; echo 'cannot read /etc/secret/file: token=abcdefgh12345678' >&2; exit 65;;
		worn) echo "worn out" >&2; exit 4;;
		silent) exit 9;;
		killed) kill -SEGV $$;;
	esac`)
	c.Jobs = 4
	s := r.run(c, "ok\nflaky\npoison\nworn\nsilent\nkilled\n")
	if s.code != 3 || sorted(s.out) != "at last\nfine\n" {
		t.Fatalf("code %d, output %q; it said:\n%s", s.code, s.out, s.err)
	}
	s.says(t, "2 items succeeded, 4 did not",
		"dead: terminal", "'poison': cannot read file: token=[redacted] (exit status 65)",
		"dead: exhausted", "half a result", "settle dead list --queue run/test", "--retry-dead")
	for _, j := range r.jobs() {
		item, want := string(j.Input), map[string]struct {
			state    settle.State
			attempts int
			reason   settle.AttemptReason
			text     string
		}{
			"ok": {settle.Succeeded, 1, "", ""}, "flaky": {settle.Succeeded, 3, "", ""},
			"poison": {settle.Dead, 1, settle.AttemptError, "cannot read file: token=[redacted] (exit status 65)"},
			"worn":   {settle.Dead, 3, settle.AttemptError, "worn out (exit status 4)"},
			"silent": {settle.Dead, 3, settle.AttemptError, "exit status 9"},
			"killed": {settle.Dead, 3, settle.AttemptError, "killed by a signal: segmentation fault"},
		}
		w := want[item]
		if j.State != w.state || j.Attempt != w.attempts {
			t.Errorf("%s: %s after %d attempts, want %s after %d", item, j.State, j.Attempt, w.state, w.attempts)
		}
		if w.state == settle.Dead {
			st, _ := sqlite.Open(r.db)
			full, _ := st.Job(context.Background(), j.ID)
			st.Close()
			if last, _ := full.LastError(); last.Error != w.text || last.Reason != w.reason {
				t.Errorf("%s: %s: %q, want %s: %q", item, last.Reason, last.Error, w.reason, w.text)
			}
		}
	}
	c.RetryDead, c.OK = true, []int{4}
	s = r.run(c, "ok\nworn\n")
	s.says(t, "4 items that had died run again", "worn out", "2 items succeeded (1 before this start)",
		"not in this input, left from an earlier one, and counted apart: 0 succeeded, 3 dead")
	if s.code != 3 {
		t.Errorf("code %d, want 3", s.code)
	}
	c.RetryDead = false
	s = r.run(c, "ok\nworn\n")
	s.want(t, 0, "")
	s.says(t, "dead or cancelled since an earlier one: 3")
	s = r.run(c, "ok\nworn\npoison\n")
	if s.want(t, 3, ""); !strings.Contains(s.err, "dead: terminal") {
		t.Errorf("a dead item of the input is not in the table:\n%s", s.err)
	}
}

func TestACommandThatHangsIsKilledWithAllItStarted(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo half; echo why >&2; sleep 1000 & echo $! >> pids; wait`)
	c.Timeout, c.Attempts = 400*time.Millisecond, 2
	s := r.run(c, "a\nb\n")
	s.want(t, 3, "")
	s.says(t, "dead: exhausted", "#1 'a': why (timed out after 400ms)")
	for _, pid := range strings.Fields(r.file("pids")) {
		await(t, "the end of "+pid, func() bool {
			out, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
			return len(out) == 0 || out[0] == 'Z'
		})
	}
	for _, j := range r.jobs() {
		st, _ := sqlite.Open(r.db)
		full, _ := st.Job(context.Background(), j.ID)
		st.Close()
		if last, _ := full.LastError(); j.Attempt != 2 || last.Reason != settle.AttemptTimedOut {
			t.Errorf("%s: %d attempts, the last %+v", j.Input, j.Attempt, last)
		}
	}
}

func TestCodesOfTheFlagsWinOverTheTable(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo "$1"; exit $1`)
	c.OK, c.Terminal, c.Ordered = []int{1, 65}, []int{7}, true
	s := r.run(c, "0\n1\n65\n7\n")
	s.want(t, 3, "0\n1\n65\n")
	s.says(t, "dead: terminal", "#4 '7': exit status 7")
}

func TestOutputInTheOrderOfTheInputDoesNotHoldCommandsUp(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo start $1 >> log; if [ $1 = 1 ]; then while [ $(wc -l < log) -lt 40 ]; do sleep 0.01; done; fi; echo "out $1"; test $1 != 7`)
	c.Ordered, c.Attempts = true, 1
	s := r.run(c, lines(40)) // the first ends only when all the others have begun
	var want strings.Builder
	for i := 1; i <= 40; i++ {
		if i != 7 {
			fmt.Fprintf(&want, "out %d\n", i)
		}
	}
	s.want(t, 3, want.String())
	s.says(t, "out 7") // of a dead item, on standard error
}

// A first item that fails comes behind all others in the queue; with more of
// them than may wait it still gets its turn. So do items that an earlier start
// without -k has stored.
func TestTheOrderIsKeptHoweverFarBehindTheFirstItemFalls(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`test $1 = 1 && ! test -e again && touch again && exit 75; echo $1`)
	c.Ordered, c.window, c.Jobs = true, 20, 3
	r.run(c, lines(60)).want(t, 0, lines(60))

	r = newRunner(t)
	unordered := r.sh(`exit 75`)
	unordered.Attempts, unordered.Jobs, unordered.Backoff = 5, 1, time.Millisecond
	stop := make(chan os.Signal, 1)
	unordered.Stop = stop
	st, err := sqlite.Open(r.db, r.conf)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	go func() {
		await(t, "all items to be stored", func() bool {
			n, err := countRows(context.Background(), st, "run/test")
			return err == nil && sum(n) == 60
		})
		stop <- os.Interrupt
	}()
	r.on(st, unordered, strings.NewReader(lines(60))).want(t, 1, "")
	r.on(st, c, strings.NewReader(lines(60))).want(t, 0, lines(60))
}

func TestTheOrderGoesOnWhenSomebodyElseEndsAnItem(t *testing.T) {
	r := newRunner(t)
	st, err := sqlite.Open(r.db, r.conf)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := r.sh(`test $1 != 1 || exit 75; echo $1`)
	c.Ordered, c.Backoff = true, time.Hour // the first waits for its second attempt
	go func() {
		await(t, "the first attempt", func() bool {
			j, err := st.Job(context.Background(), jobID("test", []byte("1"), 0))
			return err == nil && j.State == settle.Pending && j.Attempt == 1
		})
		settle.NewClient(st).Cancel(context.Background(), jobID("test", []byte("1"), 0), "not wanted")
	}()
	s := r.on(st, c, strings.NewReader("1\n2\n3\n"))
	s.want(t, 3, "2\n3\n")
	s.says(t, "cancelled: cancelled")
}

func TestEachItemsOutputIsWholeAndTagged(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`for i in 1 2 3 4 5; do echo "$1 line $i"; sleep 0.01; done; printf end`)
	c.Jobs, c.Tag = 8, true
	s := r.run(c, lines(16))
	if s.code != 0 {
		t.Fatal(s.err)
	}
	got := strings.Split(strings.TrimSuffix(s.out, "\n"), "\n")
	for i := 0; i+6 <= len(got); i += 6 {
		item, _, _ := strings.Cut(got[i], "\t")
		for n := range 5 {
			if want := fmt.Sprintf("%s\t%s line %d", item, item, n+1); got[i+n] != want {
				t.Fatalf("line %q, want %q", got[i+n], want)
			}
		}
		if got[i+5] != item+"\tend" {
			t.Fatalf("line %q, want %q", got[i+5], item+"\tend")
		}
	}
	if len(got) != 16*6 {
		t.Errorf("%d lines, want %d", len(got), 16*6)
	}
}

func TestLargeOutputsPassWhole(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`head -c 10000000 /dev/zero | tr '\0' "$1"; echo`)
	c.Ordered, c.Jobs = true, 4
	s := r.run(c, "a\nb\nc\nd\n")
	want := ""
	for _, l := range "abcd" {
		want += strings.Repeat(string(l), 10_000_000) + "\n"
	}
	if s.code != 0 || s.out != want {
		t.Fatalf("code %d, %d bytes, want %d", s.code, len(s.out), len(want))
	}
}

func TestItemsAreBytesAndStandInArgumentsAndEnvironment(t *testing.T) {
	r := newRunner(t)
	c := r.config("sh", "-c", `printf '%s|%s|%s|%s\n' "$1" "$2" "$SETTLE_ITEM" "$SETTLE_ATTEMPT"; test -n "$SETTLE_JOB"`, "sh", "{}", "n{#}-{/.}")
	c.Ordered, c.NUL = true, true
	r.run(c, "d/a b.txt\x00two\nlines\x00\xff\xfe.x\x00 \x00").want(t, 0,
		"d/a b.txt|n1-a b|d/a b.txt|1\ntwo\nlines|n2-two\nlines|two\nlines|1\n\xff\xfe.x|n3-\xff\xfe|\xff\xfe.x|1\n |n4- | |1\n")
}

func TestAnItemThatNoCommandCanTakeDiesWithAReason(t *testing.T) {
	r := newRunner(t)
	s := r.run(r.config("true"), "ok\n"+strings.Repeat("fill", 20_000)+"\nnul\x00here\n"+strings.Repeat("x", 200_000)+"\n"+strings.Repeat("y", 2<<20)+"\n")
	if s.code != 3 {
		t.Fatalf("code %d: %s", s.code, s.err)
	}
	s.says(t, "2 items succeeded, 3 did not", "holds a NUL byte", "add -0", "argument list too long", "refused", "2097152 bytes long")
}

func TestWhatIsMissingFromTheInputStillRunsAndIsCountedApart(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo "old $1"; exit 75`)
	c.Backoff = time.Hour
	stop := make(chan os.Signal, 1)
	c.Stop = stop
	st, err := sqlite.Open(r.db, r.conf)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		await(t, "two first attempts", func() bool {
			jobs, _, _ := st.Jobs(context.Background(), settle.Filter{Queue: "run/test", States: []settle.State{settle.Pending}})
			return len(jobs) == 2 && jobs[0].Attempt+jobs[1].Attempt == 2
		})
		stop <- os.Interrupt
	}()
	s := r.on(st, c, strings.NewReader("a\nb\n"))
	s.want(t, 1, "")
	s.says(t, "interrupted", "2 still to run", "the same command continues: settle run …")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	r.due(t)
	c = r.sh(`echo "new $1"`)
	s = r.run(c, "b\nc\n")
	if s.code != 0 || sorted(s.out) != "new a\nnew b\nnew c\n" {
		t.Fatalf("code %d, output %q; it said:\n%s", s.code, s.out, s.err)
	}
	s.says(t, "goes on", "2 to run", "the command is another one than before: it was sh -c 'echo \"old $1\"; exit 75' sh {}",
		"2 items succeeded", "counted apart: 1 succeeded")
}

// due makes all pending jobs due.
func (r *runner) due(t *testing.T) {
	t.Helper()
	st, err := sqlite.Open(r.db)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Pull(context.Background(), 2*time.Hour, time.Minute, 1000); err != nil {
		t.Fatal(err)
	}
}

func TestReadingPausesWhileTheStoreIsFull(t *testing.T) {
	r := newRunner(t)
	r.conf.MaxJobs = 20
	c := r.sh(`sleep 0.005; echo $1`)
	c.Ordered = true
	s := r.run(c, lines(200))
	s.want(t, 0, lines(200))
	s.says(t, "the store is full", "200 items succeeded")
}

func TestASlowInputIsRunAsItComes(t *testing.T) {
	r := newRunner(t)
	in, w := io.Pipe()
	var out safeBuffer
	c := r.sh(`echo $1`)
	c.Out = &out
	done := make(chan said)
	go func() { done <- r.read(c, in) }()
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(w, "%d\n", i)
		await(t, "the output of an item while the input is open", func() bool { return out.String() == lines(i) })
	}
	w.Close()
	if s := <-done; s.code != 0 {
		t.Error(s.err)
	}
}

func TestABrokenInputIsSaidAndWhatWasReadRuns(t *testing.T) {
	r := newRunner(t)
	boom := errors.New("the disk is gone")
	s := r.read(r.sh(`echo $1`), io.MultiReader(strings.NewReader("a\nb\ncut"), &failing{boom}))
	if s.code != 1 || sorted(s.out) != "a\nb\n" {
		t.Fatalf("code %d, output %q: %s", s.code, s.out, s.err)
	}
	s.says(t, "the disk is gone")
}

type failing struct{ err error }

// Read implements io.Reader.
func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestTooManyDeadStopTheRun(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`echo $1 >> log; exit 64`)
	c.Jobs, c.MaxDead = 1, MaxDead{Set: true, N: 2}
	s := r.run(c, lines(100))
	s.want(t, 1, "")
	s.says(t, "more items died than --max-dead 2 allows", "97 still to run", "continues")
	if n := strings.Count(r.file("log"), "\n"); n != 3 {
		t.Errorf("%d items ran before it stopped, want 3", n)
	}
}

func TestPercentagesOfDeadAreJudgedOnceEnoughHaveEnded(t *testing.T) {
	for _, c := range []struct {
		bound       string
		dead, ended int64
		want        bool
	}{
		{"", 1000, 1000, false}, {"0", 0, 9, false}, {"0", 1, 1, true}, {"5", 5, 5, false}, {"5", 6, 6, true},
		{"10%", 19, 19, false}, {"10%", 2, 20, false}, {"10%", 3, 20, true}, {"0%", 1, 20, true}, {"100%", 50, 50, false},
	} {
		m, err := ParseMaxDead(c.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Reached(c.dead, c.ended); got != c.want {
			t.Errorf("%q with %d of %d dead: %v, want %v", c.bound, c.dead, c.ended, got, c.want)
		}
	}
	for _, bad := range []string{"x", "-1", "101%", "%", "1.5", "5 %"} {
		if _, err := ParseMaxDead(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestWhatCannotBeRunIsAUsageErrorBeforeAnythingIsStored(t *testing.T) {
	r := newRunner(t)
	plain := r.dir + "/plain"
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"not found":            r.config("no-such-command", "{}"),
		"cannot be executed":   r.config("./plain"),
		"without a shell":      r.config("echo {} | wc -l"),
		"sh -c":                r.config("echo a > b"),
		"want a command":       r.config(),
		"--jobs 0":             func() Config { c := r.config("true"); c.Jobs = 0; return c }(),
		"--attempts 1001":      func() Config { c := r.config("true"); c.Attempts = 1001; return c }(),
		"--timeout -1s":        func() Config { c := r.config("true"); c.Timeout = -time.Second; return c }(),
		"in --ok and in --ter": func() Config { c := r.config("true"); c.OK, c.Terminal = []int{1}, []int{1}; return c }(),
		"want 0 to 255":        func() Config { c := r.config("true"); c.OK = []int{256}; return c }(),
		"control or invisible": func() Config { c := r.config("true"); c.Name = "a\x1bb"; return c }(),
		"the limit is 200":     func() Config { c := r.config("true"); c.Name = strings.Repeat("x", 300); return c }(),
	} {
		c.In = strings.NewReader("a\n")
		_, err := Prepare(c)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("want a usage error that says %q, got %v", name, err)
		}
	}
}

func TestADryRunShowsWhatWouldRunAndChangesNothing(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`test $1 != b || exit 64`)
	r.run(c, "a\nb\n")
	dry := func(st settle.Store, c Config) string {
		var out, errs strings.Builder
		c.In, c.Out, c.Err = strings.NewReader("a\nb\nc d\n"), &out, &errs
		p, err := Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.DryRun(context.Background(), st); err != nil {
			t.Fatal(err)
		}
		return out.String() + errs.String()
	}
	st, err := sqlite.Open(r.db, sqlite.Config{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	line := "run     sh -c 'test $1 != b || exit 64' sh "
	if got, want := dry(st, c), "skip    'a' (succeeded)\nskip    'b' (dead)\n"+line+"'c d'\nsettle: run test would run 1 item and skip 1 succeeded, 1 dead; nothing was changed\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.RetryDead = true
	if got, want := dry(st, c), "skip    'a' (succeeded)\n"+line+"b\n"+line+"'c d'\nsettle: run test would run 2 items and skip 1 succeeded; nothing was changed\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.RetryDead = false
	if got := dry(nil, c); strings.Count(got, line) != 3 || !strings.Contains(got, "run 3 items and skip none") {
		t.Errorf("without a database: %s", got)
	}
}

func TestTheNumberOfAnItemStaysWhenItIsTriedAgain(t *testing.T) {
	r := newRunner(t)
	c := r.config("sh", "-c", `echo "$1 is $2"; test $1 != b || test -e go`, "sh", "{}", "{#}")
	c.Ordered, c.Attempts = true, 1
	r.run(c, "a\nb\nc\n").want(t, 3, "a is 1\nc is 3\n")
	if err := os.WriteFile(r.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.RetryDead = true
	r.run(c, "x\nc\nb\n").want(t, 0, "x is 1\nb is 2\n")
}

func TestARunIsKeptUntilThirtyDaysAfterItsLastEnd(t *testing.T) {
	r := newRunner(t)
	keep := func() time.Duration {
		st, err := sqlite.Open(r.db)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		n, err := st.Note(context.Background(), "run/test")
		if err != nil {
			t.Fatal(err)
		}
		return n.Keep
	}
	var during time.Duration
	in, w := io.Pipe()
	go func() {
		fmt.Fprintln(w, "a")
		await(t, "the item", func() bool { return r.file("log") != "" })
		during = keep()
		w.Close()
	}()
	if s := r.read(r.sh(`echo $1 > log`), in); s.code != 0 {
		t.Fatal(s.err)
	}
	if during < 9*365*24*time.Hour {
		t.Errorf("while unfinished its rows are kept for %s", during)
	}
	if k := keep(); k < 29*24*time.Hour || k > 30*24*time.Hour {
		t.Errorf("when finished its rows are kept for %s", k)
	}
}
