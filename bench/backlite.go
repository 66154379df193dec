package main

import (
	"context"
	"time"

	"github.com/mikestefanello/backlite"
)

// retain is set before a client is made: backlite asks the zero task.
var retain bool

// Config makes job a backlite task.
func (job) Config() backlite.QueueConfig {
	c := backlite.QueueConfig{Name: "noop", MaxAttempts: 3, Timeout: 30 * time.Second}
	if retain {
		c.Retention = &backlite.Retention{Data: &backlite.RetainData{}}
	}
	return c
}

type backliteQueue struct {
	database
	client *backlite.Client
	handle func(job)
	cancel context.CancelFunc
}

func openBacklite(s spec) (*backliteQueue, error) {
	d, err := openDatabase("sqlite3", "select 1 from backlite_tasks", s)
	if err != nil {
		return nil, err
	}
	q := &backliteQueue{database: d}
	retain = s.Kept > 0
	q.client, err = backlite.NewClient(backlite.ClientConfig{DB: d.db, NumWorkers: 1000,
		ReleaseAfter: 10 * time.Minute, CleanupInterval: time.Hour})
	if err != nil {
		return nil, err
	}
	q.client.Register(backlite.NewQueue(func(_ context.Context, j job) error { q.handle(j); return nil }))
	return q, q.client.Install()
}

func (q *backliteQueue) enqueue(ctx context.Context, j job) error {
	_, err := q.client.Add(j).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) enqueueMany(ctx context.Context, js []job) error {
	tasks := make([]backlite.Task, len(js))
	for i := range js {
		tasks[i] = js[i]
	}
	_, err := q.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) start(ctx context.Context, handle func(job)) error {
	q.handle = handle
	ctx, q.cancel = context.WithCancel(ctx)
	q.client.Start(ctx)
	return nil
}

// stop gives it a moment only: when tasks are claimed but not yet handed out,
// its Stop waits for workers that have gone. All measurements have read back
// what counts by now.
func (q *backliteQueue) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	q.client.Stop(ctx)
	q.cancel()
	return nil
}

// keep writes the rows that its retention leaves.
func (q *backliteQueue) keep(ctx context.Context, n int) error {
	_, err := q.db.ExecContext(ctx, `with recursive c(i) as (select 1 union all select i + 1 from c where i < ?)
		insert into backlite_tasks_completed (id, created_at, queue, last_executed_at, attempts, last_duration_micro, succeeded, task)
		select printf('00000000-0000-7000-0000-%012d', i), ?, 'noop', ?, 1, 10, 1, ? from c`,
		n, time.Now().UnixMilli(), time.Now().UnixMilli(), newJob("A").bytes())
	return err
}
