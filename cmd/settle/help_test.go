package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asMain makes the test binary the program itself, for tests that need a
// process: signals, kill -9, another user.
const asMain = "SETTLE_TEST_MAIN"

func init() {
	if os.Getenv(asMain) == "1" {
		main()
	}
}

// answer is what one command line came to.
type answer struct {
	code     int
	out, err string
}

// run carries one command line out in this process, on the database db.
func run(t *testing.T, db, stdin string, args ...string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	env := func(name string) string {
		if name == "SETTLE_DB" {
			return db
		}
		return ""
	}
	code := execute(t.Context(), newApp(strings.NewReader(stdin), &out, &errs, env), args)
	return answer{code, out.String(), errs.String()}
}

// must is run for command lines that have to succeed; it returns what they wrote.
func must(t *testing.T, db, stdin string, args ...string) string {
	t.Helper()
	a := run(t, db, stdin, args...)
	if a.code != exitOK {
		t.Fatalf("settle %s: exit %d: %s", strings.Join(args, " "), a.code, a.err)
	}
	return a.out
}

// newDB names a database that does not exist yet.
func newDB(t *testing.T) string { return filepath.Join(t.TempDir(), "settle.db") }

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./cmd/settle -update writes it anew):\n%s", file, firstDifference(string(want), got))
	}
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := line(w, i), line(g, i)
		if a != b {
			return "want: " + a + "\n got: " + b
		}
	}
	return ""
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

var volatile = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(_seconds":)[0-9.e-]*[0-9]`), "${1}N"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?(h|m|s|ms|µs|d)\b`), "SPAN"},
	{regexp.MustCompile(`(worker"?[ :="]+)\d{6,}`), "${1}N"},
	{regexp.MustCompile(`go1\.[0-9.a-z]+(, )?`), "GO$1"},
}

// steady replaces what differs from run to run.
func steady(s, dir string) string {
	s = strings.ReplaceAll(s, dir, "DIR")
	for _, v := range volatile {
		s = v.re.ReplaceAllString(s, v.by)
	}
	return columns.ReplaceAllString(s, "  ") // widths depend on the spans
}

var columns = regexp.MustCompile(` {2,}`)
