// Package sqlite is the embedded store: one file, no server, a static binary.
//
// Every process opens the file by itself; several processes on one machine
// share it. A process has one writing connection, whose transactions carry all
// calls that gathered while the last one was committed, and a few reading
// ones. Network file systems are refused.
//
// A job's way through the package: insert.go, claim.go, renew.go, apply.go;
// sweep.go finds what is overdue, read.go shows it, prune.go removes it.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
)

// Synchronous says when a commit counts as done.
type Synchronous int

const (
	// Full waits for the disk with every commit: what was acknowledged
	// survives a power cut. The default.
	Full Synchronous = iota
	// Normal waits only at checkpoints: a crash of the process loses nothing,
	// but a power cut or a crash of the machine can lose the last commits that
	// were acknowledged (accepted jobs vanish, finished jobs run again). The
	// file stays sound.
	Normal
)

// Config is how a store is opened. The zero value is what most programs want.
type Config struct {
	Synchronous Synchronous
	// MaxJobs is how many live jobs are accepted. 0 = 50 million.
	MaxJobs int
	// MaxBytes bounds the database file; a tenth of it, at most 64 MiB, is
	// room for the work that drains it. 0 = only the volume bounds it.
	MaxBytes int64
	// KeepFree is how many bytes of the volume stay free for the work that
	// drains the store. 0 = 10 % of it or 2 GiB, the smaller, but on a small
	// volume at least a quarter of it, up to 32 MiB; -1 = none. Below it
	// succeeded and cancelled jobs make room before their time, counted.
	KeepFree int64
	// MustExist refuses to create the file.
	MustExist bool
	// NoMigrate refuses to change the schema: an older file is an error.
	NoMigrate bool
	// Clock is for the tests of this module.
	Clock clock.Source
}

const defaultMaxJobs = 50_000_000

func (c Config) withDefaults() Config {
	if c.MaxJobs == 0 {
		c.MaxJobs = defaultMaxJobs
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if c.MaxJobs < 0 {
		faults = append(faults, fmt.Errorf("MaxJobs is %d: want 1 or more, or 0 for %d", c.MaxJobs, defaultMaxJobs))
	}
	if c.MaxBytes < 0 || c.MaxBytes > 0 && c.MaxBytes < 1<<20 {
		faults = append(faults, fmt.Errorf("MaxBytes is %d: want at least 1 MiB, or 0 for no bound", c.MaxBytes))
	}
	if c.KeepFree < -1 {
		faults = append(faults, fmt.Errorf("KeepFree is %d: want bytes, 0 for the default, -1 for none", c.KeepFree))
	}
	if c.Synchronous != Full && c.Synchronous != Normal {
		faults = append(faults, fmt.Errorf("Synchronous is %d: want Full or Normal", c.Synchronous))
	}
	return errors.Join(faults...)
}

// Store is the embedded store. Its methods may be called from any number of
// goroutines. It owns no goroutine.
type Store struct {
	path   string
	cfg    Config
	w      *writer
	reads  *pool
	bus    bus
	room   room
	queues queueNames
	user   userDB
	closed atomic.Bool
	close  sync.Once
}

var _ settle.Store = (*Store)(nil)

// Open opens the database file at path, creates it if it does not exist, and
// brings its schema up to date. It refuses, with a [settle.RefusedError] that
// names the command that recovers, what it cannot be safe on: network file
// systems, damaged files, schemas of newer programs, files it may not write.
func Open(path string, config ...Config) (*Store, error) {
	var cfg Config
	if len(config) > 0 {
		cfg = config[0]
	}
	if err := errors.Join(cfg.validate(), single(config)); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := checkPath(path, abs, cfg.MustExist); err != nil {
		return nil, err
	}
	s := &Store{path: abs, cfg: cfg.withDefaults()}
	c, err := openConn(abs, s.cfg, zs.OpenReadWrite|zs.OpenCreate|zs.OpenURI)
	if err != nil {
		return nil, refuse(path, err)
	}
	s.path = followed(abs) // it exists now
	s.w = &writer{s: s, c: c, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	if err := s.start(path); err != nil {
		return nil, errors.Join(err, c.c.Close())
	}
	s.reads = newPool(s.path, s.cfg, s.w.gone)
	return s, nil
}

func single(config []Config) error {
	if len(config) > 1 {
		return errors.New("want at most one Config")
	}
	return nil
}

// start checks what the file holds and migrates it.
func (s *Store) start(path string) error {
	err := migrate(s.w, s.cfg.NoMigrate, path)
	if err == nil {
		err = writable(s.w.c)
	}
	return refuse(path, err)
}

// writable finds out about files that could be opened for reading only: there
// only a write says so. One that somebody writes to at this moment can be
// written.
func writable(d direct) error {
	_, err := d.exec("begin immediate")
	if err == nil {
		_, err = d.exec("update schema_version set oldest = oldest")
		_, end := d.exec("rollback")
		err = errors.Join(err, end)
	}
	if busy(err) {
		return nil
	}
	return err
}

// openConn opens one connection with our settings, and reads back those on
// which promises rest.
func openConn(abs string, cfg Config, flags zs.OpenFlags) (d direct, err error) {
	c, err := zs.OpenConn(fileURI(abs), flags)
	if err != nil {
		return d, err
	}
	c.SetBusyTimeout(0) // the writer waits by itself
	level := "full"
	if cfg.Synchronous == Normal {
		level = "normal"
	}
	d = newDirect(c)
	for _, p := range []string{
		"pragma busy_timeout = 20", "pragma journal_mode = wal", "pragma synchronous = " + level,
		"pragma cache_size = -65536", "pragma wal_autocheckpoint = 1000", "pragma journal_size_limit = 67108864",
		"pragma temp_store = memory", "pragma busy_timeout = 0",
	} {
		if err := patiently(func() error { return d.query(p, func(row) error { return nil }) }); err != nil {
			return d, errors.Join(err, c.Close())
		}
	}
	mode := ""
	_, err = one(d, "pragma journal_mode", func(r row) error { mode = r.text(0); return nil })
	got, err2 := number(d, "pragma synchronous")
	if err := errors.Join(err, err2); err != nil {
		return d, errors.Join(err, c.Close())
	}
	if mode != "wal" || got != int64(2-cfg.Synchronous) {
		return d, errors.Join(fmt.Errorf("journal_mode is %q and synchronous %d: the settings did not hold", mode, got), c.Close())
	}
	return d, nil
}

// Path returns the file's absolute path.
func (s *Store) Path() string { return s.path }

// Close ends the store. Calls under way are finished first; later ones get
// [settle.ErrClosed]. A second Close does nothing. Called inside InTx it ends
// with an error, and leaves the file to the process's end.
func (s *Store) Close() (err error) {
	s.close.Do(func() {
		s.closed.Store(true)
		close(s.w.gone)
		select {
		case s.w.turn <- struct{}{}: // for good
		case <-time.After(turnLimit):
			err = held()
			return
		}
		s.w.mu.Lock()
		for _, c := range s.w.todo {
			c.answer(settle.ErrClosed)
		}
		s.w.todo = nil
		s.w.mu.Unlock()
		err = errors.Join(s.user.close(), s.reads.close(), s.w.c.c.Close())
	})
	return err
}

// now reads the store's clock, in µs.
func (s *Store) now() int64 { return s.cfg.Clock.Now().UnixMicro() }

// Clock reads the store's clock: the machine's.
func (s *Store) Clock(context.Context) (time.Time, error) {
	return fromMicro(s.now()), nil
}

func fromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
