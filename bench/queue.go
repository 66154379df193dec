package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // "sqlite3"
	_ "modernc.org/sqlite"          // "sqlite"
)

// queue is what is compared. One program uses one queue for both sides, as the
// documentation of each of them shows it.
type queue interface {
	enqueue(ctx context.Context, j job) error
	// enqueueMany stores jobs in one transaction.
	enqueueMany(ctx context.Context, js []job) error
	// start runs workers that call handle for every job.
	start(ctx context.Context, handle func(job)) error
	// stop ends them; what they have handled is stored when it returns.
	stop(ctx context.Context) error
	// left counts, up to a limit, jobs in the database that have not ended well.
	// at, if not nil, is called at the instant for which that is true: it may
	// have to wait for a connection first.
	left(ctx context.Context, limit int, at func()) (int, error)
	// durability reads journal mode and synchronous level back.
	durability(ctx context.Context) (string, error)
	// keep puts n ended jobs into the database.
	keep(ctx context.Context, n int) error
	close() error
}

// unlimited counts all.
const unlimited = 1 << 30

// open opens a queue on the file, with its schema brought up to date.
func open(ctx context.Context, s spec) (queue, error) {
	switch s.Queue {
	case "settle":
		return openSettle(s)
	case "backlite":
		return openBacklite(s)
	case "goqite":
		return openGoqite(ctx, s)
	case "River":
		return openRiver(ctx, s)
	}
	return nil, fmt.Errorf("unknown queue %q", s.Queue)
}

// peers are all queues but ours, and how each is set up: the best that their
// documentation and a sweep of their settings gave.
var peers = []string{"backlite", "goqite", "River"}

var setups = map[string]string{
	"settle": "every setting at its default but `Synchronous` (64 slots); ended jobs are kept",
	"backlite": "0.6.0, mattn/go-sqlite3 (cgo), pool of 1, 1000 workers (100: a tenth of the speed; its default pool: a sixth); " +
		"deletes what has ended, but in the row with kept jobs, where its retention is on",
	"goqite": "0.4.0, mattn/go-sqlite3 (cgo), pool of 1, runner with limit 100, poll 1 ms; deletes what has ended; " +
		"has no call for many jobs: batches are its `CreateTx` in one transaction",
	"River": "0.51.2, riversqlite on modernc.org/sqlite, pool of 1, 1000 workers, fetch cooldown 2 ms, poll 20 ms, `InsertManyFast`; " +
		"ended jobs are kept",
}

// database is what the peers on database/sql have in common.
type database struct {
	db      *sql.DB
	waiting string // selects the rows that have not ended
}

// openDatabase opens a pool of one connection: WAL and a busy timeout of 5 s as
// the peers' documentation has it. Two things that only we add make peers
// faster, or no slower: a page cache as large as settle's, and prepared
// statements that are kept (about a tenth less CPU), where the driver can.
func openDatabase(driver, waiting string, s spec) (database, error) {
	path := (&url.URL{Path: s.Path}).EscapedPath()
	dsn := fmt.Sprintf("file:%s?_journal=WAL&_timeout=5000&_fk=true&_sync=%s&_cache_size=-65536&_stmt_cache_size=32", path, s.Level)
	if driver == "sqlite" {
		dsn = fmt.Sprintf("file:%s?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(%s)&_pragma=cache_size(-65536)",
			path, s.Level)
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return database{}, err
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return database{db, waiting}, db.Ping()
}

func (d database) left(ctx context.Context, limit int, at func()) (n int, err error) {
	c, err := d.db.Conn(ctx) // the only one: nothing moves while we have it
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if at != nil {
		at()
	}
	err = c.QueryRowContext(ctx, "select count(*) from ("+d.waiting+" limit ?)", limit).Scan(&n)
	return n, err
}

func (d database) durability(ctx context.Context) (string, error) {
	return durability(func(query string, into any) error { return d.db.QueryRowContext(ctx, query).Scan(into) })
}

func (d database) close() error { return d.db.Close() }

// durability reads the two settings that decide what a power cut may take.
func durability(read func(query string, into any) error) (string, error) {
	var mode string
	var level int
	err := errors.Join(read("pragma journal_mode", &mode), read("pragma synchronous", &level))
	if err != nil {
		return "", err
	}
	names := []string{"OFF", normal, full, "EXTRA"}
	return strings.ToUpper(mode) + ", synchronous " + names[level], nil
}

// inTransaction runs fn in one.
func (d database) inTransaction(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// stopLimit is how long workers may take to stop.
const stopLimit = 20 * time.Second
