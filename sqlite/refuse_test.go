package sqlite

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

func TestP15EveryRefusalNamesACommand(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		must(t, os.WriteFile(p, b, 0o600))
		return p
	}
	good := newPath(t)
	st, err := Open(good, free(Config{}))
	must(t, err)
	insert(t, st, tasks(500, 100)...)
	must(t, st.Close())
	ruined := slurp(t, good)[""]
	copy(ruined, strings.Repeat("rubbish ", 20))
	pipe := filepath.Join(dir, "pipe")
	makePipe(t, pipe)
	for name, c := range map[string]struct {
		path, says, recover string
		cfg                 Config
	}{
		"a directory":             {path: dir, says: "is a directory", recover: "--db"},
		"a missing folder":        {path: filepath.Join(dir, "no", "settle.db"), says: "folder does not exist", recover: "mkdir -p " + filepath.Join(dir, "no")},
		"not a database":          {path: write("text", []byte(strings.Repeat("hello world ", 100))), says: "is not a settle database", recover: "another file with --db"},
		"a damaged file":          {path: write("ruined", ruined), says: "is damaged", recover: "settle repair"},
		"a missing file":          {path: filepath.Join(dir, "none.db"), cfg: Config{MustExist: true}, says: "does not exist", recover: "--db"},
		"a pipe":                  {path: pipe, says: "is not a regular file", recover: "--db"},
		"a folder that is a file": {path: filepath.Join(write("plain", nil), "settle.db"), says: "", recover: " "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.path, free(c.cfg))
			var r *settle.RefusedError
			if !errors.As(err, &r) {
				t.Fatalf("must be true: it is refused, got %v", err)
			}
			check(t, strings.Contains(err.Error(), c.says), "it says %q: %v", c.says, err)
			check(t, strings.Contains(r.Recover, c.recover), "it names the command with %q: %q", c.recover, r.Recover)
			check(t, strings.Contains(err.Error(), r.Recover), "people see the command: %v", err)
		})
	}
}

func TestPathsThatAreNone(t *testing.T) {
	for _, path := range []string{"", ":memory:", "file::memory:?cache=shared", "a\x00b"} {
		_, err := Open(path)
		check(t, isInvalid(err), "%q is refused as invalid: %v", path, err)
	}
	_, err := Open(newPath(t), Config{MaxJobs: -1, MaxBytes: 5, KeepFree: -2, Synchronous: 9})
	for _, field := range []string{"MaxJobs", "MaxBytes", "KeepFree", "Synchronous"} {
		check(t, err != nil && strings.Contains(err.Error(), field), "all faults of a Config are named: %v", err)
	}
	_, err = Open(newPath(t), Config{}, Config{})
	check(t, err != nil, "two Configs are one too many")
}

func TestPathsWithOddCharacters(t *testing.T) {
	for _, name := range []string{"with space", "100%", "50%25", "what?", "a#b", "x?mode=memory", "&amp;=;", "ünïcödé-日本", "quote'\"", "[a]*", "new\nline", "-flag"} {
		path := filepath.Join(t.TempDir(), name, name+".db")
		must(t, os.Mkdir(filepath.Dir(path), 0o755))
		st := openAt(t, path)
		insert(t, st, task())
		must(t, st.InTx(t.Context(), func(tx sqlTx) error { _, err := st.EnqueueTx(t.Context(), tx, task()); return err }))
		check(t, count(t, st) == 2, "%q: readers and user transactions see the same file", name)
		must(t, st.Close())
		files, err := os.ReadDir(filepath.Dir(path))
		must(t, err)
		check(t, len(files) == 1 && files[0].Name() == name+".db", "%q: the file has the name that was asked for: %v", name, files)
		r, err := Repair(t.Context(), path)
		check(t, err == nil && r.Sound, "%q: repair finds it: %v", name, err)
	}
	t.Chdir(t.TempDir())
	st := openAt(t, "file:relative.db")
	insert(t, st, task())
	_, err := os.Stat("file:relative.db")
	check(t, err == nil && filepath.IsAbs(st.Path()), "a relative path is a path, not a URI: %v", err)
}

func TestASymbolicLinkLeadsToTheFile(t *testing.T) {
	real := newPath(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(real, link)) // it leads nowhere yet
	st := openAt(t, link)
	beside := openAt(t, real)
	insert(t, st, task())
	check(t, count(t, beside) == 1 && st.logSize() > 0, "both names are the same database, with one log")
	must(t, beside.Close())
	must(t, st.Close())
	b := slurp(t, real)[""]
	must(t, os.WriteFile(real, b[:len(b)/2], 0o600))
	r, err := Repair(t.Context(), link)
	must(t, err)
	to, err := os.Readlink(link)
	check(t, err == nil && to == real && filepath.Dir(r.Moved) == filepath.Dir(real), "a repair keeps the link and works on the file: %v %s", err, r.Moved)
	insert(t, openAt(t, link), task())
}

func TestCommandsToRecoverCanBePasted(t *testing.T) {
	for path, want := range map[string]string{"/a/b.db": "/a/b.db", "/a b.db": "'/a b.db'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "日本": "日本", "": "''", "a;b": "'a;b'", "a\nb": "'a\nb'"} {
		check(t, word(path) == want, "%q is pasted as %s, got %s", path, want, word(path))
	}
}

// reachable makes a folder that every user can reach, and in it the test
// program.
func reachable(t *testing.T) (dir, exe string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "settle-nobody-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755))
	exe = filepath.Join(dir, "program")
	self, err := os.Executable()
	must(t, err)
	from, err := os.Open(self)
	must(t, err)
	defer func() { must(t, from.Close()) }()
	to, err := os.OpenFile(exe, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(to, from)
	must(t, errors.Join(err, to.Close()))
	return dir, exe
}

func TestReadOnlyFilesAndFoldersOfAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	dir, exe := reachable(t)
	nobody := uint32(0)
	if os.Getuid() == 0 {
		nobody = 65534
	}
	database := func(name string, file, folder os.FileMode) string {
		path := filepath.Join(dir, name, "settle.db")
		must(t, os.Mkdir(filepath.Dir(path), 0o755))
		st, err := Open(path, free(Config{}))
		must(t, err)
		insert(t, st, task())
		must(t, st.Close())
		must(t, os.Chmod(path, file))
		must(t, os.Chmod(filepath.Dir(path), folder))
		t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
		return path
	}
	empty := filepath.Join(dir, "empty", "settle.db")
	must(t, os.Mkdir(filepath.Dir(empty), 0o555))
	for name, path := range map[string]string{
		"a read-only file":                   database("file", 0o444, 0o777),
		"a read-only folder":                 database("folder", 0o666, 0o555),
		"a read-only file and folder":        database("both", 0o444, 0o555),
		"an unreadable file":                 database("secret", 0o000, 0o777),
		"a new file in a read-only folder":   empty,
		"a folder that may not be looked at": database("closed", 0o666, 0o000),
	} {
		t.Run(name, func(t *testing.T) {
			if nobody == 0 && name == "a folder that may not be looked at" {
				t.Log("the owner can be locked out, too")
			}
			said := spawnAs(t, exe, nobody, "refused", path).ends()
			if len(said) != 1 {
				t.Fatalf("got %q", said)
			}
			kind, rest, _ := strings.Cut(said[0], "|")
			recover, text, _ := strings.Cut(rest, "|")
			check(t, kind == "refused", "it is refused: %s", said[0])
			check(t, recover != "" && (strings.Contains(recover, "chmod") || strings.Contains(recover, "permissions")), "it names what recovers: %q", recover)
			check(t, strings.Contains(text, "settle.db"), "it names the file: %s", text)
			said = spawnAs(t, exe, nobody, "repair", path).ends()
			check(t, len(said) == 1 && (strings.HasPrefix(said[0], "error") || said[0] == "sound true"), "repair changes nothing either: %q", said)
		})
	}
	own := filepath.Join(dir, "own", "settle.db")
	must(t, os.Mkdir(filepath.Dir(own), 0o777))
	must(t, os.Chmod(filepath.Dir(own), 0o777))
	said := spawnAs(t, exe, nobody, "refused", own).ends()
	check(t, len(said) == 1 && strings.HasPrefix(said[0], "stored"), "in a folder of its own the user can work: %q", said)
}

func TestDamageFoundAtWorkNamesTheCommand(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st, err := Open(path, free(Config{}))
	must(t, err)
	insert(t, st, tasks(3000, 200)...)
	must(t, st.Close())
	b := slurp(t, path)[""]
	for i := 30 * page; i < len(b); i++ { // beyond the schema
		b[i] = 0x55
	}
	must(t, os.WriteFile(path, b, 0o600))
	st, err = Open(path, free(Config{}))
	if err == nil {
		defer func() { _ = st.Close() }()
		_, err = st.Claim(t.Context(), request(3000))
		_, _, err2 := st.Jobs(t.Context(), settle.Filter{Limit: 1000})
		err = errors.Join(err, err2)
	}
	var r *settle.RefusedError
	check(t, errors.As(err, &r) && strings.Contains(r.Recover, "settle repair"), "damage that is found later names the command, too: %v", err)
}
