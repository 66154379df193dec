//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// TestUsageErrorsSayWhatIsWanted and nothing of the libraries below.
func TestUsageErrorsSayWhatIsWanted(t *testing.T) {
	db := newDB(t)
	must(t, db, "", "enqueue", "a", "1")
	for line, want := range map[string]string{
		"run -j x -- true":                  `--jobs "x": want a whole number`,
		"run --ok 1,x -- true":              `--ok "1,x": want whole numbers, such as 1,3`,
		"run --attempts 9x -- true":         `--attempts "9x": want a whole number`,
		"run --timeout 31d -- true":         "--timeout 31d: want 1ms to 30d",
		"run --terminal 0 -- true":          "--terminal 0: 0 is success",
		"run --ok 0 --terminal 0 -- true":   "exit code 0 stands in --ok and in --terminal",
		"jobs --limit 99999999999999999999": "is beyond what a number can hold",
		"jobs --all=x":                      `--all "x": want true or false`,
		"work --exec a=cat --lease 3h":      "--lease 3h: want 1s to 1h",
		"work --exec a=cat --grace 48h":     "--grace 2d: want 0s to 1d",
		"work --exec a=cat --poll 90m":      "--poll 1h30m: want 1ms to 1h",
		"enqueue a 1 --key=":                "leave --key out",
		"jobs --key=":                       "leave --key out",
		"statsu":                            "did you mean status?",
		"foo":                               "; there are: age, audit, cancel",
		"sleep 10":                          "settle run -- sleep 10",
	} {
		a := run(t, db, "", strings.Fields(line)...)
		if a.code != exitUsage || !strings.Contains(a.err, want) || strings.Contains(a.err, "strconv") || strings.Contains(a.err, "h0m0s") {
			t.Errorf("%s: exit %d, %s", line, a.code, a.err)
		}
	}
	if v := must(t, db, "", "--version"); v != must(t, db, "", "version") {
		t.Error(v)
	}
	for _, args := range [][]string{{"jobs"}, {"status"}, {"work", "--help"}, {"cancel", "--queue", "x"}} {
		if a := run(t, newDB(t), "", args...); args[0] != "work" && !strings.Contains(a.err, "to recover: name the right file with --db or SETTLE_DB") {
			t.Errorf("%v without a database: %s", args, a.err)
		}
	}
}

// TestAJobThatHasEndedIsNamedInPlainWords.
func TestAJobThatHasEndedIsNamedInPlainWords(t *testing.T) {
	db := newDB(t)
	ok := strings.TrimSpace(must(t, db, "", "enqueue", "ok", "1"))
	bad := strings.TrimSpace(must(t, db, "", "enqueue", "bad", "1", "--attempts", "1"))
	must(t, db, "", "work", "-q", "--drain", "--exec", "ok=true", "--exec", "bad=false")
	for line, want := range map[string]string{
		"cancel " + ok:       "settle: job " + ok + " has succeeded\n",
		"dead redrive " + ok: "settle: job " + ok + " has succeeded\n",
		"cancel " + bad:      "settle: job " + bad + " is dead\n",
		"dead show " + ok:    "settle: job " + ok + " has succeeded, it is not dead\n",
	} {
		if a := run(t, db, "", strings.Fields(line)...); a.code != exitFailed || a.err != want {
			t.Errorf("%s: exit %d, %q", line, a.code, a.err)
		}
	}
	// What only a read by id brings is left out of a list, not shown as null.
	for cmd, with := range map[string]bool{"jobs --state dead --json": false, "dead list --json": true, "job " + bad + " --json": true} {
		var j map[string]any
		if err := json.Unmarshal([]byte(must(t, db, "", strings.Fields(cmd)...)), &j); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"last_error", "attempts"} {
			if _, has := j[field]; has != with {
				t.Errorf("%s: %s is there: %v", cmd, field, has)
			}
		}
	}
	if out := must(t, db, "", "dead", "redrive", bad); !strings.Contains(out, "redriven: 1 attempt, ends") {
		t.Error(out)
	}
}

// TestItemsOfARunAreShown where its dead and cancelled ones are listed.
func TestItemsOfARunAreShown(t *testing.T) {
	r := newRunIn(t)
	if code, _, said := r.run("a b\n\x1b[2J\nc\n", "--name", "x", "--", "sh", "-c", `test "$1" = c || exit 65`, "sh", "{}"); code != exitUnhealthy || !strings.Contains(said, "settle dead list --queue run/x") {
		t.Fatalf("exit %d: %s", code, said)
	}
	db := filepath.Join(r.dir, "settle.db")
	for line, want := range map[string][]string{
		"dead list --queue run/x":              {"ITEM", "'a b'", `$'\x1b[2J'`, "exit code 65"},
		"jobs --queue run/x --state succeeded": {"ITEM", "'c'"},
	} {
		out := must(t, db, "", strings.Fields(line)...)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no %s in %s", line, w, out)
			}
		}
	}
}

// TestTheDatabaseSurvivesARunOverItsOwnFolder.
func TestTheDatabaseSurvivesARunOverItsOwnFolder(t *testing.T) {
	r := newRunIn(t)
	db := filepath.Join(r.dir, "settle.db")
	id := strings.TrimSpace(must(t, db, "", "enqueue", "mail.send", "{}"))
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, _, said := r.run("./a\n./settle.db\n./settle.db-wal\n./settle.db-shm\n./b\n", "--", "gzip")
	if code != 0 || !strings.Contains(said, "2 items succeeded") || !strings.Contains(said, "skipped                        3  settle's own files") {
		t.Errorf("exit %d: %s", code, said)
	}
	if must(t, db, "", "why", id); r.file("a.gz") == "" || r.file("settle.db.gz") != "" {
		t.Error("the wrong files were packed")
	}
	code, _, said = r.run("x\n", "--", "sh", "-c", "rm settle.db")
	if code != exitFailed || !strings.Contains(said, "was removed or renamed") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestAStoreThatFailsIsSaidOnceForAllJobs that flags choose.
func TestAStoreThatFailsIsSaidOnceForAllJobs(t *testing.T) {
	db := newDB(t)
	for range 40 {
		must(t, db, "", "enqueue", "a", "1")
	}
	st, err := sqlite.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for name, c := range map[string]struct {
		err   error
		lines int
		says  string
		code  int
	}{
		"full":  {settle.ErrFull, 1, "settle: cancel: 2 jobs, 3 failed, then stopped (the same command goes on): the store is full", exitFailed},
		"stale": {&settle.StaleError{State: settle.Dead}, maxSaidAlone + 1, "settle: cancel: 2 jobs, 38 left alone", exitOK},
	} {
		var errs strings.Builder
		a := newApp(nil, io.Discard, &errs, nil)
		n := 0
		err := a.each(context.Background(), st, picked{filter: settle.Filter{Kind: "a"}, yes: true, verb: "cancel"}, func(settle.ID) (string, error) {
			if n++; n > 2 {
				return "", c.err
			}
			return "cancelled", nil
		})
		if got := exitCode(a, err); got != c.code || strings.Count(errs.String(), "\n") != c.lines || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit %d, %s", name, got, &errs)
		}
	}
}

// TestSignalsThatComeTogetherAreOneWish: GNU timeout signals its command, then
// the group of it.
func TestSignalsThatComeTogetherAreOneWish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, stop, over := make(chan os.Signal), make(chan os.Signal, 9), make(chan struct{})
		go wishes(all, stop, over)
		for _, pause := range []time.Duration{0, sameWish / 2, sameWish, sameWish / 10, sameWish} {
			time.Sleep(pause)
			all <- syscall.SIGTERM
			synctest.Wait()
		}
		close(over)
		if len(stop) != 3 {
			t.Errorf("five signals are %d wishes, want 3", len(stop))
		}
	})
}

// TestAReaderWhoMayNotWriteLearnsWhatHeNeeds: SQLite's log is written by
// readers, too.
func TestAReaderWhoMayNotWriteLearnsWhatHeNeeds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	dir := t.TempDir()
	openUp(t, dir)
	db := filepath.Join(dir, "settle.db")
	id := strings.TrimSpace(must(t, db, "", "enqueue", "a", "1"))
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(db, 0o644)); err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(db) // so that -wal and -shm exist
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, args := range [][]string{{"status"}, {"jobs"}, {"job", id}, {"why", id}, {"age"}, {"audit"}, {"dead", "list"}} {
		a := asNobody(t, append(args, "--db", db)...)
		if a.code != exitFailed || !strings.Contains(a.err, "readers write to the -shm file") || !strings.Contains(a.err, "run this as the owner") || strings.Contains(a.err, "u+w") {
			t.Errorf("%v: exit %d, %s", args, a.code, a.err)
		}
	}
}
