package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
	"github.com/settle-go/settle/worker"
)

var noop = settle.Define[job, settle.None]("bench.noop", settle.Policy{})

type settleQueue struct {
	store  *sqlite.Store
	reader *zs.Conn // for left
	client *settle.Client
	config worker.Config
	cancel context.CancelFunc
	ended  chan error
}

func openSettle(s spec) (*settleQueue, error) {
	level := sqlite.Full
	if s.Level == normal {
		level = sqlite.Normal
	}
	store, err := sqlite.Open(s.Path, sqlite.Config{Synchronous: level})
	if err != nil {
		return nil, err
	}
	reader, err := zs.OpenConn(s.Path, zs.OpenReadOnly|zs.OpenWAL)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &settleQueue{store: store, reader: reader, client: settle.NewClient(store),
		config: worker.Config{Slots: s.Slots, Logger: slog.New(slog.DiscardHandler)}}, nil
}

func (q *settleQueue) enqueue(ctx context.Context, j job) error {
	_, err := noop.Enqueue(ctx, q.client, j, settle.EnqueueOpts{Tenant: j.Tenant})
	return err
}

func (q *settleQueue) enqueueMany(ctx context.Context, js []job) error {
	batch := make([]settle.New, len(js))
	for i, j := range js {
		batch[i] = noop.New(j, settle.EnqueueOpts{Tenant: j.Tenant})
	}
	_, err := q.client.Enqueue(ctx, batch...)
	return err
}

func (q *settleQueue) start(ctx context.Context, handle func(job)) error {
	w := worker.New(q.store, q.config)
	worker.Handle(w, noop, func(_ context.Context, j *worker.Job[job]) (settle.None, error) {
		handle(j.In)
		return settle.None{}, nil
	})
	ctx, q.cancel = context.WithCancel(ctx)
	q.ended = make(chan error, 1)
	go func() { q.ended <- w.Run(ctx) }()
	return nil
}

func (q *settleQueue) stop(ctx context.Context) error {
	q.cancel()
	select {
	case err := <-q.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// left reads on a connection of its own (of the same SQLite library: another
// would drop the file's locks). Store.Counts would count the ended ones too.
func (q *settleQueue) left(_ context.Context, limit int, at func()) (n int, err error) {
	if at != nil {
		at() // the statement sees what was committed before it
	}
	const query = `select (select count(*) from (select 1 from live limit ?1)) + (select count(*) from ended where state = 4)`
	err = sqlitex.Execute(q.reader, query, &sqlitex.ExecOptions{Args: []any{limit},
		ResultFunc: func(r *zs.Stmt) error { n = r.ColumnInt(0); return nil }})
	return n, err
}

// durability reads the connection of callers' transactions. The writer's own
// is not to be had from outside; [sqlite.Open] itself reads it back and refuses
// another level. The disk flushes per job tell for both.
func (q *settleQueue) durability(ctx context.Context) (found string, err error) {
	err = q.store.InTx(ctx, func(tx *sql.Tx) (err error) {
		found, err = durability(func(query string, into any) error { return tx.QueryRowContext(ctx, query).Scan(into) })
		return err
	})
	return found, err
}

// keep enqueues n jobs and works them off.
func (q *settleQueue) keep(ctx context.Context, n int) error {
	if err := fill(ctx, q, n); err != nil {
		return err
	}
	w := q.config
	q.config.UntilIdle = true
	defer func() { q.config = w }()
	if err := q.start(ctx, func(job) {}); err != nil {
		return err
	}
	if err := <-q.ended; err != nil {
		return err
	}
	q.cancel()
	if left, err := q.left(ctx, 1, nil); err != nil || left > 0 {
		return errors.Join(fmt.Errorf("%d jobs have not ended", left), err)
	}
	return nil
}

func (q *settleQueue) close() error { return errors.Join(q.reader.Close(), q.store.Close()) }

// recoveryConfig is the worker of the recovery measurement, and the time that
// its settings allow. A shorter lease would not show: a process that has just
// started believes other leases for [settle.RenewInterval].
func recoveryConfig(s spec) (worker.Config, time.Duration) {
	c := worker.Config{Lease: settle.RenewInterval, Sweep: 500 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	if s.Shipped {
		c.Lease, c.Sweep = 30*time.Second, settle.SweepInterval
	}
	return c, c.Lease + c.Sweep + noop.Policy().BackoffMin + time.Second
}
