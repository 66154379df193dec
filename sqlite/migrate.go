package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/settle-go/settle"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as ours ("setl").
const applicationID = 0x7365746c

// migration is one step of the schema. Steps are additive: a program of an
// earlier version can go on working, unless oldest says otherwise.
type migration struct {
	version int64
	oldest  int64 // schema version of the oldest program that can use the result
	name    string
	sql     string
}

// oldestFor names migrations that programs of earlier schemas cannot use.
var oldestFor = map[int64]int64{1: 1}

func allMigrations() ([]migration, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var out []migration
	oldest := int64(1)
	for i, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		v := int64(i + 1)
		if want := fmt.Sprintf("%04d_", v); !strings.HasPrefix(path.Base(name), want) {
			return nil, fmt.Errorf("migration %s: its name should begin with %s", name, want)
		}
		oldest = max(oldest, oldestFor[v])
		out = append(out, migration{v, oldest, path.Base(name), string(text)})
	}
	return out, nil
}

// SchemaVersion is the schema that this program writes.
func SchemaVersion() int {
	all, _ := allMigrations()
	return len(all)
}

// migrate brings the file up to date, one transaction a step. Five processes
// may start at once and one may be killed half way: a step is done or not.
func migrate(w *writer, refuseToMigrate bool, shown string) error {
	all, err := allMigrations()
	if err != nil {
		return err
	}
	for {
		have, oldest, err := w.schema()
		if err != nil {
			return err
		}
		if err := compatible(shown, have, oldest, int64(len(all))); err != nil {
			return err
		}
		if have >= int64(len(all)) {
			return nil
		}
		if refuseToMigrate && have > 0 {
			return refusal(shown, fmt.Sprintf("has schema %d, this program needs %d", have, len(all)), "settle migrate --db "+word(shown), nil)
		}
		if err := w.step(all[have]); err != nil {
			return fmt.Errorf("migration %s: %w", all[have].name, err)
		}
	}
}

// schema is the first look at the file. It waits for others: the first process
// that comes after one was killed keeps everybody out while it reads the log.
func (w *writer) schema() (have, oldest int64, err error) {
	err = patiently(func() (err error) {
		have, oldest, err = schema(w.c)
		return err
	})
	return have, oldest, err
}

// compatible refuses schemas that this program may not touch.
func compatible(shown string, have, oldest, mine int64) error {
	if oldest > mine {
		return refusal(shown, fmt.Sprintf("has schema %d, whose oldest program knows schema %d; this one knows %d", have, oldest, mine),
			"install a newer settle", nil)
	}
	return nil
}

// step is one migration in one transaction; somebody else may have been faster.
func (w *writer) step(m migration) (err error) {
	if err := w.begin(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.rollback()) }()
	have, _, err := schema(w.c)
	if err != nil || have != m.version-1 {
		return err
	}
	if err := sqlitex.ExecuteScript(w.c.c, "savepoint s;"+m.sql+"; release s;", nil); err != nil {
		return err
	}
	for _, q := range []string{
		fmt.Sprintf("pragma application_id = %d", applicationID),
		"create table if not exists schema_version (one integer primary key check (one = 1), version integer not null, oldest integer not null) strict",
		fmt.Sprintf("insert into schema_version values (1, %d, %d) on conflict do update set version = excluded.version, oldest = excluded.oldest", m.version, m.oldest),
		"commit",
	} {
		if err := w.c.query(q, func(row) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// schema reads what the file holds: 0 = nothing yet. One statement looks at all
// tables: between two, another process may make them.
func schema(c conn) (version, oldest int64, err error) {
	var known, named int64
	if _, err := one(c, `select count(*) filter (where name = 'schema_version'),
		count(*) filter (where type = 'table' and name in ('body', 'live', 'ended', 'attempt', 'queue')) from sqlite_schema`,
		func(r row) error { known, named = r.int(0), r.int(1); return nil }); err != nil {
		return 0, 0, err
	}
	if known == 0 {
		return 0, 0, foreignFile(named)
	}
	_, err = one(c, `select version, oldest from schema_version`, func(r row) error {
		version, oldest = r.int(0), r.int(1)
		return nil
	})
	return version, oldest, err
}

// foreignFile refuses to add our tables to another program's database when
// their names are taken.
func foreignFile(named int64) error {
	if named == 0 {
		return nil
	}
	return &settle.RefusedError{What: "the database", Why: "has tables of another program under settle's names", Recover: "choose another file with --db"}
}

// Migrate brings a file's schema up to date and returns the SQL of the steps
// that were open; dryRun changes nothing. A file that does not exist is made,
// unless dryRun.
func Migrate(ctx context.Context, path string, dryRun bool) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	all, err := allMigrations()
	if err != nil {
		return "", err
	}
	have := int64(0)
	switch err := checkPath(path, abs, true); {
	case err == nil:
		if have, err = schemaOf(abs); err != nil {
			return "", refuse(path, err)
		}
	case checkPath(path, abs, false) != nil:
		return "", err
	}
	var open strings.Builder
	for _, m := range all[min(have, int64(len(all))):] {
		fmt.Fprintf(&open, "-- %s (schema %d, oldest program %d)\n%s\n", m.name, m.version, m.oldest, m.sql)
	}
	if dryRun || ctx.Err() != nil {
		return open.String(), ctx.Err()
	}
	s, err := Open(path)
	if err != nil {
		return "", err
	}
	return open.String(), s.Close()
}

// schemaOf reads an existing file's schema without changing it.
func schemaOf(abs string) (int64, error) {
	c, err := zs.OpenConn(fileURI(abs), zs.OpenReadWrite|zs.OpenURI)
	if err != nil {
		return 0, err
	}
	c.SetBusyTimeout(busyLimit)
	have, _, err := schema(newDirect(c))
	return have, errors.Join(err, c.Close())
}
