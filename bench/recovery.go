package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/worker"
)

// atWork is how many jobs a worker process holds when it is killed: all its
// slots.
const atWork = 64

// measureRecovery: a worker process is killed with SIGKILL while every slot
// runs a job. Another process works on. Until when do the jobs run again?
func measureRecovery(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	config, allowed := recoveryConfig(s)
	if err := q.enqueueMany(ctx, newJobs(atWork, "A")); err != nil {
		return nil, err
	}
	began, err := killedWorker(ctx, s)
	if err != nil {
		return nil, err
	}
	again := make(chan time.Duration, 2*atWork)
	sq := q.(*settleQueue)
	sq.config = config
	if err := q.start(ctx, func(job) { again <- time.Since(began) }); err != nil {
		return nil, err
	}
	v := map[string]float64{bound: allowed.Seconds()}
	for i := range atWork {
		select {
		case t := <-again:
			if i == 0 {
				v[first] = t.Seconds()
			}
			v[last] = t.Seconds()
		case <-time.After(2 * allowed):
			return nil, stopped(q, fmt.Errorf("%d of %d jobs run again", i, atWork))
		}
	}
	err = until(ctx, "wait for outcomes", func() (bool, error) { n, err := q.left(ctx, 1, nil); return n == 0, err })
	return v, stopped(q, err)
}

// killedWorker starts a worker process, waits until all jobs run in it, and
// kills it. It returns when that was.
func killedWorker(ctx context.Context, s spec) (time.Time, error) {
	self, err := os.Executable()
	if err != nil {
		return time.Time{}, err
	}
	kind := "victim"
	if s.Shipped {
		kind = "shipped victim"
	}
	c := exec.CommandContext(ctx, self, "-child", kind, "-file", s.Path)
	c.Stderr = os.Stderr
	if _, err = c.StdinPipe(); err != nil { // its end ends the victim if we die
		return time.Time{}, err
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return time.Time{}, err
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	killed := time.Now()
	err = errors.Join(err, c.Process.Kill())
	_ = c.Wait() // it was killed
	return killed, err
}

// victim is the worker process that is killed: handlers that never end.
func victim(ctx context.Context, path string, shipped bool) error {
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(1) }()
	q, err := openSettle(spec{Path: path, Level: full})
	if err != nil {
		return err
	}
	config, _ := recoveryConfig(spec{Shipped: shipped})
	var running atomic.Int64
	w := worker.New(q.store, config)
	worker.Handle(w, noop, func(ctx context.Context, _ *worker.Job[job]) (settle.None, error) {
		if running.Add(1) == atWork {
			fmt.Println("all run")
		}
		<-ctx.Done()
		return settle.None{}, ctx.Err()
	})
	return w.Run(ctx)
}
