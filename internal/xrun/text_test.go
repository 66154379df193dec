package xrun

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestItemsAreShownShortAndSafe(t *testing.T) {
	for in, want := range map[string]string{
		"a b": "'a b'", "4": "'4'", "it's": `'it'\''s'`, "\x1b[1m": `$'\x1b[1m'`, "\xff": `$'\xff'`,
		strings.Repeat("é", 80):       "'" + strings.Repeat("é", 50) + "…'",
		"x" + strings.Repeat("é", 80): "'x" + strings.Repeat("é", 49) + "…'",
	} {
		if got := itemText([]byte(in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestClosingTables(t *testing.T) {
	bad := []*badGroup{
		{State: settle.Dead, Reason: settle.EndExhausted, N: 1204, First: []badItem{
			{Number: 17, Item: "'a b.txt'", Error: "exit code 1: gzip: a b.txt: No such file or directory"},
			{Number: 18, Item: "'c'", Error: "exit code 2"}, {Item: "'d'", Error: strings.Repeat("long ", 100) + "end"}}},
		{State: settle.Dead, Reason: settle.EndTerminal, N: 1, First: []badItem{{Number: 3, Item: "'x'", Error: "exit code 65"}}},
		{State: settle.Cancelled, Reason: settle.EndCancelled, N: 1, First: []badItem{{Number: 4, Item: "'y'", Error: "not wanted"}}},
	}
	var b strings.Builder
	for _, s := range []summary{
		{Complete: true},
		{Complete: true, Items: 1, Succeeded: 1, Took: 0.24},
		{Complete: true, Items: 5000, Succeeded: 5000, Before: 1200, Took: 75},
		{Complete: true, Items: 5000, Succeeded: 3794, Took: 7500, Bad: bad, Queue: "run/gzip-1a2b3c4d", DB: "settle.db", Refused: 1,
			Left: map[settle.State]int64{settle.Succeeded: 3, settle.Dead: 1}, LeftBad: bad[1:2], Earlier: 2},
		{Items: 200, Succeeded: 20, Open: 180, Took: 3, Why: "interrupted", Again: "… | settle run -- gzip {}", DB: "/var/lib/my jobs.db", Queue: "run/q"},
		{Items: 200, Succeeded: 20, Open: 179, Took: 3, Why: "more items died than --max-dead 0 allows", Bad: bad[1:2], Again: "settle run --items=x -- gzip {}", DB: "/var/lib/my jobs.db", Queue: "run/q"},
	} {
		b.WriteString(s.String() + "\n")
	}
	golden(t, "tables.txt", b.String())
}

func TestProgressLines(t *testing.T) {
	n := func(open, before, now, dead int64) counts {
		return counts{Open: open, Before: map[settle.State]int64{settle.Succeeded: before}, Now: map[settle.State]int64{settle.Succeeded: now, settle.Dead: dead}}
	}
	var b strings.Builder
	for _, p := range []progress{
		{counts: n(0, 0, 0, 0), reading: true},
		{counts: n(500, 0, 0, 0), reading: true},
		{counts: n(3800, 1000, 199, 1), rate: 123.4, age: 75 * time.Second},
		{counts: n(3800, 1000, 199, 1), rate: 123.4, age: 75 * time.Second, reading: true},
		{counts: n(2, 0, 1, 0), rate: 0.01, age: 50 * time.Hour},
		{counts: n(2, 0, 1, 0), rate: 2.5, age: 3 * time.Hour, state: "stopping"},
		{counts: n(0, 0, 10, 2), rate: 5},
	} {
		b.WriteString(p.String() + "\n")
	}
	golden(t, "progress.txt", b.String())
}

func TestTheRateLooksBackOnTheLastSecondsOnly(t *testing.T) {
	var m meter
	if m.rate() != 0 {
		t.Error("a rate without a reading")
	}
	for i := range 200 { // 10 a reading at first, then 1
		done := int64(10 * i)
		if i > 100 {
			done = 1000 + int64(i-100)
		}
		m.add(time.Duration(i)*200*time.Millisecond, done)
	}
	if got := m.rate(); got < 4.99 || got > 5.01 {
		t.Errorf("rate %f, want 5/s", got)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheLineOfProgressStaysOutOfEverythingElse(t *testing.T) {
	var b bytes.Buffer
	c := &console{err: &b, live: true}
	c.progress("1 done")
	c.progress("1 done")
	c.say("note")
	c.with(func() { b.WriteString("out\n") })
	c.done()
	c.say("end")
	if got, want := b.String(), clear+"1 done"+clear+"settle: note\n1 done"+clear+"out\n1 done"+clear+"settle: end\n"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestRunNamesTellFolderAndCommandApart(t *testing.T) {
	base := runName("/a", []string{"/usr/bin/md5sum", "{}"})
	if !strings.HasPrefix(base, "md5sum-") || base != runName("/a", []string{"/usr/bin/md5sum", "{}"}) {
		t.Errorf("got %q", base)
	}
	seen := map[string]bool{base: true}
	for _, c := range [][]string{{"/b", "/usr/bin/md5sum", "{}"}, {"/a", "md5sum", "{}"}, {"/a", "/usr/bin/md5sum", "-b", "{}"}, {"/a", "/usr/bin/md5sum{}"}} {
		n := runName(c[0], c[1:])
		if seen[n] {
			t.Errorf("%q has the name of another run", c)
		}
		seen[n] = true
	}
	if n := runName("/", []string{"\xff\x1b/ü"}); checkName(n) != nil {
		t.Errorf("%q is no name", n)
	}
}

func TestAClosedPipeIsToldFromAFullDisk(t *testing.T) {
	if e := (&outputError{syscall.EPIPE}); !e.closed() || !errors.Is(e, syscall.EPIPE) {
		t.Error("EPIPE")
	}
	if e := (&outputError{syscall.ENOSPC}); e.closed() || !strings.Contains(e.Error(), "no space left") {
		t.Errorf("ENOSPC: %v", e)
	}
}
