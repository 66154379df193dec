package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// nextSchema stands for the migrations to come.
var nextSchema = migration{version: int64(SchemaVersion()) + 1, oldest: 1, name: "next.sql", sql: `
	create table extra (n integer primary key, note text not null default 'x') strict; -- a comment; with a semicolon
	alter table body add column origin text;
	insert into extra (n) select n from body;
	create index extra_note on extra (note);`}

// statements splits a script as SQLite does.
func statements(t testing.TB, d direct, script string) (out []string) {
	t.Helper()
	probe := rawConn(t, newDB(t)) // statements must not depend on each other to be split
	for rest := script; strings.TrimSpace(rest) != ""; {
		s, trailing, err := probe.c.PrepareTransient(rest)
		must(t, err)
		one := rest[:len(rest)-trailing]
		rest = rest[len(rest)-trailing:]
		if s != nil && s.ColumnCount() == 0 {
			_, err = s.Step()
		}
		must(t, err)
		if s != nil {
			must(t, s.Finalize())
		}
		out = append(out, one)
	}
	return out
}

// newDB makes an empty database of the newest schema before the script's.
func newDB(t testing.TB) string {
	t.Helper()
	path := newPath(t)
	must(t, os.WriteFile(path, nil, 0o600))
	return path
}

// killedAfter leaves the files as a kill within a migration would: after the
// first n statements, nothing committed, everything flushed that ever would be.
func killedAfter(t testing.TB, path string, m migration, done []string) string {
	t.Helper()
	d := rawConn(t, path)
	for _, p := range []string{"pragma journal_mode = wal", "pragma cache_size = 1", "begin immediate"} {
		must(t, d.query(p, func(row) error { return nil }))
	}
	for _, q := range done {
		s, _, err := d.c.PrepareTransient(q)
		must(t, err)
		if s == nil { // a comment
			continue
		}
		_, err = s.Step()
		must(t, err)
		must(t, s.Finalize())
	}
	left := newPath(t)
	spill(t, left, slurp(t, path))
	must(t, d.c.Close())
	return left
}

func TestB065KilledAfterEachStatementOfAMigration(t *testing.T) {
	t.Parallel()
	first, err := allMigrations()
	must(t, err)
	fresh := newDB(t)
	d := rawConn(t, fresh)
	parts := statements(t, d, first[0].sql)
	check(t, len(parts) > 15, "the first migration has many statements: %d", len(parts))
	for n := range parts {
		left := killedAfter(t, newDB(t), first[0], parts[:n+1])
		st := openAt(t, left)
		insert(t, st, task())
		sound(t, left)
	}
}

func TestB065KilledAfterEachStatementOfALaterMigration(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st, err := Open(path, free(Config{}))
	must(t, err)
	insert(t, st, tasks(1000, 100)...)
	must(t, st.Close())
	parts := strings.SplitAfter(nextSchema.sql, ";\n")
	for n := range parts {
		left := killedAfter(t, copied(t, path), nextSchema, parts[:n+1])
		st := openAt(t, left)
		have, _, err := schema(st.w.c)
		must(t, err)
		check(t, have == nextSchema.version-1 && count(t, st) == 1000, "the 1 000 jobs are intact on the version before: schema %d, %d jobs", have, count(t, st))
		must(t, st.w.step(nextSchema)) // the next start completes it
		have, _, err = schema(st.w.c)
		must(t, err)
		check(t, have == nextSchema.version && count(t, st) == 1000, "the migration completes without hand work")
		check(t, drain(t, st) == 1000, "and the jobs run")
		sound(t, left)
	}
}

func copied(t testing.TB, path string) string {
	t.Helper()
	to := newPath(t)
	spill(t, to, slurp(t, path))
	return to
}

func TestB065AFailingStepIsUndoneWhole(t *testing.T) {
	st := newStore(t)
	insert(t, st, tasks(100, 10)...)
	broken := nextSchema
	broken.sql += "insert into nowhere values (1);"
	err := st.w.step(broken)
	check(t, err != nil && st.w.c.c.AutocommitEnabled(), "the step fails and leaves no transaction open: %v", err)
	have, _, err := schema(st.w.c)
	must(t, err)
	n, err := number(st.w.c, `select count(*) from sqlite_schema where name in ('extra', 'extra_note')`)
	must(t, err)
	check(t, have == nextSchema.version-1 && n == 0, "nothing of it is left: schema %d, %d tables", have, n)
	check(t, drain(t, st) == 100, "the jobs run")
	must(t, st.w.step(nextSchema))
	must(t, st.w.step(nextSchema)) // somebody else was faster
	sound(t, st.Path())
}

// The tests above act out a kill by themselves; this one holds the step to it.
func TestB065AStepAndItsVersionAreOneTransaction(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	insert(t, st, tasks(100, 10)...)
	_, err := st.w.c.exec(`create trigger stop before update on schema_version begin select raise(fail, 'stopped'); end`)
	must(t, err)
	err = st.w.step(nextSchema)
	check(t, err != nil && st.w.c.c.AutocommitEnabled(), "the step fails at its last statement and leaves no transaction open: %v", err)
	n, err := number(st.w.c, `select count(*) from sqlite_schema where name in ('extra', 'extra_note')`)
	must(t, err)
	check(t, n == 0, "nothing of it is left: %d tables", n)
	_, err = st.w.c.exec(`drop trigger stop`)
	must(t, err)
	must(t, st.w.step(nextSchema))
	check(t, drain(t, st) == 100, "it completes without hand work, and the jobs run")
	sound(t, st.Path())
}

func setSchema(t testing.TB, version, oldest int) (path string, jobs []byte) {
	t.Helper()
	path = newPath(t)
	st, err := Open(path, free(Config{}))
	must(t, err)
	insert(t, st, tasks(10, 10)...)
	_, err = st.w.c.exec(`update schema_version set version = ?, oldest = ?`, version, oldest)
	must(t, err)
	must(t, st.Close())
	return path, slurp(t, path)[""]
}

func TestB065ASchemaOfANewerProgramIsRefused(t *testing.T) {
	path, before := setSchema(t, 99, 98)
	_, err := Open(path, free(Config{}))
	var r *settle.RefusedError
	if !errors.As(err, &r) {
		t.Fatalf("must be true: it is refused: %v", err)
	}
	check(t, strings.Contains(err.Error(), "98") && strings.Contains(err.Error(), "99") && strings.Contains(err.Error(), fmt.Sprint("knows ", SchemaVersion())), "both versions are named: %v", err)
	check(t, strings.Contains(r.Recover, "newer settle"), "and what to do: %q", r.Recover)
	check(t, bytes.Equal(slurp(t, path)[""], before), "no job is touched")
}

func TestB065AnOlderProgramWorksOnACompatibleNewerSchema(t *testing.T) {
	path := newPath(t)
	st := openAt(t, path)
	insert(t, st, tasks(10, 10)...)
	must(t, st.w.step(nextSchema))
	insert(t, st, task()) // the older program that has it open goes on
	must(t, st.Close())
	st = openAt(t, path, Config{NoMigrate: true})
	have, oldest, err := schema(st.w.c)
	must(t, err)
	check(t, have == nextSchema.version && oldest == 1, "its version stays: %d %d", have, oldest)
	insert(t, st, task())
	check(t, drain(t, st) == 12, "an older program works on it")
	sound(t, path)
}

func TestMigrateShowsWhatItWouldDo(t *testing.T) {
	path := newPath(t)
	text, err := Migrate(t.Context(), path, true)
	must(t, err)
	_, missing := os.Stat(path)
	check(t, strings.Contains(text, "create table body") && missing != nil, "a dry run shows the SQL and makes no file")
	_, err = Migrate(t.Context(), path, false)
	must(t, err)
	text, err = Migrate(t.Context(), path, true)
	must(t, err)
	check(t, text == "", "a file that is up to date needs nothing: %q", text)
	newer, _ := setSchema(t, 7, 1)
	text, err = Migrate(t.Context(), newer, false)
	check(t, err == nil && text == "", "a newer compatible one needs nothing: %q %v", text, err)
	newer, _ = setSchema(t, 7, 7)
	_, err = Migrate(t.Context(), newer, false)
	var r *settle.RefusedError
	check(t, errors.As(err, &r), "a newer incompatible one is refused: %v", err)
	_, err = Migrate(t.Context(), t.TempDir(), true)
	check(t, errors.As(err, &r), "a directory is refused: %v", err)
}

func TestAnotherProgramsTablesAreNotTouched(t *testing.T) {
	path := newDB(t)
	d := rawConn(t, path)
	_, err := d.exec(`create table live (theirs text)`)
	must(t, err)
	_, err = Open(path, free(Config{}))
	var r *settle.RefusedError
	check(t, errors.As(err, &r) && r.Recover != "", "a database that uses our names is refused: %v", err)
	n, err := number(d, `select count(*) from sqlite_schema`)
	must(t, err)
	check(t, n == 1, "and not changed")
	_, err = d.exec(`alter table live rename to theirs`)
	must(t, err)
	st := openAt(t, path)
	insert(t, st, task())
	n, err = number(d, `select count(*) from theirs`)
	check(t, err == nil && n == 0, "one that does not is shared: %v", err)
}

// crossed is a connection between whose first two reads another process acts.
type crossed struct {
	direct
	meanwhile func()
}

func (c crossed) query(query string, each func(row) error, args ...any) error {
	err := c.direct.query(query, each, args...)
	c.meanwhile()
	return err
}

func TestB065ANewFileThatAnotherProcessMigratesMeanwhileIsNobodyElses(t *testing.T) {
	t.Parallel()
	path := newDB(t)
	c := crossed{rawConn(t, path), sync.OnceFunc(func() {
		st, err := Open(path, free(Config{}))
		must(t, err)
		must(t, st.Close())
	})}
	_, _, err := schema(c)
	check(t, err == nil, "the file was empty, or it is ours: %v", err)
	have, _, err := schema(c)
	check(t, err == nil && have == int64(SchemaVersion()), "the next look finds our schema: %d %v", have, err)
}

func TestAStartWaitsForAnotherProcessThatReadsTheLog(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st, err := Open(path, free(Config{}))
	must(t, err)
	must(t, st.Close())
	other := rawConn(t, path)
	for _, q := range []string{"pragma locking_mode = exclusive", "begin exclusive"} {
		must(t, other.query(q, func(row) error { return nil }))
	}
	mine := rawConn(t, path)
	mine.c.SetBusyTimeout(0) // as openConn leaves it
	done := make(chan error)
	go func() { done <- migrate(&writer{c: mine}, false, path) }()
	wait(50 * time.Millisecond)
	must(t, other.c.Close())
	must(t, <-done)
}
