package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// ---- time

// clocks is where the process's clock may be read. Everything that is stored
// or compared between processes comes from the store's clock.
var clocks = map[string]string{
	"internal/clock/: time.Now":                  "the one clock of a store: tests set it",
	"worker/: time.Now":                          "monotonic spans of this process, never stored",
	"mailbox/: time.Now":                         "monotonic: how long a wait, a look and a fault last in this process, never stored",
	"breaker/config.go: time.Now":                "monotonic: open times and leases of this process, never stored",
	"sqlite/room.go: time.Now":                   "monotonic: how long a count of rows is reused",
	"sqlite/space.go: time.Now":                  "monotonic: how long a look at the volume is reused",
	"sqlite/writer.go: time.Now":                 "monotonic: how long a transaction has worked, how long since the writer last paused",
	"cmd/settle/: time.Now":                      "what a person sees while a command runs; a check of options before the store has them",
	"internal/xwork/http.go: time.Now":           "when an answer came, against its own Date header",
	"cmd/settle/process_test.go: time.Sleep":     "waits for real processes",
	"cmd/settle/run_test.go: time.Sleep":         "waits for real processes",
	"internal/child/: time.Sleep":                "waits for real processes",
	"internal/kill/main_test.go: time.Sleep":     "waits for real processes, and for leases that pass in real time",
	"sqlite/help_test.go: time.Sleep":            "waits for other processes and for SQLite's own locks, which know real time only",
	"sqlite/repair.go: time.Now":                 "the name of a damaged file that is moved aside, which a store cannot give",
	"sqlite/tx.go: time.Sleep":                   "the lock of another process is waited for in real time",
	"sqlite/writer.go: time.Sleep":               "the lock of another process is waited for in SQLite's own way, in real time",
	"internal/storetest/nudges.go: time.Now":     "a hint comes in real time; the suite gives up on it in real time",
	"internal/xwork/command_test.go: time.Sleep": "waits for real processes",
	"examples/: time.Now":                        "programs of their own: the pauses between signs of life",
	"remote/ratio.go: time.Now":                  "monotonic: how fast repeats of this process may come",
	"remote/deliver.go: time.Now":                "monotonic: how long ago a last look failed",
	"remote/report.go: time.Now":                 "when an odd answer came to this process, for people",
	"remote/submit.go: time.Now":                 "when a node's reply came, against its own Date header",
	"remote/redisinbox/: time.Now":               "monotonic: how long reading has worked, deadlines, the pace of lines in the log; never stored",
	"internal/faultproxy/: time.Sleep":           "waits for a port that was in use a moment ago",
	"internal/redistest/: time.Now":              "how long a server may take over an answer",
	"internal/redistest/: time.Sleep":            "waits for real processes",
	"internal/xrun/: time.Now":                   "spans that people are shown, and how often is looked",
	"internal/xrun/: time.Sleep":                 "waits for real processes and their locks",
}

func TestTimeComesFromTheStore(t *testing.T) {
	allowed := except(clocks)
	list := files(t)
	wrappers := wrappers(list)
	for _, f := range list {
		bubbles := f.bubbles(wrappers)
		f.calls(func(name string, at token.Position) {
			switch {
			case name != "time.Now" && name != "time.Sleep" || f.test && name == "time.Now":
			case f.test && inside(bubbles, at):
			case allowed.allow(f.path, name):
			case f.test:
				t.Errorf("%v: a real sleep: only inside synctest.Test", at)
			default:
				t.Errorf("%v: %s: time comes from the store, or as an argument", at, name)
			}
		})
	}
	allowed.done(t)
}

// bubbles are the places of this file that only run inside a synctest bubble:
// calls of synctest.Test, calls of the package's own wrappers around it, and
// functions that call synctest.Wait, which panics elsewhere.
func (f goFile) bubbles(wrappers map[string]bool) (at []span) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			if f.synctest(n, "Test") || ok && wrappers[f.dir+"."+id.Name] {
				at = append(at, spanOf(n))
			}
		case *ast.FuncDecl:
			if f.contains(n, "Wait") {
				at = append(at, spanOf(n))
			}
		}
		return true
	})
	return at
}

// wrappers are the functions of tests that take a function into a bubble.
func wrappers(list []goFile) map[string]bool {
	names := map[string]bool{}
	for _, f := range list {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil && takesFunc(fn) && f.contains(fn, "Test") {
				names[f.dir+"."+fn.Name.Name] = true
			}
		}
	}
	return names
}

func takesFunc(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			return true
		}
	}
	return false
}

func (f goFile) contains(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && f.synctest(call, name)
		return !found
	})
	return found
}

// synctest reports whether the call is one of testing/synctest.
func (f goFile) synctest(call *ast.CallExpr, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && f.imports()[id.Name] == "testing/synctest"
}

func spanOf(n ast.Node) span {
	return span{fileSet.Position(n.Pos()).Offset, fileSet.Position(n.End()).Offset}
}

type span struct{ from, to int }

func inside(spans []span, at token.Position) bool {
	for _, s := range spans {
		if s.from <= at.Offset && at.Offset < s.to {
			return true
		}
	}
	return false
}

var sqlClock = regexp.MustCompile(`(?i)\b(now|unixepoch|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(\s*\)|current_time(stamp)?\b|current_date\b|\b(datetime|julianday|strftime|date|unixepoch)\s*\([^)]*'now'`)

func TestStatementsReadNoClock(t *testing.T) {
	for _, f := range files(t) {
		if f.test || f.dir == "internal/lint" {
			continue
		}
		f.texts(func(text string, at token.Position) {
			if found := sqlClock.FindString(text); found != "" && strings.ContainsAny(text, " \n") {
				t.Errorf("%v: %q in a statement: bind the store's clock", at, found)
			}
		})
	}
	for _, sql := range []string{"select now()", "where at < CURRENT_TIMESTAMP", "set at = strftime('%s', 'now')", "select unixepoch()"} {
		if !sqlClock.MatchString(sql) {
			t.Errorf("%q is let through", sql)
		}
	}
}

// ---- files, environment, flags

// Who else than the command may touch the world outside the process, and why.
var world = map[string]string{
	"cmd/settle/: environment":                  "the command reads files, environment and flags",
	"cmd/settle/: files":                        "the command reads files, environment and flags",
	"internal/tools/: environment":              "programs for the people who work here",
	"internal/tools/: files":                    "programs for the people who work here",
	"sqlite/: files":                            "opens, looks at and moves its own database file",
	"internal/child/: files":                    "programs of commands, and the files that their output waits in",
	"internal/child/guard_unix.go: environment": "the guard is the same binary started anew, and is told so by its environment",
	"examples/: environment":                    "programs of their own",
	"internal/redistest/: files":                "starts servers for tests, each in a folder of its own",
	"internal/xrun/: files":                     "reads what commands wrote; the lock beside the database",
}

var (
	environment = words("Args Getenv LookupEnv Environ ExpandEnv Setenv Unsetenv Clearenv Stdin Stdout Stderr Getwd Chdir UserHomeDir UserConfigDir UserCacheDir Hostname")
	filesOfOS   = words("Chmod Chown Chtimes Create CreateTemp DirFS Link Lstat Mkdir MkdirAll MkdirTemp Open OpenFile OpenRoot ReadDir ReadFile Readlink Remove RemoveAll Rename Stat Symlink Truncate WriteFile")
	flagParsers = map[string]bool{"flag": true, "github.com/spf13/cobra": true, "github.com/spf13/pflag": true, "github.com/alecthomas/kong": true}
)

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

func TestFilesEnvironmentAndFlagsAreReadByTheCommand(t *testing.T) {
	allowed := except(world)
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, full := range f.imports() {
			if flagParsers[full] && !allowed.allow(f.path, "environment") {
				t.Errorf("%s imports %s: flags are read in cmd/settle only", f.path, full)
			}
			if full == "os/exec" && !allowed.allow(f.path, "files") {
				t.Errorf("%s imports os/exec: commands are run by internal/child only", f.path)
			}
		}
		f.calls(func(name string, at token.Position) {
			name, ok := strings.CutPrefix(name, "os.")
			switch {
			case !ok:
			case environment[name] && !allowed.allow(f.path, "environment"):
				t.Errorf("%v: os.%s: environment, arguments and terminals are read in cmd/settle only", at, name)
			case filesOfOS[name] && !allowed.allow(f.path, "files"):
				t.Errorf("%v: os.%s: files are read in cmd/settle only", at, name)
			}
		})
	}
	allowed.done(t)
}
