package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

// Benchmarks for profiles (-cpuprofile): settle alone, in this process.

func BenchmarkSteady(b *testing.B) {
	profile(b, spec{Do: "flow", Callers: 50, InFlight: 2000, Window: 5 * time.Second})
}

func BenchmarkWorkOff(b *testing.B) {
	profile(b, spec{Do: "work", Backlog: 200_000, Window: time.Minute})
}

func profile(b *testing.B, s spec) {
	ctx := context.Background()
	for range b.N {
		s.Queue, s.Level, s.Path = "settle", normal, filepath.Join(b.TempDir(), "bench.db")
		q, err := open(ctx, s)
		if err != nil {
			b.Fatal(err)
		}
		if err := fill(ctx, q, s.Backlog); err != nil {
			b.Fatal(err)
		}
		v, err := measures[s.Do](ctx, s, q)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(v[perSecond], "jobs/s")
		b.ReportMetric(v[cpuPerJob], "cpu-µs/job")
		if err := q.close(); err != nil {
			b.Fatal(err)
		}
	}
}
