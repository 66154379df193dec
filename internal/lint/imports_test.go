package lint

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// layer says what one package may import. "pure" stands for the internal
// packages without a layer of their own; "/..." for a folder and all below it.
type layer struct {
	inside  []string // of this module
	outside []string // of other modules
	never   []string // of the standard library
}

var (
	noWorld = []string{"database/sql", "log", "log/slog", "net", "net/http", "os", "os/exec", "os/signal", "syscall"}
	pure    = layer{inside: []string{"pure"}, never: noWorld}
)

// picture is how the packages may depend on each other: an arrow that is not
// here does not exist. Siblings (sqlite, postgres, worker, gate) never import
// each other; breaker and mailbox know nothing of settle.
var picture = map[string]layer{
	".":                 {inside: []string{"pure"}, outside: []string{"github.com/google/uuid"}, never: noWorld},
	"sqlite":            {inside: []string{".", "pure"}, outside: []string{"zombiezen.com/go/sqlite", "modernc.org/sqlite", "golang.org/x/sys"}, never: []string{"net", "net/http", "os/exec"}},
	"postgres":          {inside: []string{".", "pure"}, outside: []string{"github.com/jackc/pgx/v5"}, never: []string{"os", "os/exec"}},
	"worker":            {inside: []string{".", "pure"}, never: []string{"database/sql", "net", "net/http", "os", "os/exec"}},
	"gate":              {inside: []string{".", "pure"}, never: []string{"database/sql", "os", "os/exec"}},
	"breaker":           {never: noWorld},
	"mailbox":           {inside: []string{"pure"}, never: []string{"database/sql", "os", "os/exec"}},
	"mailbox/redisbox":  {inside: []string{"mailbox", "pure"}, outside: []string{"github.com/redis/rueidis"}, never: []string{"os", "os/exec"}},
	"remote":            {inside: []string{".", "worker", "mailbox", "breaker", "internal/verdict", "pure"}, never: []string{"os", "os/exec"}},
	"remote/redisinbox": {inside: []string{".", "remote", "mailbox", "pure"}, outside: []string{"github.com/redis/rueidis"}, never: []string{"os", "os/exec"}},
	"outbox":            {inside: []string{".", "worker", "internal/verdict", "pure"}, never: []string{"os", "os/exec"}},
	"server":            {inside: []string{".", "sqlite", "postgres", "worker", "gate", "breaker", "mailbox/...", "remote", "outbox", "internal/..."}, outside: []string{"*"}},
	"settletest":        {inside: []string{".", "sqlite", "worker", "internal/storetest", "pure"}, never: []string{"net", "net/http", "os/exec"}},
	"cmd/settle":        {inside: []string{"*"}, outside: []string{"*"}},
	"examples/...":      {outside: []string{"github.com/redis/rueidis"}}, // nothing of ours: people copy them

	"internal/storetest":  {inside: []string{".", "pure"}, never: []string{"database/sql", "net", "net/http", "os/exec"}},
	"internal/verdict":    {inside: []string{".", "pure"}, never: []string{"database/sql", "os", "os/exec"}},
	"internal/demo":       {outside: []string{"github.com/redis/rueidis"}, never: []string{"os", "os/exec"}}, // nothing of ours: nodes are others' programs
	"internal/child":      {inside: []string{"pure"}, outside: []string{"golang.org/x/sys"}, never: []string{"database/sql", "log", "log/slog", "net", "net/http"}},
	"internal/faultproxy": {never: []string{"os", "os/exec"}},
	"internal/redistest":  {inside: []string{"internal/faultproxy"}},
	"internal/xrun":       {inside: []string{".", "worker", "internal/child", "internal/xrun/...", "internal/verdict", "pure"}, outside: []string{"github.com/dustin/go-humanize"}, never: []string{"database/sql", "net", "net/http"}},
	"internal/xrun/...":   {inside: []string{"pure"}, outside: []string{"golang.org/x/sys"}, never: []string{"database/sql", "net", "net/http"}},
	"internal/xwork":      {inside: []string{".", "internal/child", "internal/verdict", "pure"}, never: []string{"database/sql", "os/exec"}},
	"internal/tools/...":  {inside: []string{"*"}, outside: []string{"*"}},
	"internal/lint":       {},
}

func layerOf(dir string) (layer, string) {
	if l, ok := picture[dir]; ok {
		return l, dir
	}
	for up := dir; up != "."; up = path.Dir(up) {
		if l, ok := picture[up+"/..."]; ok {
			return l, up + "/..."
		}
	}
	return pure, "pure"
}

func isPure(dir string) bool {
	_, key := layerOf(dir)
	return strings.HasPrefix(dir, "internal/") && key == "pure"
}

func (l layer) allows(imported string) bool {
	dir, inside := strings.CutPrefix(imported, module)
	switch dir = strings.TrimPrefix(dir, "/"); {
	case inside && dir == "":
		return covers(l.inside, ".")
	case inside:
		return covers(l.inside, dir) || isPure(dir) && slices.Contains(l.inside, "pure")
	case !strings.Contains(strings.Split(imported, "/")[0], "."): // the standard library
		return !slices.Contains(l.never, imported)
	default:
		return slices.ContainsFunc(l.outside, func(o string) bool {
			return o == "*" || imported == o || strings.HasPrefix(imported, o+"/")
		})
	}
}

func covers(list []string, dir string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		folder, below := strings.CutSuffix(one, "/...")
		return one == "*" || one == dir || below && (dir == folder || strings.HasPrefix(dir, folder+"/"))
	})
}

func TestImportsFollowThePicture(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		l, key := layerOf(f.dir)
		if key == "pure" && !strings.HasPrefix(f.dir, "internal/") {
			t.Errorf("%s: package %s is not in the picture: give it its place in internal/lint/imports_test.go", f.path, f.dir)
			continue
		}
		for _, imported := range slices.Sorted(maps.Values(f.imports())) {
			if !l.allows(imported) {
				t.Errorf("%s imports %s: the layer %s may import of this module %q, of others %q, and never %q", f.path, imported, key, l.inside, l.outside, l.never)
			}
		}
	}
}

// The words of the picture itself.
func TestPictureForbidsWhatItSays(t *testing.T) {
	for _, c := range []struct{ dir, imported string }{
		{"sqlite", module + "/worker"}, {"worker", module + "/sqlite"}, {"postgres", module + "/sqlite"}, {"gate", module + "/worker"},
		{"breaker", module}, {"mailbox", module}, {"mailbox/redisbox", module}, {"internal/turn", module}, {"internal/anything", module + "/worker"},
		{".", module + "/sqlite"}, {".", "net/http"}, {".", "database/sql"}, {".", "github.com/spf13/cobra"}, {"worker", "os"}, {"internal/turn", "os"},
	} {
		if l, _ := layerOf(c.dir); l.allows(c.imported) {
			t.Errorf("%s may import %s", c.dir, c.imported)
		}
	}
	for _, c := range []struct{ dir, imported string }{
		{".", module + "/internal/redact"}, {".", "github.com/google/uuid"}, {"sqlite", module}, {"worker", module + "/internal/turn"},
		{"cmd/settle", module + "/internal/child"}, {"cmd/settle", "github.com/spf13/cobra"}, {"server", module + "/mailbox/redisbox"},
	} {
		if l, _ := layerOf(c.dir); !l.allows(c.imported) {
			t.Errorf("%s may not import %s", c.dir, c.imported)
		}
	}
}

func TestPureCodeStartsNoGoroutine(t *testing.T) {
	for _, f := range files(t) {
		if f.test || f.dir != "." && !isPure(f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: starts a goroutine", fileSet.Position(g.Pos()))
			}
			return true
		})
	}
}
