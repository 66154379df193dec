package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
	"github.com/settle-go/settle/worker"
)

// Remote steps: jobs are parked, a node's answers come, and each job is settled.
// The answers go to the hub as an inbox would bring them: whatever has come since
// the last ones were committed, in one call.

var step = settle.Define[job, int]("bench.step", settle.Policy{Wait: 12 * time.Hour})

// numbered ids need no memory, however many there are.
func numbered(what string, i int) settle.ID {
	return settle.DeriveID([]byte(what), []byte(strconv.Itoa(i)))
}

// waits are parked jobs, and what has become of them.
type waits struct {
	q       *settleQueue
	hub     *remote.Hub
	worker  *worker.Worker
	settled chan time.Duration // from the answer on
	sent    sync.Map           // job → when its answer came
}

func newWaits(q *settleQueue) (*waits, error) {
	w := &waits{q: q, settled: make(chan time.Duration, 1<<20)}
	var err error
	w.hub, err = remote.New(q.store, remote.Config{Callback: "http://127.0.0.1:1/answers", Secrets: [][]byte{[]byte(strings.Repeat("k", 32))}})
	if err != nil {
		return nil, err
	}
	pool, err := w.hub.Pool("bench", remote.PoolConfig{Nodes: []remote.Node{{Name: "n"}},
		Submit: func(context.Context, remote.Submission) error { return nil }})
	if err != nil {
		return nil, err
	}
	w.worker = worker.New(q.store, q.config)
	remote.Handle(w.worker, step, pool, remote.Step{})
	w.worker.Listen(worker.Events{Settled: func(s worker.Settled) {
		if at, ok := w.sent.LoadAndDelete(s.Job); ok && s.Transition.To == settle.Succeeded && s.Applied == settle.Done {
			w.settled <- time.Since(at.(time.Time))
		} else if ok {
			w.sent.Store(s.Job, at)
		}
	}})
	return w, nil
}

// park stores n jobs that wait for an answer.
func (w *waits) park(ctx context.Context, from, n int) error {
	const most = 1000
	for lo := from; lo < from+n; lo += most {
		var news []settle.New
		for i := lo; i < min(lo+most, from+n); i++ {
			news = append(news, step.New(newJob("A"), settle.EnqueueOpts{ID: numbered("job", i)}))
		}
		if _, err := w.q.store.Insert(ctx, news...); err != nil {
			return err
		}
		got, err := w.q.store.Claim(ctx, settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: []string{step.Name()}, Limit: most, Lease: time.Minute, Worker: 7})
		if err != nil || len(got.Jobs) != len(news) {
			return errors.Join(err, fmt.Errorf("%d of %d jobs claimed", len(got.Jobs), len(news)))
		}
		at := map[settle.ID]int{}
		for i := range news {
			at[numbered("job", lo+i)] = lo + i
		}
		var moves []settle.Transition
		for _, j := range got.Jobs {
			t := settle.Decide(j.Snapshot, settle.Parked{Wait: settle.Wait{Ticket: numbered("ticket", at[j.ID]), Step: step.Name(), Node: "n", Pool: "bench"}}, j.Policy, 0)
			t.Fence.Handle = j.Handle
			moves = append(moves, t)
		}
		if _, err := w.q.store.Apply(ctx, moves); err != nil {
			return err
		}
	}
	return nil
}

// answer brings the answers to some jobs at once.
func (w *waits) answer(ctx context.Context, which ...int) error {
	in := make([]remote.Incoming, len(which))
	for k, i := range which {
		in[k] = remote.Incoming{Job: numbered("job", i), Attempt: numbered("ticket", i)}
		in[k].Doc, _ = json.Marshal(map[string]any{"v": 1, "job": in[k].Job, "step": step.Name(), "attempt": in[k].Attempt, "node": "n", "status": "done", "output": i})
		w.sent.Store(in[k].Job, time.Now())
	}
	done, err := w.hub.Deliver(ctx, in)
	for i := range done {
		if !done[i] {
			return fmt.Errorf("an answer was not taken")
		}
	}
	return err
}

func (w *waits) run(ctx context.Context) {
	ctx, w.q.cancel = context.WithCancel(ctx)
	w.q.ended = make(chan error, 1)
	go func() { w.q.ended <- w.worker.Run(ctx) }()
}

// gather waits until n jobs have been settled, and returns in how many ms each.
func (w *waits) gather(ctx context.Context, n int) (took []float64, err error) {
	for len(took) < n {
		select {
		case d := <-w.settled:
			took = append(took, ms(d))
		case <-time.After(20 * time.Second):
			return took, fmt.Errorf("%d of %d jobs are settled", len(took), n)
		case <-ctx.Done():
			return took, context.Cause(ctx)
		}
	}
	return took, nil
}

func openWaits(ctx context.Context, s spec, q queue) (*waits, error) {
	w, err := newWaits(q.(*settleQueue))
	if err == nil {
		err = w.park(ctx, 0, s.Backlog)
	}
	return w, err
}

// measureBurst: what parked waits cost while nothing comes, then all answers at
// once.
func measureBurst(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	w, err := openWaits(ctx, s, q)
	if err != nil {
		return nil, err
	}
	w.run(ctx)
	time.Sleep(time.Second) // its loops have begun
	idle := startMeter()
	time.Sleep(s.Window)
	idle.stop()
	v := map[string]float64{gos: float64(runtime.NumGoroutine()), sockets: openSockets(),
		idleCPU: 100 * (idle.ended.cpu - idle.began.cpu).Seconds() / idle.seconds()}
	which := make([]int, s.Backlog)
	for i := range which {
		which[i] = i
	}
	began := time.Now()
	for lo := 0; lo < len(which) && err == nil; lo += 500 {
		err = w.answer(ctx, which[lo:min(lo+500, len(which))]...)
	}
	if err == nil {
		_, err = w.gather(ctx, s.Backlog)
	}
	v[burst] = ms(time.Since(began))
	return v, stopped(q, err)
}

// measureAnswers: answers come at a pace to jobs that wait among many others.
func measureAnswers(ctx context.Context, s spec, q queue) (map[string]float64, error) {
	w, err := openWaits(ctx, s, q)
	if err != nil {
		return nil, err
	}
	w.run(ctx)
	time.Sleep(time.Second)
	n := int(s.Window.Seconds() * float64(s.Rate))
	m := startMeter()
	next := 0
	for next < n && err == nil {
		due := min(int(time.Since(m.began.time).Seconds()*float64(s.Rate)), n)
		if due == next {
			time.Sleep(time.Second / time.Duration(2*s.Rate))
			continue
		}
		var which []int
		for ; next < due; next++ {
			which = append(which, next*(s.Backlog/n))
		}
		err = w.answer(ctx, which...)
	}
	m.stop()
	var took []float64
	if err == nil {
		took, err = w.gather(ctx, n)
	}
	v := quantiles(took)
	v[gos] = float64(runtime.NumGoroutine())
	return v, stopped(q, err)
}

// openSockets counts the connections of this process.
func openSockets() (n float64) {
	links, _ := os.ReadDir("/proc/self/fd")
	for _, l := range links {
		if to, _ := os.Readlink("/proc/self/fd/" + l.Name()); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
