package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const casesFile = "cases.txt"

// later are the parts that do not exist yet; their cases come with them.
var later = map[string]string{
	"outbox":   "needs uploads and their verdicts, which no package offers yet",
	"gate":     "needs the admission gate, which no package offers yet",
	"postgres": "is about PostgreSQL, for which there is no store yet",
}

type fieldCase struct{ id, where, title string }

var caseLine = regexp.MustCompile(`^(B-\d{3})\s+(\w+)\s+(\S.*)$`)

func fieldCases(t *testing.T) (list []fieldCase) {
	t.Helper()
	b, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := caseLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: %q: want id, where, title", casesFile, line)
		}
		list = append(list, fieldCase{m[1], m[2], m[3]})
	}
	return list
}

func TestListOfFieldCasesIsWhole(t *testing.T) {
	list := fieldCases(t)
	for i, c := range list {
		if want := fmt.Sprintf("B-%03d", i+1); c.id != want {
			t.Errorf("%s stands where %s is expected", c.id, want)
		}
		if n := len(strings.Fields(c.title)); n > 8 {
			t.Errorf("%s: a title of %d words", c.id, n)
		}
	}
	if len(list) != 66 {
		t.Errorf("%d cases, want 66", len(list))
	}
}

func TestEveryFieldCaseIsAnswered(t *testing.T) {
	tests := testedCases(t)
	var moved []string
	for _, c := range fieldCases(t) {
		where := tests[c.id]
		switch c.where {
		case "test":
			if len(where) == 0 {
				t.Errorf("%s (%s) has no test: write one that names it", c.id, c.title)
			}
		case "owed":
			if len(where) > 0 {
				moved = append(moved, c.id)
			} else {
				t.Errorf("%s (%s) is owed a test", c.id, c.title)
			}
		case "docs":
			if !documentedAsAbsent(t, c.id) {
				t.Errorf("%s (%s): no page of README.md or docs says that the feature is absent, and names the case", c.id, c.title)
			}
		default:
			if later[c.where] == "" {
				t.Errorf("%s (%s): %q is no place", c.id, c.title, c.where)
			}
		}
	}
	if len(moved) == 0 {
		return
	}
	if !*update {
		t.Logf("tested by now: %s; go test ./internal/lint -update takes them off the list of what is owed", strings.Join(moved, " "))
		return
	}
	b, err := os.ReadFile(casesFile)
	for _, id := range moved {
		b = []byte(strings.Replace(string(b), id+"  owed", id+"  test", 1))
	}
	if err == nil {
		err = os.WriteFile(casesFile, b, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

var (
	caseInName = regexp.MustCompile(`(?:^|[^A-Za-z])(?:Test|Fuzz|Example|Benchmark)\w*?B_?(\d{3})(?:\D|$)`)
	caseInText = regexp.MustCompile(`\bB-(\d{3})\b`)
)

// testedCases finds the ids in the names of tests and in the texts (names of
// subtests) of test files and of the suite that defines a store.
func testedCases(t *testing.T) map[string][]string {
	found := map[string][]string{}
	add := func(number string, at token.Position) {
		found["B-"+number] = append(found["B-"+number], at.String())
	}
	for _, f := range files(t) {
		if f.dir == "internal/lint" || !f.test && f.dir != "internal/storetest" {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if m := caseInName.FindStringSubmatch(fn.Name.Name); m != nil {
					add(m[1], fileSet.Position(fn.Pos()))
				}
			}
		}
		f.texts(func(text string, at token.Position) {
			for _, m := range caseInText.FindAllStringSubmatch(text, -1) {
				add(m[1], at)
			}
		})
	}
	return found
}

// documentedAsAbsent looks for the sentence and the id on one page.
func documentedAsAbsent(t *testing.T, id string) bool {
	pages, err := filepath.Glob(filepath.Join(root(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(append(pages, filepath.Join(root(), "README.md")), func(page string) bool {
		b, err := os.ReadFile(page)
		text := strings.ToLower(strings.Join(strings.Fields(string(b)), " "))
		return err == nil && strings.Contains(text, "recurring schedules are not offered") && strings.Contains(text, strings.ToLower(id))
	})
}
