package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// measureWork: workers on a backlog, no producer, until all has ended or the
// window is over. Only what is read back as ended counts.
func measureWork(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	var handled atomic.Int64
	m := startMeter()
	if err := q.start(ctx, func(job) { handled.Add(1) }); err != nil {
		return nil, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for handled.Load() < int64(s.Backlog) && m.runs(s.Window) && ctx.Err() == nil {
		<-tick.C
	}
	var left int
	var err error
	if handled.Load() < int64(s.Backlog) {
		left, err = q.left(ctx, unlimited, m.stop)
	} else {
		err = until(ctx, "wait for outcomes", func() (bool, error) { n, err := q.left(ctx, 1, m.stop); return n == 0, err })
	}
	v := m.values(s.Backlog - left)
	return v, stopped(q, err)
}

// measureFlow: producers beside workers. In the steady state producers pause
// above a number of jobs in flight; in saturation they never do. It begins with
// half of that waiting, and counts after a time in which the two come to terms.
// A job counts that was enqueued and ended: the rate is that of the slower side.
func measureFlow(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	handle, admit := gate(s)
	if err := q.start(ctx, handle); err != nil {
		return nil, err
	}
	var acknowledged atomic.Int64
	over, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- produce(ctx, s, q, &acknowledged, func() bool { return admit(over) }) }()
	time.Sleep(s.Window / 2)
	m := startMeter()
	var in0, in int64
	left0, err := q.left(ctx, unlimited, func() { in0 = acknowledged.Load(); m.start() })
	time.Sleep(s.Window)
	left, err1 := q.left(ctx, unlimited, func() { in = acknowledged.Load(); m.stop() })
	came := int(in - in0)
	v := m.values(max(min(came, came-(left-left0)), 0))
	v[enqueued] = float64(came) / m.seconds()
	close(over)
	return v, stopped(q, errors.Join(err, err1, <-done))
}

// gate returns the handler and what producers ask before each enqueue: it
// waits while InFlight jobs are on their way, and says no when it is over.
func gate(s spec) (handle func(job), admit func(over <-chan struct{}) bool) {
	if s.InFlight == 0 {
		return func(job) {}, func(over <-chan struct{}) bool {
			select {
			case <-over:
				return false
			default:
				return true
			}
		}
	}
	room := make(chan struct{}, s.InFlight) // one token per job in flight
	for range s.Backlog {
		room <- struct{}{}
	}
	handle = func(job) {
		select {
		case <-room:
		default: // it ran twice
		}
	}
	return handle, func(over <-chan struct{}) bool {
		select {
		case room <- struct{}{}:
			return true
		case <-over:
			return false
		}
	}
}
