package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/settle-go/settle/internal/child"
)

// TestStories runs every testdata/*.story: command lines and what they print.
// A line "$ settle …" is a command line, split as --exec does it, perhaps with
// <<< and a Go string as standard input; other lines are what it wrote to
// standard output ("~": an empty line), "err: " what it wrote to standard error, "exit: " its code
// if that is not 0. "# " begins a comment. -update writes the answers anew.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatal("no story", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) { tellStory(t, file) })
	}
}

func tellStory(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	var told strings.Builder
	for l := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(l, "#") || strings.TrimSpace(l) == "":
			told.WriteString(l)
		case strings.HasPrefix(l, "$ settle "):
			told.WriteString(l)
			said := tell(t, strings.TrimPrefix(l, "$ settle "))
			if filepath.Base(file) != "usage.story" { // in which nothing depends on time
				said = steady(said, dir)
			}
			told.WriteString(said)
		}
	}
	t.Chdir(home)
	golden(t, filepath.Base(file), told.String())
}

var home, _ = os.Getwd()

// tell carries out one line of a story.
func tell(t *testing.T, line string) string {
	t.Helper()
	line, input, found := strings.Cut(strings.TrimSpace(line), " <<< ")
	if found {
		var err error
		if input, err = strconv.Unquote(input); err != nil {
			t.Fatalf("%s: input: %v", line, err)
		}
	}
	args, err := child.Words(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	a := run(t, "", input, args...)
	var b strings.Builder
	for l := range strings.Lines(a.out) {
		switch {
		case l == "\n":
			l = "~\n" // an empty line of a story is the story's own
		case !strings.HasSuffix(l, "\n"):
			l += "(no newline)\n"
		}
		b.WriteString(l)
	}
	for l := range strings.Lines(a.err) {
		b.WriteString("err: " + l)
	}
	if a.code != 0 {
		fmt.Fprintf(&b, "exit: %d\n", a.code)
	}
	return b.String()
}
