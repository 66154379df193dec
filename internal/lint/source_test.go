package lint

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/settle-go/settle"

var update = flag.Bool("update", false, "mark the field cases that have got a test in cases.txt")

// goFile is one parsed file of the module.
type goFile struct {
	path  string // from the root of the repository, with slashes
	dir   string // its package: the same without the file's name, "." = the root
	test  bool
	lines int
	ast   *ast.File
}

var fileSet = token.NewFileSet()

// root finds the directory of the module's go.mod.
var root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), "module "+module+"\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	panic("lint: started outside the module")
})

// walk calls fn for each file of the repository that is, or could be, committed.
func walk(t *testing.T, fn func(name string)) {
	t.Helper()
	err := filepath.WalkDir(root(), func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(), full)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || rel == ".":
			return err
		case d.IsDir() && (rel == ".git" || rel == "bin"):
			return fs.SkipDir
		case d.Type().IsRegular():
			fn(rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// nested lists the directories that are modules of their own.
func nested(t *testing.T) (dirs []string) {
	walk(t, func(name string) {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			dirs = append(dirs, path.Dir(name)+"/")
		}
	})
	return dirs
}

var parsed struct {
	sync.Mutex
	files []goFile
}

// files parses the module once: its own Go files, without nested modules.
func files(t *testing.T) []goFile {
	t.Helper()
	parsed.Lock()
	defer parsed.Unlock()
	if parsed.files != nil {
		return parsed.files
	}
	others := nested(t)
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") {
			return
		}
		for _, dir := range others {
			if strings.HasPrefix(name, dir) {
				return
			}
		}
		src, err := os.ReadFile(filepath.Join(root(), name))
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fileSet, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		parsed.files = append(parsed.files, goFile{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			lines: strings.Count(string(src), "\n"), ast: f})
	})
	return parsed.files
}

// imports are the file's imports by the name under which the file knows them.
func (f goFile) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = full
	}
	return names
}

// calls yields each use of a name of an imported package: "time.Now".
func (f goFile) calls(use func(full string, at token.Position)) {
	names := f.imports()
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && names[id.Name] != "" {
				use(names[id.Name]+"."+sel.Sel.Name, fileSet.Position(sel.Pos()))
			}
		}
		return true
	})
}

// texts yields each string of the file's code, imports excepted.
func (f goFile) texts(use func(text string, at token.Position)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				use(text, fileSet.Position(n.Pos()))
			}
		}
		return true
	})
}

// exceptions are allowed uses: "path prefix: what" → why. One that nobody uses
// any longer is a fault.
type exceptions struct {
	reasons map[string]string
	used    map[string]bool
}

func except(reasons map[string]string) *exceptions {
	return &exceptions{reasons, map[string]bool{}}
}

func (e *exceptions) allow(file, what string) bool {
	allowed := false
	for key := range e.reasons {
		if prefix, w, _ := strings.Cut(key, ": "); w == what && strings.HasPrefix(file, prefix) {
			e.used[key] = true
			allowed = true
		}
	}
	return allowed
}

func (e *exceptions) done(t *testing.T) {
	t.Helper()
	for key, why := range e.reasons {
		if !e.used[key] {
			t.Errorf("the exception %q is used no longer: take it out", key)
		}
		if why == "" {
			t.Errorf("the exception %q has no reason", key)
		}
	}
}
