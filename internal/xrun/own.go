package xrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/settle-go/settle"
)

// own knows settle's own files, which no item may name: "find . | settle run"
// finds them too, and a command that packs or removes them destroys the run.
type own struct {
	path   string // of the database, as it was given
	dir    string // where commands run
	opened fs.FileInfo
	bases  [2]string       // how the names of all of them begin
	names  map[string]bool // full paths of the database and what SQLite writes beside it
	locks  string          // how the full path of any run's lock begins
	files  []fs.FileInfo   // those of them that exist
}

// sqliteFiles is what SQLite writes beside a database, and the database.
var sqliteFiles = []string{"", "-wal", "-shm", "-journal"}

// ownFiles looks for them. opened says that the database is open, so it exists.
func (p *Plan) ownFiles(opened bool) (*own, error) {
	o := &own{path: p.DB, dir: p.dir, names: map[string]bool{}}
	db, real := resolved(p.DB), p.lockBase()
	o.locks = resolved(real) + lockMark
	o.bases = [2]string{filepath.Base(db), filepath.Base(real)}
	for _, suffix := range sqliteFiles {
		o.names[db+suffix] = true
		o.names[resolved(real)+suffix] = true
		if info, err := os.Stat(real + suffix); err == nil {
			o.files = append(o.files, info)
		}
	}
	locks, _ := filepath.Glob(quoteGlob(real+lockMark) + "*" + lockEnd)
	for _, name := range locks {
		if info, err := os.Stat(name); err == nil {
			o.files = append(o.files, info)
		}
	}
	if !opened {
		return o, nil
	}
	var err error
	if o.opened, err = os.Stat(p.DB); err != nil {
		return nil, fmt.Errorf("look at the database: %w", err)
	}
	return o, nil
}

// resolved is the full path of a file whose folder may be a link, but which
// itself is not followed.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		return filepath.Join(dir, filepath.Base(abs))
	}
	return abs
}

// quoteGlob takes the special meaning from a path.
func quoteGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// is reports whether an item, read as a path, is one of them: by whatever name,
// link or hard link; by its path alone where it does not exist yet.
func (o *own) is(item []byte) bool {
	path := string(item)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.dir, path)
	}
	if info, err := os.Stat(path); err == nil {
		for _, file := range o.files {
			if os.SameFile(info, file) {
				return true
			}
		}
	}
	if base := filepath.Base(path); !strings.HasPrefix(base, o.bases[0]) && !strings.HasPrefix(base, o.bases[1]) {
		return false // without looking at every folder of the path
	}
	full := resolved(path)
	return o.names[full] || strings.HasPrefix(full, o.locks) && strings.HasSuffix(full, lockEnd)
}

// replacedError: the database is not the file any more that was opened.
type replacedError struct {
	path string
	gone bool
}

func (e *replacedError) Error() string {
	what := "was replaced by another file"
	if e.gone {
		what = "was removed or renamed"
	}
	return fmt.Sprintf("the database %s %s while the run used it, by a command of the run or another program: what was recorded since then is lost, and items may run again; "+
		"keep the database out of the reach of the commands, with --db or SETTLE_DB", e.path, what)
}

// replaced looks whether the database is still the file that was opened.
func (o *own) replaced() error {
	info, err := os.Stat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &replacedError{o.path, true}
	case err != nil:
		return fmt.Errorf("look at the database: %w", err)
	case !os.SameFile(info, o.opened):
		return &replacedError{o.path, false}
	}
	return nil
}

// skipOwn says, once for each, that an item is one of settle's own files.
func (s *start) skipOwn(item []byte) {
	if s.tally.skip(string(item)) {
		s.con.say("%s is one of settle's own files: it is not run", itemText(item))
	}
}

// dropOwn takes an item that an earlier start stored, and that is one of
// settle's own files, out of the run: it never runs, and is no failure.
func (s *start) dropOwn(ctx context.Context, j *settle.ClaimedJob) error {
	s.skipOwn(j.Input)
	if _, err := settle.NewClient(s.store).Cancel(ctx, j.ID, "it is one of settle's own files"); err != nil && !settle.IsStale(err) {
		return handBack() // the store is down; it comes again
	}
	if _, err := s.store.Remove(ctx, []settle.ID{j.ID}); err != nil {
		s.con.say("%s stays in the run as cancelled: %v", itemText(j.Input), err)
	}
	s.tally.dropped(j.ID)
	if s.order != nil {
		s.order.end(j.ID)
	}
	s.wake()
	return handBack() // nobody hears it
}
