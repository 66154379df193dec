package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// fillBatch is how many jobs one call brings when a file is filled.
const fillBatch = 5000

// fill enqueues n jobs of tenant A.
func fill(ctx context.Context, q queue, n int) error {
	for done := 0; done < n; done += fillBatch {
		if err := q.enqueueMany(ctx, newJobs(min(fillBatch, n-done), "A")); err != nil {
			return err
		}
	}
	return nil
}

// measureFill makes a file that other measurements start from: kept jobs
// first, then the backlog.
func measureFill(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	if s.Kept > 0 {
		if err := q.keep(ctx, s.Kept); err != nil {
			return nil, err
		}
	}
	m := startMeter()
	if err := fill(ctx, q, s.Backlog); err != nil {
		return nil, err
	}
	m.stop()
	left, err := q.left(ctx, unlimited, nil)
	if err == nil && left != s.Backlog {
		err = fmt.Errorf("%d jobs in the file, want %d", left, s.Backlog)
	}
	return m.values(s.Backlog), err
}

// measureEnqueue: so many callers, one by one or in batches, no worker.
func measureEnqueue(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	m := startMeter()
	var acknowledged atomic.Int64
	if err := produce(ctx, s, q, &acknowledged, func() bool { return m.runs(s.Window) }); err != nil {
		return nil, err
	}
	m.stop()
	n := int(acknowledged.Load())
	v := m.values(n)
	left, err := q.left(ctx, unlimited, nil)
	if err == nil && left != n {
		err = fmt.Errorf("%d jobs in the file, %d were acknowledged", left, n)
	}
	return v, err
}

// produce enqueues from all callers while more says so, and counts jobs that
// were acknowledged.
func produce(ctx context.Context, s spec, q queue, acknowledged *atomic.Int64, more func() bool) error {
	var wg sync.WaitGroup
	faults := make([]error, s.Callers)
	for i := range s.Callers {
		wg.Go(func() {
			for faults[i] == nil && more() {
				if s.Batch > 1 {
					faults[i] = q.enqueueMany(ctx, newJobs(s.Batch, "A"))
				} else {
					faults[i] = q.enqueue(ctx, newJob("A"))
				}
				if faults[i] == nil {
					acknowledged.Add(int64(max(s.Batch, 1)))
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}
