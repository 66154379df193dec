package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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
	st, err := sqlite.Open(a.db, sqlite.Config{MustExist: mustExist})
	return st, a.denied(err, "")
}

// openRead opens the database for reading: it creates, migrates and changes
// nothing, and works beside a running worker.
func (a *app) openRead(_ context.Context) (*sqlite.Store, error) {
	if err := a.look(true); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(a.db, sqlite.Config{MustExist: true, NoMigrate: true})
	return st, a.denied(err, ", and SQLite needs that also for reading: readers write to the -shm file beside it")
}

// denied says exactly what is missing where a database was refused that this
// user cannot write; why is what follows from that.
func (a *app) denied(err error, why string) error {
	var refused *settle.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	for _, suffix := range []string{"", "-shm", "-wal"} {
		switch e := writable(a.db + suffix); {
		case e == nil || errors.Is(e, fs.ErrNotExist):
		case errors.Is(e, syscall.EROFS):
			return &settle.RefusedError{What: a.db, Why: "lies on a file system that is mounted read-only" + why, Err: e,
				Recover: "copy it, with the -wal file beside it if there is one, to a folder that you can write, and name the copy with --db"}
		case errors.Is(e, fs.ErrPermission):
			dir := child.Quote(filepath.Dir(a.db))
			return &settle.RefusedError{What: a.db, Why: "may not be written by this user" + why, Err: e,
				Recover: fmt.Sprintf("run this as the owner of the file, or let a group that you are in write the folder and the files: chgrp GROUP %[1]s %[2]s* && chmod g+rwxs %[1]s && chmod g+rw %[2]s*", dir, child.Quote(a.db))}
		}
	}
	return err
}

// writable tries to open a file for writing, and changes nothing.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
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
		return &settle.RefusedError{What: a.db, Why: "there is no database here",
			Recover: "name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one"}
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
