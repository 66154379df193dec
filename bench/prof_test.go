package main

import (
	"context"
	"testing"

	"github.com/settle-go/settle/sqlite"
)

func BenchmarkSteady(b *testing.B) {
	for range b.N {
		r, err := steady(context.Background(), b.TempDir(), sqlite.Normal, 200_000)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r[0].value, "jobs/s")
	}
}

func BenchmarkWorkOff(b *testing.B) {
	for range b.N {
		r, err := workOff(context.Background(), b.TempDir(), sqlite.Normal, 200_000)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r[0].value, "jobs/s")
	}
}
