package mutants

import (
	"slices"
	"strings"
	"testing"
)

// quick are the packages whose tests are compiled and run in a second or two.
var quick = []string{"./internal/turn", "./internal/jump"}

// The mutants of quick packages, one that changes nothing, and one of each
// fault: what make mutants says can be believed.
func TestMutantsAreToldApart(t *testing.T) {
	c := copyTree(t)
	caught := 0
	for _, m := range read(t) {
		if len(m.tests) > 1 || !slices.Contains(quick, m.tests[0].pkg) {
			continue
		}
		caught++
		t.Run(m.name, func(t *testing.T) {
			if f := c.try(t.Context(), m, t.TempDir()); f.err != nil || f.test == "" {
				t.Errorf("noticed by %q, %v", f.test, f.err)
			}
		})
	}
	if caught < 2 {
		t.Errorf("%d mutants are quick to run, want 2 or more", caught)
	}
	ring := func(old, new string) string {
		return "promise P4\nbreaks turns\ntest ./internal/turn\n--- internal/turn/turn.go\n" + old + "+++\n" + new
	}
	for _, one := range []struct {
		name, text string
		test       string // that notices
		fault      string // or what is wrong with the mutant
	}{
		{"a panic takes the tests along", ring("\tr.n++\n", "\tpanic(\"mutant\")\n"), "Test", ""},
		{"nothing changes", ring("\tr.n++\n", "\tr.n += 1\n"), "", ""},
		{"it does not compile", ring("\tr.n++\n", "\tr.n+++\n"), "", "does not compile"},
		{"it no longer applies", ring("\tr.gone++\n", "\n"), "", "no longer applies"},
		{"its text is found twice", ring("\t}\n", "\t}\n\n"), "", "no longer applies"},
		{"it names no test", strings.Replace(ring("\tr.n++\n", "\tr.n += 2\n"), "/turn\n", "/turn TestNone\n", 1), "", "no test was run"},
	} {
		t.Run(one.name, func(t *testing.T) {
			m, err := parse(one.name, one.text)
			if err != nil {
				t.Fatal(err)
			}
			f := c.try(t.Context(), m, t.TempDir())
			fault := ""
			if f.err != nil {
				fault = f.err.Error()
			}
			if !strings.HasPrefix(f.test, one.test) || (f.test == "") != (one.test == "") {
				t.Errorf("noticed by %q, want %q…\n%s", f.test, one.test, f.said)
			}
			if !strings.Contains(fault, one.fault) || (fault == "") != (one.fault == "") {
				t.Errorf("the fault is %q, want %q", fault, one.fault)
			}
		})
	}
}

func TestAMutantThatSaysTooLittleIsRefused(t *testing.T) {
	whole := "promise P4\nbreaks turns\ntest ./internal/turn\n--- a.go\nold\n+++\nnew\n"
	if _, err := parse("whole", whole); err != nil {
		t.Error(err)
	}
	for _, without := range []string{"promise P4\n", "breaks turns\n", "test ./internal/turn\n", "--- a.go\nold\n+++\nnew\n", "old\n"} {
		if _, err := parse("part", strings.Replace(whole, without, "", 1)); err == nil {
			t.Errorf("without %q: accepted", without)
		}
	}
	for _, odd := range []string{"promise P16\n", "promises P4\n", "test ./internal/turn a b\n", "test ./internal/turn (\n", "test ./sqlite TestA/b|c\n"} {
		if _, err := parse("odd", strings.Replace(whole, "--- a.go\n", odd+"--- a.go\n", 1)); err == nil {
			t.Errorf("with %q: accepted", odd)
		}
	}
}
