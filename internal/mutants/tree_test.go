package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bounds of one run of "go test": for its tests, and for all of it.
const (
	testTime = 60 * time.Second
	runTime  = 5 * time.Minute
)

// tree is a copy of the working tree in which nothing changes.
type tree struct{ root string }

// copyTree copies what git keeps, or would, without nested modules.
func copyTree(t *testing.T) tree {
	t.Helper()
	from, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := tree{t.TempDir()}
	names := files(t, from)
	var nested []string
	for _, name := range names {
		if name != "go.mod" && filepath.Base(name) == "go.mod" {
			nested = append(nested, filepath.Dir(name)+"/")
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, but not yet committed
		}
		to := filepath.Join(c.root, name)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// files lists the files of the tree; without git, all but hidden folders.
func files(t *testing.T, root string) (names []string) {
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	if out, err := git.Output(); err == nil {
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	}
	err := filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, full)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// found is what a mutant came to.
type found struct {
	pkg, test string // which test noticed; "" = none
	how       string // "", or how it failed if not by its own word
	said      string // what was printed
	err       error  // the mutant, or the tree, is at fault
}

// first is the first line of what the test that noticed had to say.
func (f found) first() string {
	for line := range strings.Lines(f.said) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			if r := []rune(line); len(r) > 150 {
				return string(r[:150]) + "…"
			}
			return line
		}
	}
	return "(it said nothing)"
}

// try runs the mutant's tests until one notices.
func (c tree) try(ctx context.Context, m mutant, scratch string) found {
	changed, err := m.apply(c.root)
	if err != nil {
		return found{err: err}
	}
	over, err := c.overlay(changed, scratch)
	if err != nil {
		return found{err: err}
	}
	for _, t := range m.tests {
		f := c.run(ctx, t, "-failfast", "-overlay", over)
		if f.err != nil {
			f.err = fmt.Errorf("%s: %w", m.name, f.err)
		}
		if f.err != nil || f.test != "" {
			return f
		}
	}
	return found{}
}

// overlay writes the changed files, and the list by which the go command finds
// them in place of the copy's.
func (c tree) overlay(changed map[string]string, scratch string) (string, error) {
	list := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range changed {
		file := filepath.Join(scratch, strings.ReplaceAll(name, "/", "!"))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return "", err
		}
		list.Replace[filepath.Join(c.root, filepath.FromSlash(name))] = file
	}
	b, err := json.Marshal(list)
	over := filepath.Join(scratch, "overlay.json")
	return over, errors.Join(err, os.WriteFile(over, b, 0o644))
}

// run runs tests of one package and finds the first that failed.
func (c tree) run(ctx context.Context, t target, flags ...string) found {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout", testTime.String()}, flags...)
	if t.run != "" {
		args = append(args, "-run", t.run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, t.pkg)...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "PWD="+c.root)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := readRun(out.Bytes())
	switch {
	case r.unbuilt:
		return found{err: fmt.Errorf("does not compile:\n%s%s", r.said, errs.String())}
	case ctx.Err() != nil:
		return found{err: fmt.Errorf("%s: %w", t.pkg, context.Cause(ctx))}
	case r.ran == 0:
		return found{err: fmt.Errorf("%s: no test was run by %q:\n%s%s", t.pkg, t.run, r.said, errs.String())}
	case err == nil:
		return found{}
	case r.test == "":
		return found{err: fmt.Errorf("%s: failed outside of any test:\n%s%s", t.pkg, r.said, errs.String())}
	}
	return found{pkg: t.pkg, test: r.test, how: r.how, said: r.said}
}

// outcome is what the events of a run say.
type outcome struct {
	unbuilt   bool
	ran       int
	test, how string
	said      string // all output, or that of the test that failed
}

// readRun reads the events of "go test -json". A test that takes the process
// along, or never ends, is the one that was started last.
func readRun(events []byte) (r outcome) {
	var all strings.Builder
	said := map[string]string{}
	var open []string // tests that were started and have not ended
	for line := range bytes.Lines(events) {
		var ev struct{ Action, Test, Output string }
		if json.Unmarshal(line, &ev) != nil {
			all.Write(line)
			continue
		}
		all.WriteString(ev.Output)
		said[ev.Test] += ev.Output
		switch {
		case ev.Action == "build-fail":
			r.unbuilt = true
		case ev.Test == "":
		case ev.Action == "run" || ev.Action == "cont":
			r.ran++
			open = append(without(open, ev.Test), ev.Test)
		case ev.Action == "pass" || ev.Action == "skip":
			open = without(open, ev.Test)
		case ev.Action == "fail":
			open = without(open, ev.Test)
			if r.test == "" {
				r.test = ev.Test
			}
		}
	}
	r.said = all.String()
	hung := strings.Contains(r.said, "panic: test timed out")
	if r.test == "" && len(open) > 0 && (hung || strings.Contains(r.said, "\nFAIL\t")) {
		r.test = open[len(open)-1]
	}
	switch {
	case hung:
		r.how = "hangs"
	case panicRE.MatchString(r.said):
		r.how = "panics"
	}
	if r.test != "" && r.how == "" {
		r.said = said[r.test]
	}
	return r
}

var panicRE = regexp.MustCompile(`(?m)^(panic|fatal error): `)

func without(list []string, one string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == one })
}
