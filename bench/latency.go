package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// pause between two enqueues of the latency rows: 50 jobs a second.
const pause = 20 * time.Millisecond

// warmUp is how many of the first calls are not counted.
const warmUp = 10

// paced calls step 50 times a second.
func paced(ctx context.Context, window time.Duration, step func() error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range int(window/pause) + warmUp {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// quantiles leaves the warm-up out.
func quantiles(took []float64) map[string]float64 {
	if len(took) <= warmUp {
		return map[string]float64{}
	}
	v := slices.Sorted(slices.Values(took[warmUp:]))
	at := func(q float64) float64 { return v[min(int(q*float64(len(v))), len(v)-1)] }
	return map[string]float64{p50: at(0.50), p99: at(0.99), longest: v[len(v)-1]}
}

// measureLatency: from the enqueue call to the handler's first line, at 50 jobs
// a second.
func measureLatency(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	n := int(s.Window/pause) + warmUp
	started := make(chan float64, 2*n)
	if err := q.start(ctx, func(j job) { started <- ms(time.Duration(time.Now().UnixNano() - j.T)) }); err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond) // workers that poll have begun to
	m := startMeter()
	err := paced(ctx, s.Window, func() error { return q.enqueue(ctx, newJob("A")) })
	var took []float64
	for err == nil && len(took) < n {
		select {
		case t := <-started:
			took = append(took, t)
		case <-time.After(10 * time.Second):
			err = fmt.Errorf("%d of %d jobs have started", len(took), n)
		}
	}
	v := quantiles(took)
	m.stop()
	v[cpuPerJob] = m.values(n)[cpuPerJob]
	if err == nil {
		err = until(ctx, "wait for outcomes", func() (bool, error) { n, err := q.left(ctx, 1, nil); return n == 0, err })
	}
	return v, stopped(q, err)
}

// measureFairness: workers are busy with a backlog of tenant A; one job of
// tenant B comes. If it has not started when the window is over, the window is
// a lower bound.
func measureFairness(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	busy, started := make(chan struct{}, 1), make(chan float64, 1)
	err := q.start(ctx, func(j job) {
		if j.Tenant == "B" {
			started <- ms(time.Duration(time.Now().UnixNano() - j.T))
			return
		}
		select {
		case busy <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	<-busy
	time.Sleep(20 * time.Millisecond)
	if err := q.enqueue(ctx, newJob("B")); err != nil {
		return nil, stopped(q, err)
	}
	v := map[string]float64{wait: ms(s.Window), overdue: 1}
	select {
	case t := <-started:
		v[wait], v[overdue] = t, 0
	case <-time.After(s.Window):
	}
	return v, stopped(q, nil)
}
