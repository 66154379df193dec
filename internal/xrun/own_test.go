package xrun

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// "find . -type f | settle run -- gzip" finds the database too.
func TestSettlesOwnFilesAreNoItems(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`rm "$1"`)
	sub := filepath.Join(r.dir, "sub")
	st, err := sqlite.Open(r.db)
	if err := errors.Join(err, os.Mkdir(sub, 0o755), os.Symlink(r.db, r.dir+"/link"), os.Link(r.db, r.dir+"/hard"), os.Symlink(r.dir, sub+"/up"),
		os.WriteFile(r.dir+"/settle.db-run-0123.lock", nil, 0o600), os.WriteFile(r.dir+"/settle.db.bak", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	// An earlier start stored one, too: it is taken out of the run, not run.
	if _, err := st.Insert(context.Background(), settle.New{Kind: kind, Input: []byte("./sub/../settle.db"), EnqueueOpts: settle.EnqueueOpts{Queue: "run/test"}}); err != nil {
		t.Fatal(err)
	}
	own := []string{"settle.db", "./settle.db-wal", r.db + "-shm", "settle.db-journal", "./sub/up/settle.db", "sub/up/settle.db-journal", "link", "hard", "settle.db-run-0123.lock",
		"sub/../" + filepath.Base((&Plan{Config: c}).lockPath())}
	s := r.on(st, c, strings.NewReader("settle.db.bak\n"+strings.Join(own, "\n")+"\n"))
	s.want(t, 0, "")
	s.says(t, "'settle.db' is one of settle's own files: it is not run", "'./sub/../settle.db' is one", "1 item succeeded", "skipped                       11  settle's own files")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"settle.db", "link", "hard", "settle.db-run-0123.lock"} {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err != nil {
			t.Error(err)
		}
	}
	if jobs := r.jobs(); len(jobs) != 1 || string(jobs[0].Input) != "settle.db.bak" {
		t.Errorf("the run holds %d items", len(jobs))
	}
	c.JSON = true
	r.run(c, "settle.db\n").says(t, `"skipped_own_files":1`)
}

func TestADryRunSkipsSettlesOwnFiles(t *testing.T) {
	r := newRunner(t)
	var out, errs strings.Builder
	c := r.config("rm")
	c.In, c.Out, c.Err = strings.NewReader("a\nsettle.db\n./settle.db-wal\n"), &out, &errs
	p, err := Prepare(c)
	if err == nil {
		err = p.DryRun(context.Background(), nil)
	}
	if err != nil || out.String() != "run     rm a\nskip    'settle.db' (settle's own file)\nskip    './settle.db-wal' (settle's own file)\n" || !strings.Contains(errs.String(), "run 1 item and skip 2 of settle's own files") {
		t.Errorf("%v: %s%s", err, &out, &errs)
	}
}

// A command can still reach the database, by another way than its item.
func TestADatabaseThatIsReplacedOrRemovedIsNoticed(t *testing.T) {
	for script, want := range map[string]string{
		`rm settle.db`:                                 "was removed or renamed",
		`cp settle.db x; mv x settle.db`:               "was replaced by another file",
		`rm settle.db; sleep 30 & echo $! > pid; wait`: "was removed or renamed",
	} {
		r := newRunner(t)
		began := time.Now()
		s := r.run(r.sh(script), "a\n")
		if s.code != ExitFailed || s.fault == nil || !strings.Contains(s.fault.Error(), want) {
			t.Errorf("%s: code %d, %v; it said %s", script, s.code, s.fault, s.err)
		}
		if time.Since(began) > 15*time.Second {
			t.Errorf("%s: noticed after %s", script, time.Since(began))
		}
	}
}

func TestWhatAnItemLeavesRunningIsKilledWithIt(t *testing.T) {
	r := newRunner(t)
	began := time.Now()
	r.run(r.sh(`sleep 1000 & echo $! > pid; echo x`), "a\n").want(t, 0, "x\n")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the item took %s", took)
	}
	pid := strings.TrimSpace(r.file("pid"))
	await(t, "the end of the child", func() bool {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

// A full TMPDIR stops the run and costs no item an attempt; what a command
// wrote is never recorded as whole when it is not.
func TestOutputThatCannotBeKeptStopsTheRunAndChargesNothing(t *testing.T) {
	for _, stream := range []string{"", ">&2"} {
		r := newRunner(t)
		c := r.sh(`head -c 100000 /dev/zero ` + stream + `; exit 0`)
		c.spools = func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) }
		s := r.run(c, lines(5))
		s.want(t, 1, "")
		s.says(t, "no space left on device", "TMPDIR", "5 still to run", "the same command continues")
		for _, j := range r.jobs() {
			if j.State != settle.Pending || j.Charged() != 0 {
				t.Errorf("item %s is %s, %d charged", j.Input, j.State, j.Charged())
			}
		}
		c.spools = nil
		if s := r.run(c, lines(5)); s.code != 0 {
			t.Errorf("it does not go on: %s", s.err)
		}
	}
}

func TestTooFewFilesForOutputAreWaitedFor(t *testing.T) {
	r := newRunner(t)
	c := r.sh(`head -c 100000 /dev/zero`)
	n := 0
	c.Jobs = 1
	c.spools = func() (*os.File, error) {
		if n++; n == 2 { // the first is that of the start
			return nil, &os.PathError{Op: "open", Path: "/tmp", Err: syscall.EMFILE}
		}
		return os.CreateTemp(r.dir, "spool")
	}
	if s := r.run(c, "a\n"); s.code != 0 || len(s.out) != 100_000 || n != 3 {
		t.Errorf("code %d, %d bytes, %d files: %s", s.code, len(s.out), n, s.err)
	}
	if j := r.jobs()[0]; j.Charged() != 1 || j.Deferred != 1 {
		t.Errorf("%d charged, %d put off", j.Charged(), j.Deferred)
	}
}

func TestAStoreThatFailsIsSaidOnceInTenSeconds(t *testing.T) {
	var o outage
	at := time.Unix(1000, 0)
	said := 0
	for i := range 25 * 10 {
		if _, say := o.say(at.Add(time.Duration(i) * 100 * time.Millisecond)); say {
			said++
		}
	}
	if more, say := o.say(at.Add(time.Minute)); said != 3 || !say || more != " (and 49 times before that)" {
		t.Errorf("said %d times, then %v %q", said, say, more)
	}
}

func TestACancelledItemHasAHintOfItsOwn(t *testing.T) {
	g := &badGroup{State: settle.Cancelled, Reason: settle.EndCancelled, N: 1, First: []badItem{{Item: "'y'"}}}
	s := summary{Complete: true, Items: 1, Queue: "run/q", DB: "x.db", Bad: []*badGroup{g}}
	text := s.String()
	if strings.Contains(text, "--retry-dead") || !strings.Contains(text, "settle jobs --queue run/q --db x.db --state cancelled") || !strings.Contains(text, "settle dead redrive ID --db x.db") {
		t.Error(text)
	}
}

func TestDurationsAreWrittenAsFlagsReadThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		30 * 24 * time.Hour: "30d", time.Hour: "1h", 90 * time.Minute: "1h30m", 36 * time.Hour: "36h", 400 * time.Millisecond: "400ms", 0: "0s", -time.Second: "-1s", time.Hour + time.Second: "1h0m1s",
	} {
		if got := flagSpan(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}
