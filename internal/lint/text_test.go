package lint

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ---- documentation

// selfEvident methods carry out an interface that everybody knows.
var selfEvident = words("Error Unwrap")

func TestEveryPackageAndExportedNameIsDocumented(t *testing.T) {
	packages := map[string]bool{}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		packages[f.dir] = packages[f.dir] || f.ast.Doc.Text() != ""
		if f.ast.Name.Name != "main" {
			undocumented(f.ast, func(n ast.Node, what string) {
				t.Errorf("%v: %s has no comment", fileSet.Position(n.Pos()), what)
			})
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if !packages[dir] {
			t.Errorf("package %s has no comment", dir)
		}
	}
}

func undocumented(f *ast.File, report func(ast.Node, string)) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc.Text() == "" && !selfEvident[d.Name.Name] && ast.IsExported(receiver(d)) {
				report(d, "func "+d.Name.Name)
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, s := range d.Specs {
				undocumentedSpec(d, s, report)
			}
		}
	}
}

// receiver is the name of the type of a method, or that of the function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func undocumentedSpec(d *ast.GenDecl, s ast.Spec, report func(ast.Node, string)) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		if s.Doc.Text() == "" && (d.Doc.Text() == "" || d.Lparen.IsValid()) {
			report(s, "type "+s.Name.Name)
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok {
			for _, m := range i.Methods.List {
				if len(m.Names) > 0 && m.Names[0].IsExported() && m.Doc.Text() == "" && m.Comment.Text() == "" {
					report(m, "method "+s.Name.Name+"."+m.Names[0].Name)
				}
			}
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && d.Doc.Text() == "" && s.Doc.Text() == "" && s.Comment.Text() == "" {
				report(s, n.Name)
			}
		}
	}
}

// ---- size

const (
	longFile    = 300 // said
	tooLongFile = 400 // refused
	tooLongTest = 500 // refused: rows of a table may be many
)

func TestFilesStayReadable(t *testing.T) {
	for _, f := range files(t) {
		limit := tooLongFile
		if f.test {
			limit = tooLongTest
		}
		switch {
		case f.lines > limit:
			t.Errorf("%s has %d lines: the limit is %d; give one of its parts a file of its own", f.path, f.lines, limit)
		case f.lines > longFile:
			t.Logf("%s has %d lines: it is getting long", f.path, f.lines)
		}
	}
}

// ---- what only one machine knows

// Committed files never name places of the machine that they were written on:
// the working copy and what lies beside it, the Go tool's own folders.
func TestNoPathsOfThisMachine(t *testing.T) {
	places := []string{root()}
	if up := filepath.Dir(root()); strings.Count(up, "/") >= 1 && up != "/" && up != filepath.Clean(os.TempDir()) && up != "/home" && up != "/root" {
		places = append(places, up+"/")
	}
	for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOROOT"} {
		out, err := exec.Command("go", "env", name).Output()
		if place := strings.TrimSpace(string(out)); err == nil && strings.Count(place, "/") > 1 && place != "/usr/local/go" {
			places = append(places, place)
		}
	}
	for i, place := range places {
		places[i] = regexp.QuoteMeta(place)
	}
	// Not inside a longer path or address, such as https://example.org/tmp/.
	named := regexp.MustCompile(`(?:^|[^\w./-])(` + strings.Join(places, "|") + `)`)
	for _, name := range committed(t) {
		b, err := os.ReadFile(filepath.Join(root(), name))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		if m := named.FindSubmatch(b); m != nil {
			t.Errorf("%s names %s, which only this machine has", name, m[1])
		}
	}
}

// committed lists what git keeps, or would: without git, every file.
func committed(t *testing.T) (names []string) {
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root()
	if out, err := git.Output(); err == nil {
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	}
	walk(t, func(name string) { names = append(names, name) })
	return names
}
