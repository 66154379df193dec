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
	"syscall"
	"time"
)

// measures are what a child can do with an open queue.
var measures = map[string]func(context.Context, spec, queue) (map[string]float64, error){
	"fill":     measureFill,
	"enqueue":  measureEnqueue,
	"work":     measureWork,
	"flow":     measureFlow,
	"latency":  measureLatency,
	"fairness": measureFairness,
	"recovery": measureRecovery,
	"burst":    measureBurst,
	"answers":  measureAnswers,
}

// child makes one measurement: the spec comes as an argument, the line goes to
// stdout.
func child(ctx context.Context, arg, path string) error {
	l := line{}
	if err := json.Unmarshal([]byte(arg), &l.spec); err != nil {
		return err
	}
	l.Path = path
	values, err := one(ctx, l.spec, &l.Durability)
	if err != nil {
		return err
	}
	l.Values = values
	l.Values[rss] = maxRSS()
	return json.NewEncoder(os.Stdout).Encode(l)
}

func one(ctx context.Context, s spec, found *string) (values map[string]float64, err error) {
	if s.Queue == "floor" {
		return measureFloor(ctx, s, found)
	}
	q, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	if *found, err = q.durability(ctx); err != nil {
		return nil, err
	}
	if s.Do != "fill" && !strings.HasSuffix(*found, " "+s.Level) {
		return nil, fmt.Errorf("durability is %s, want %s", *found, s.Level)
	}
	return measures[s.Do](ctx, s, q)
}

// meter measures from its start: time, CPU of this process, flushes of the
// machine's disks.
type meter struct{ began, ended reading }

type reading struct {
	time    time.Time
	cpu     time.Duration
	flushed float64
}

func read() reading { return reading{time.Now(), cpuTime(), diskFlushes()} }

func startMeter() *meter {
	runtime.GC()
	return &meter{began: read()}
}

func (m *meter) start() { m.began = read() }
func (m *meter) stop()  { m.ended = read() }

// runs tells whether it has run for less than d.
func (m *meter) runs(d time.Duration) bool { return time.Since(m.began.time) < d }

// seconds is what it measured.
func (m *meter) seconds() float64 { return m.ended.time.Sub(m.began.time).Seconds() }

// values tells what n jobs took from start to stop.
func (m *meter) values(n int) map[string]float64 {
	jobs := float64(n)
	v := map[string]float64{perSecond: jobs / m.seconds()}
	if n > 0 {
		v[cpuPerJob] = float64((m.ended.cpu - m.began.cpu).Microseconds()) / jobs
		v[flushes] = (m.ended.flushed - m.began.flushed) / jobs
	}
	return v
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// maxRSS is the largest resident size so far, in MB. Linux tells it per program
// in /proc; rusage would count what the parent had before it.
func maxRSS() float64 {
	b, _ := os.ReadFile("/proc/self/status")
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) == 3 && f[0] == "VmHWM:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}

// diskFlushes counts the flushes that the disks of this machine were asked for,
// by whomever: a witness of durability that no library can talk into anything.
// 0 where the system does not tell.
func diskFlushes() (sum float64) {
	b, _ := os.ReadFile("/proc/diskstats")
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) > 18 {
			n, _ := strconv.ParseFloat(f[18], 64) // 0 for partitions
			sum += n
		}
	}
	return sum
}

// until waits for a condition that ctx bounds.
func until(ctx context.Context, what string, met func() (bool, error)) error {
	for {
		ok, err := met()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// stopped ends the workers and joins what went wrong.
func stopped(q queue, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return errors.Join(err, q.stop(ctx))
}
