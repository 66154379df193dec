package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/sqlite"
)

// The exit codes of DESIGN §8.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitUnhealthy = 3 // only from run, age and status --check
)

// defaultDB is the database when neither --db nor SETTLE_DB names one.
const defaultDB = "settle.db"

// app is what the commands share: where to read and write, and the database.
type app struct {
	db       string // path; set by --db, else SETTLE_DB, else defaultDB
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	json     bool // --json of the command that runs
	ran      bool // a command's own code has begun: later errors are no usage errors of cobra
}

// newApp returns an app on these streams. env looks up one variable.
func newApp(in io.Reader, out, err io.Writer, env func(string) string) *app {
	return &app{in: in, out: out, err: err, env: env, db: defaultDB}
}

// exitError ends the program with a code. A nil err says that everything worth
// saying has been printed.
type exitError struct {
	code int
	err  error
}

// Error returns the text of the cause.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause, which may be nil.
func (e *exitError) Unwrap() error { return e.err }

// usagef returns a usage error: exit code 2.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// open opens the database for writing and brings its schema up to date. Unless
// mustExist, a missing file is created.
func (a *app) open(_ context.Context, mustExist bool) (*sqlite.Store, error) {
	if err := a.look(mustExist); err != nil {
		return nil, err
	}
	return sqlite.Open(a.db, sqlite.Config{MustExist: mustExist})
}

// openRead opens the database for reading: it creates, migrates and changes
// nothing, and works beside a running worker.
func (a *app) openRead(_ context.Context) (*sqlite.Store, error) {
	if err := a.look(true); err != nil {
		return nil, err
	}
	return sqlite.Open(a.db, sqlite.Config{MustExist: true, NoMigrate: true})
}

// look says in the words of the command line what the store could only say in
// its own: that there is no file, or that it is a folder.
func (a *app) look(mustExist bool) error {
	if a.db == "" || strings.ContainsRune(a.db, 0) {
		return usagef("--db: want the path of a database file, such as %s", defaultDB)
	}
	info, err := os.Stat(a.db)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mustExist:
		return &settle.RefusedError{What: a.db, Why: "there is no database here; name another with --db or SETTLE_DB",
			Recover: "settle enqueue KIND JSON --db " + child.Quote(a.db) + " (creates it)"}
	case err == nil && info.IsDir():
		return usagef("--db: %s is a folder: want a file, such as --db %s", a.db,
			child.Quote(strings.TrimRight(a.db, "/")+"/"+defaultDB))
	}
	return nil // whatever else is wrong the store finds and explains
}

// read opens the database for reading, calls f and closes it.
func (a *app) read(ctx context.Context, f func(settle.Store) error) error {
	st, err := a.openRead(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// change opens the database for writing, calls f and closes it.
func (a *app) change(ctx context.Context, mustExist bool, f func(settle.Store) error) error {
	st, err := a.open(ctx, mustExist)
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}
