package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEveryMeasurement makes each measurement of each queue once, as small as
// it gets.
func TestEveryMeasurement(t *testing.T) {
	ctx := context.Background()
	schema, err := findGoqiteSchema(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(schemaVar, schema)
	for _, s := range []spec{
		{Do: "enqueue", Callers: 3, Window: 30 * time.Millisecond},
		{Do: "enqueue", Callers: 1, Batch: 10, Window: 30 * time.Millisecond},
		{Do: "work", Backlog: 200, Window: 5 * time.Second},
		{Do: "flow", Callers: 5, InFlight: 20, Backlog: 10, Window: 100 * time.Millisecond},
		{Do: "latency", Window: 100 * time.Millisecond},
		{Do: "fairness", Backlog: 2000, Window: 300 * time.Millisecond},
	} {
		for _, queue := range append([]string{"settle"}, peers...) {
			t.Run(s.Do+" "+queue, func(t *testing.T) {
				s.Queue, s.Level, s.Path = queue, normal, filepath.Join(t.TempDir(), "bench.db")
				if s.Backlog > 0 {
					f := s
					f.Do = "fill"
					if _, err := one(ctx, f, new(string)); err != nil {
						t.Fatal(err)
					}
				}
				var found string
				v, err := one(ctx, s, &found)
				if err != nil || len(v) == 0 || !strings.Contains(found, normal) {
					t.Errorf("%v, %v, %q", v, err, found)
				}
			})
		}
	}
}

// TestReport: ratios are of medians, bars are judged, what failed is named,
// notes survive, charts are well formed.
func TestReport(t *testing.T) {
	var lines []line
	for round, x := range []float64{900, 1000, 5000} {
		lines = append(lines,
			line{spec: spec{Round: round, Row: workHun, Level: full, Queue: "settle"}, Values: map[string]float64{perSecond: 10 * x}},
			line{spec: spec{Round: round, Row: workHun, Level: full, Queue: "backlite"}, Values: map[string]float64{perSecond: x}},
			line{spec: spec{Round: round, Row: workHun, Level: full, Queue: "goqite"}, Values: map[string]float64{perSecond: x}})
	}
	lines = append(lines, line{spec: spec{Row: steady, Level: full, Queue: "River"}, Fault: "it fell over"})
	docs := t.TempDir()
	name := filepath.Join(docs, "performance.md")
	if err := os.WriteFile(name, []byte("x"+notesBegin+"\nby hand\n"+notesEnd), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report(lines, docs); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by hand", "it fell over", "10.0k (9000–50.0k)",
		"| FULL | work-off, 100 thousand ÷ backlite | ≥ 10.0× | 10.0× | met |",
		"| FULL | work-off, 100 thousand ÷ goqite | ≥ 20.0× | 10.0× | **missed** |"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	charts, err := filepath.Glob(filepath.Join(docs, "charts", "*.svg"))
	if err != nil || len(charts) == 0 {
		t.Fatal("no charts", err)
	}
	for _, c := range charts {
		f, err := os.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for d := xml.NewDecoder(f); err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", c, err)
		}
	}
}
