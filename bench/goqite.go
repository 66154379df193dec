package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

// schemaVar tells children where goqite's schema lies: its documentation has
// users run that file, and we keep no copy.
const schemaVar = "BENCH_GOQITE_SCHEMA"

// findGoqiteSchema asks the Go tool for the module's folder.
func findGoqiteSchema(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "maragu.dev/goqite").Output()
	if err != nil {
		return "", errors.Join(errors.New("find goqite's schema: run this in the folder bench"), err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "schema_sqlite.sql"), nil
}

type goqiteQueue struct {
	database
	queue  *goqite.Queue
	cancel context.CancelFunc
	ended  chan struct{}
}

func openGoqite(ctx context.Context, s spec) (*goqiteQueue, error) {
	d, err := openDatabase("sqlite3", "select 1 from goqite", s)
	if err != nil {
		return nil, err
	}
	var tables int
	err = d.db.QueryRowContext(ctx, "select count(*) from sqlite_schema where name = 'goqite'").Scan(&tables)
	if err == nil && tables == 0 {
		var schema []byte
		if schema, err = os.ReadFile(os.Getenv(schemaVar)); err == nil {
			_, err = d.db.ExecContext(ctx, string(schema))
		}
	}
	if err != nil {
		return nil, err
	}
	return &goqiteQueue{database: d, queue: goqite.New(goqite.NewOpts{DB: d.db, Name: "jobs", Timeout: time.Minute})}, nil
}

func (q *goqiteQueue) enqueue(ctx context.Context, j job) error {
	_, err := jobs.Create(ctx, q.queue, "noop", goqite.Message{Body: j.bytes()})
	return err
}

func (q *goqiteQueue) enqueueMany(ctx context.Context, js []job) error {
	return q.inTransaction(ctx, func(tx *sql.Tx) error {
		for _, j := range js {
			if _, err := jobs.CreateTx(ctx, tx, q.queue, "noop", goqite.Message{Body: j.bytes()}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (q *goqiteQueue) start(ctx context.Context, handle func(job)) error {
	r := jobs.NewRunner(jobs.NewRunnerOpts{Limit: 100, PollInterval: time.Millisecond, Queue: q.queue})
	r.Register("noop", func(_ context.Context, m []byte) error {
		var j job
		if err := json.Unmarshal(m, &j); err != nil {
			return err
		}
		handle(j)
		return nil
	})
	ctx, q.cancel = context.WithCancel(ctx)
	q.ended = make(chan struct{})
	go func() { r.Start(ctx); close(q.ended) }()
	return nil
}

func (q *goqiteQueue) stop(ctx context.Context) error {
	q.cancel()
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return errors.New("goqite did not stop in time")
	}
}

func (q *goqiteQueue) keep(context.Context, int) error {
	return errors.New("goqite keeps no jobs that have ended")
}
