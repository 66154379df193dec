package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is one way to break one promise.
type mutant struct {
	name    string // of its file, without the ending
	promise string
	breaks  string
	tests   []target
	edits   []edit
}

// target is what is run to notice a mutant.
type target struct {
	pkg string // "./sqlite"
	run string // a -run pattern; "" = all tests of the package
}

// edit replaces lines of one file.
type edit struct {
	file     string // from the root, with slashes
	old, new string // whole lines
}

const ending = ".mutant"

var (
	promiseRE = regexp.MustCompile(`^P([1-9]|1[0-5])$`)
	groupRE   = regexp.MustCompile(`\([^()]*\)`)
)

// load reads all mutants, in the order of their names.
func load() ([]mutant, error) {
	names, err := filepath.Glob("testdata/*" + ending)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []mutant
	var faults []error
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(name), ending), string(b))
		if err != nil {
			faults = append(faults, err)
		}
		all = append(all, m)
	}
	return all, errors.Join(faults...)
}

// parse reads one mutant.
func parse(name, text string) (mutant, error) {
	m := mutant{name: name}
	var into *string // where lines go; nil = the head
	for i, line := range strings.SplitAfter(text, "\n") {
		file, begins := strings.CutPrefix(strings.TrimRight(line, "\n"), "--- ")
		switch {
		case begins:
			m.edits = append(m.edits, edit{file: file})
			into = &m.edits[len(m.edits)-1].old
		case line == "+++\n" && into != nil:
			into = &m.edits[len(m.edits)-1].new
		case into != nil:
			*into += line
		default:
			if err := m.head(strings.Fields(line)); err != nil {
				return m, fmt.Errorf("%s: line %d: %w", name, i+1, err)
			}
		}
	}
	return m, m.check()
}

// head reads one line before the first edit.
func (m *mutant) head(words []string) error {
	switch {
	case len(words) == 0:
	case words[0] == "promise" && len(words) == 2:
		m.promise = words[1]
	case words[0] == "breaks":
		m.breaks = strings.Join(words[1:], " ")
	case words[0] == "test" && len(words) == 2:
		m.tests = append(m.tests, target{pkg: words[1]})
	case words[0] == "test" && len(words) == 3:
		m.tests = append(m.tests, target{words[1], words[2]})
	default:
		return fmt.Errorf("%q is not understood", strings.Join(words, " "))
	}
	return nil
}

func (m *mutant) check() error {
	switch {
	case !promiseRE.MatchString(m.promise):
		return fmt.Errorf("%s: promise %q: want P1 to P15", m.name, m.promise)
	case m.breaks == "":
		return fmt.Errorf("%s: does not say what it breaks", m.name)
	case len(m.tests) == 0:
		return fmt.Errorf("%s: names no test", m.name)
	case len(m.edits) == 0:
		return fmt.Errorf("%s: changes nothing", m.name)
	}
	for _, t := range m.tests {
		if _, err := regexp.Compile(t.run); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		// -run takes A/b|c for "A/b, or c".
		if bare := groupRE.ReplaceAllString(t.run, ""); strings.Contains(bare, "|") && strings.Contains(bare, "/") {
			return fmt.Errorf("%s: %s: put what stands between | into parentheses", m.name, t.run)
		}
	}
	for _, e := range m.edits {
		if e.old == "" || e.old == e.new {
			return fmt.Errorf("%s: %s: old text is empty, or the same as the new", m.name, e.file)
		}
	}
	return nil
}

// apply returns the changed files: path → text.
func (m *mutant) apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range m.edits {
		text, ok := changed[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			if err != nil {
				return nil, fmt.Errorf("%s: no longer applies: %w", m.name, err)
			}
			text = string(b)
		}
		if n := occurrences(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s: no longer applies: its old text is found %d times in %s, want once:\n%s", m.name, n, e.file, e.old)
		}
		changed[e.file] = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+e.old, "\n"+e.new, 1), "\n")
	}
	return changed, nil
}

// occurrences counts where the lines of old stand in text, also overlapping.
func occurrences(text, old string) (n int) {
	for text = "\n" + text; ; n++ {
		i := strings.Index(text, "\n"+old)
		if i < 0 {
			return n
		}
		text = text[i+1:]
	}
}
