package xrun

import (
	"context"
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
		"dead: terminal", "'poison': exit code 65: cannot read file: token=[redacted]",
		"dead: exhausted", "half a result", "settle dead list --queue run/test", "--retry-dead")
	for _, j := range r.jobs() {
		item, want := string(j.Input), map[string]struct {
			state    settle.State
			attempts int
			reason   settle.AttemptReason
			text     string
		}{
			"ok": {settle.Succeeded, 1, "", ""}, "flaky": {settle.Succeeded, 3, "", ""},
			"poison": {settle.Dead, 1, settle.AttemptError, "exit code 65: cannot read file: token=[redacted]"},
			"worn":   {settle.Dead, 3, settle.AttemptError, "exit code 4: worn out"},
			"silent": {settle.Dead, 3, settle.AttemptError, "exit code 9"},
			"killed": {settle.Dead, 3, settle.AttemptError, "killed by signal 11 (segmentation fault)"},
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
	s.says(t, "dead: exhausted", "#1 'a': timed out after 400ms: why")
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
	s.says(t, "dead: terminal", "#4 '7': exit code 7")
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
