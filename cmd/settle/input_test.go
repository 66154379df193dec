package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

// TestBadBytesAreRefusedEverywhere: what no store, terminal or label can carry
// is a usage error with words, and shows nothing of itself raw.
func TestBadBytesAreRefusedEverywhere(t *testing.T) {
	db := newDB(t)
	must(t, db, "", "enqueue", "a", "1")
	long, longKey := strings.Repeat("x", settle.MaxName+1), strings.Repeat("x", settle.MaxKey+1)
	for _, bad := range []string{"\xff", "a\x00b", "a\nb", "a\x1b[2J", "a\u202eb", "a\u200bb", " a", "a ", long} {
		lines := [][]string{
			{"enqueue", bad, "1"}, {"enqueue", "a", "1", "--queue", bad}, {"enqueue", "a", "1", "--tenant", bad},
			{"jobs", "--queue", bad}, {"jobs", "--kind", bad}, {"jobs", "--tenant", bad}, {"age", "--queue", bad}, {"dead", "list", "--kind", bad},
			{"pause", bad}, {"resume", bad}, {"hold", "--tenant", bad}, {"hold", "--queue", bad, "--tenant", "x"}, {"release", "--tenant", bad},
			{"cancel", "--queue", bad, "--yes"}, {"dead", "redrive", "--kind", bad}, {"work", "--exec", bad + "=cat"}, {"work", "--exec", "a=cat", "--queue", bad},
			{"job", bad}, {"why", bad}, {"cancel", bad}, {"dead", "drop", bad},
		}
		if bad != long {
			lines = append(lines, []string{"enqueue", "a", "1", "--key", bad}, []string{"jobs", "--key", bad})
		} else {
			lines = append(lines, []string{"enqueue", "a", "1", "--key", longKey})
		}
		for _, args := range lines {
			a := run(t, db, "", args...)
			if a.code != exitUsage || a.err == "" || a.out != "" {
				t.Errorf("%q: exit %d, %q %q", args, a.code, a.out, a.err)
			}
			if strings.ContainsFunc(strings.ReplaceAll(a.err, "\n", ""), invisible) || len(a.err) > 1000 {
				t.Errorf("%q: shown raw: %q", args, a.err)
			}
		}
	}
}

// TestAnInputBeyondTheLimitIsRefused wherever it comes from, without being read
// to its end, and one at the limit is accepted byte for byte.
func TestAnInputBeyondTheLimitIsRefused(t *testing.T) {
	db, file := newDB(t), filepath.Join(t.TempDir(), "input")
	fits := `"` + strings.Repeat("x", settle.MaxPayload-2) + `"`
	over := fits + " "
	if err := os.WriteFile(file, []byte(over), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]answer{
		"word":  run(t, db, "", "enqueue", "a", over),
		"stdin": run(t, db, over, "enqueue", "a", "-"),
		"file":  run(t, db, "", "enqueue", "a", "--file", file),
		"lines": run(t, db, over+"\n", "enqueue", "a", "--lines"),
		"raw":   run(t, db, over, "enqueue", "a", "-", "--raw"),
		"huge":  run(t, db, strings.Repeat("x", 5*settle.MaxPayload), "enqueue", "a", "--lines", "--raw"),
	} {
		if a.code != exitUsage || !strings.Contains(a.err, "1048576") {
			t.Errorf("%s: exit %d, %.300q", name, a.code, a.err)
		}
	}
	for name, id := range map[string]string{
		"word":  must(t, db, "", "enqueue", "a", fits),
		"stdin": must(t, db, fits, "enqueue", "a", "-"),
		"lines": must(t, db, fits+"\n", "enqueue", "a", "--lines", "--file", "-"),
	} {
		if got := must(t, db, "", "job", strings.TrimSpace(id), "--input"); got != fits {
			t.Errorf("%s: %d bytes came back of %d", name, len(got), len(fits))
		}
	}
}

// TestLinesAreStoredInOrderUpToTheFault: the message says where to go on, and
// going on there loses and doubles nothing.
func TestLinesAreStoredInOrderUpToTheFault(t *testing.T) {
	db := newDB(t)
	var all, bad strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&all, "{\"n\":%d}\n", i)
		if i == 1100 {
			bad.WriteString("oops\n")
		} else {
			fmt.Fprintf(&bad, "{\"n\":%d}\n", i)
		}
	}
	a := run(t, db, bad.String(), "enqueue", "a", "--lines")
	if a.code != exitUsage || !strings.Contains(a.err, "line 1101") || !strings.Contains(a.err, "tail -n +1001") {
		t.Fatalf("exit %d: %s", a.code, a.err)
	}
	rest := strings.SplitAfter(all.String(), "\n")[1000:]
	must(t, db, strings.Join(rest, ""), "enqueue", "a", "--lines")
	n := 0
	for l := range strings.Lines(must(t, db, "", "jobs", "--all", "--json")) {
		var j struct{ Input struct{ N int } }
		if err := json.Unmarshal([]byte(l), &j); err != nil || j.Input.N != n {
			t.Fatalf("place %d holds %s (%v)", n, l, err)
		}
		n++
	}
	if n != 1200 {
		t.Errorf("%d jobs of 1200", n)
	}
}

// TestAnExportBringsInputsBack byte for byte.
func TestAnExportBringsInputsBack(t *testing.T) {
	db := newDB(t)
	inputs := []string{`{"a":1}`, "{ \"a\" : 1 }\n", "\x00\xff", "plain text", ""}
	for _, in := range inputs {
		must(t, db, in, "enqueue", "a", "-", "--raw")
	}
	must(t, db, "", "work", "--drain", "-q", "--exec", `a=sh -c "echo boom >&2; exit 65"`)
	var back []string
	for l := range strings.Lines(must(t, db, "", "dead", "export")) {
		var j struct {
			Input       json.RawMessage `json:"input"`
			InputBase64 string          `json:"input_base64"`
			Attempts    []struct{ Error string }
		}
		if err := json.Unmarshal([]byte(l), &j); err != nil {
			t.Fatal(err)
		}
		if len(j.Attempts) != 1 || j.Attempts[0].Error != "exit code 65: boom" {
			t.Errorf("attempts: %+v", j.Attempts)
		}
		in := string(j.Input)
		if j.InputBase64 != "" {
			b, err := base64.StdEncoding.DecodeString(j.InputBase64)
			if err != nil {
				t.Fatal(err)
			}
			in = string(b)
		}
		back = append(back, in)
	}
	if fmt.Sprintf("%q", back) != fmt.Sprintf("%q", inputs) {
		t.Errorf("%q, want %q", back, inputs)
	}
}

// TestEveryCommandHasHelpWithAnExample, and no flag is without words.
func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	a := newApp(nil, &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" })
	var names []string
	for _, c := range newRoot(a).Commands() {
		names = append(names, c.Name())
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		for _, c := range append(c.Commands(), c) {
			if c.Example == "" || c.Short == "" || c.RunE == nil {
				t.Errorf("%s: example %q, short %q", c.CommandPath(), c.Example, c.Short)
			}
			if r := run(t, newDB(t), "", append(strings.Fields(c.CommandPath())[1:], "--help")...); r.code != 0 || !strings.Contains(r.out, "Usage:") {
				t.Errorf("%s --help: exit %d", c.CommandPath(), r.code)
			}
		}
	}
	for _, want := range strings.Fields("run enqueue work jobs job why cancel pause resume hold release dead age status migrate repair version") {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+want+" ") {
			t.Errorf("no command %s", want)
		}
	}
}

// TestEveryReadHasJSON that can be read back, one object a line.
func TestEveryReadHasJSON(t *testing.T) {
	db := newDB(t)
	id := strings.TrimSpace(must(t, db, "", "enqueue", "a", "1"))
	dead := strings.TrimSpace(must(t, db, "", "enqueue", "b", "1"))
	must(t, db, "", "work", "--drain", "-q", "--exec", `b=sh -c "exit 65"`)
	for _, args := range [][]string{{"jobs"}, {"job", id}, {"why", id}, {"dead", "list"}, {"dead", "show", dead}, {"dead", "export"}, {"age"}, {"status"}, {"version"}} {
		out := must(t, db, "", append(args, "--json")...)
		for l := range strings.Lines(out) {
			if !json.Valid([]byte(l)) {
				t.Errorf("%v: %q", args, l)
			}
		}
		if out == "" {
			t.Errorf("%v: nothing", args)
		}
	}
}

// TestCompletionKnowsQueuesAndStates, and makes no database.
func TestCompletionKnowsQueuesAndStates(t *testing.T) {
	db := newDB(t)
	if a := run(t, db, "", "__complete", "pause", ""); strings.TrimSpace(a.out) != ":4" {
		t.Errorf("without a database: %q", a.out)
	}
	if _, err := os.Stat(db); err == nil {
		t.Fatal("completion has made a database")
	}
	must(t, db, "", "enqueue", "a", "1", "--queue", "mail")
	for _, args := range [][]string{{"pause", ""}, {"jobs", "--queue", ""}} {
		if a := run(t, db, "", append([]string{"__complete"}, args...)...); !strings.HasPrefix(a.out, "mail\n") {
			t.Errorf("%v: %q", args, a.out)
		}
	}
	if a := run(t, db, "", "__complete", "jobs", "--state", ""); !strings.Contains(a.out, "dead\n") {
		t.Errorf("states: %q", a.out)
	}
}
