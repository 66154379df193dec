package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRepairEndsWith1WhenAnythingWasLost: a script must notice.
func TestRepairEndsWith1WhenAnythingWasLost(t *testing.T) {
	db := filepath.Join(t.TempDir(), "settle.db")
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, `{"n":%d,"pad":"%s"}`+"\n", i, strings.Repeat("x", 40))
	}
	must(t, db, lines.String(), "enqueue", "a", "--lines", "-")
	if a := run(t, db, "", "repair"); a.code != exitOK || !strings.Contains(a.out, "is sound") {
		t.Errorf("a sound file: exit %d, %s", a.code, a.out)
	}
	b, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	// An inner page of body alone: all rows are found all the same.
	whole := bytes.Clone(b)
	copy(whole[3*4096:4*4096], make([]byte, 4096))
	for name, c := range map[string]struct {
		b    []byte
		code int
		says string
	}{
		"cut":            {b[:len(b)*9/10], exitFailed, " jobs are lost"},
		"the head alone": {b[:4096], exitFailed, "an unknown number of jobs is lost"},
		"an inner page":  {whole, exitOK, "everything was saved"},
	} {
		if err := os.WriteFile(db, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		a := run(t, db, "", "repair")
		if a.code != c.code || !strings.Contains(a.out, c.says) || a.err != "" {
			t.Errorf("%s: exit %d, %s %s", name, a.code, a.out, a.err)
		}
		if a := run(t, db, "", "audit"); a.code != exitOK || !strings.Contains(a.out, "the books balance") {
			t.Errorf("%s: exit %d of the audit: %s", name, a.code, a.out)
		}
	}
}

// TestRepairLeavesOtherFilesAlone: a name on a command line may be wrong.
func TestRepairLeavesOtherFilesAlone(t *testing.T) {
	text := filepath.Join(t.TempDir(), "passwd")
	const said = "root:x:0:0:root:/root:/bin/bash\n"
	if err := os.WriteFile(text, []byte(said), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"enqueue", "a", "1"}, {"repair"}} {
		a := run(t, text, "", args...)
		if a.code != exitFailed || !strings.Contains(a.err, "is not a settle database") || !strings.Contains(a.err, "another file with --db") {
			t.Errorf("%v: exit %d, %s", args, a.code, a.err)
		}
		if args[0] != "repair" && strings.Contains(a.err, "repair") {
			t.Errorf("%v advises a repair: %s", args, a.err)
		}
	}
	files, err := filepath.Glob(text + "*")
	b, err2 := os.ReadFile(text)
	if err != nil || err2 != nil || len(files) != 1 || string(b) != said {
		t.Errorf("it has been touched: %v %q", files, b)
	}
	a := run(t, text, "", "repair", "--force")
	moved, _ := filepath.Glob(text + ".damaged-*")
	if a.code != exitFailed || len(moved) == 0 || !strings.Contains(a.out, moved[0]) {
		t.Errorf("--force moves it aside and says so: exit %d, %s %s", a.code, a.out, a.err)
	}
}
