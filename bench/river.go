package main

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// Kind makes job the arguments of a River job.
func (job) Kind() string { return "noop" }

type riverQueue struct {
	database
	client *river.Client[*sql.Tx]
	worker *riverWorker
}

type riverWorker struct {
	river.WorkerDefaults[job]
	handle func(job)
}

// Work is called for every job.
func (w *riverWorker) Work(_ context.Context, j *river.Job[job]) error { w.handle(j.Args); return nil }

func openRiver(ctx context.Context, s spec) (*riverQueue, error) {
	d, err := openDatabase("sqlite", `select 1 from river_job where state in
		('available', 'running', 'retryable', 'scheduled', 'pending', 'discarded', 'cancelled')`, s)
	if err != nil {
		return nil, err
	}
	driver, logger := riversqlite.New(d.db), slog.New(slog.DiscardHandler)
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	q := &riverQueue{database: d, worker: &riverWorker{}}
	workers := river.NewWorkers()
	river.AddWorker(workers, q.worker)
	q.client, err = river.NewClient(driver, &river.Config{Logger: logger, Workers: workers,
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1000}}})
	return q, err
}

func (q *riverQueue) enqueue(ctx context.Context, j job) error {
	_, err := q.client.Insert(ctx, j, nil)
	return err
}

func (q *riverQueue) enqueueMany(ctx context.Context, js []job) error {
	params := make([]river.InsertManyParams, len(js))
	for i := range js {
		params[i].Args = js[i]
	}
	_, err := q.client.InsertManyFast(ctx, params)
	return err
}

func (q *riverQueue) start(ctx context.Context, handle func(job)) error {
	q.worker.handle = handle
	return q.client.Start(ctx)
}

func (q *riverQueue) stop(ctx context.Context) error { return q.client.Stop(ctx) }

// keep writes the rows that River leaves.
func (q *riverQueue) keep(ctx context.Context, n int) error {
	_, err := q.db.ExecContext(ctx, `with recursive c(i) as (select 1 union all select i + 1 from c where i < ?)
		insert into river_job (args, attempt, attempted_at, attempted_by, created_at, finalized_at, kind, max_attempts, state, scheduled_at)
		select jsonb(?), 1, datetime('now', 'subsec'), jsonb('["bench"]'), datetime('now', 'subsec'), datetime('now', 'subsec'),
			'noop', 25, 'completed', datetime('now', 'subsec') from c`, n, string(newJob("A").bytes()))
	return err
}
