// Command bench measures settle on the embedded store beside the floor of the
// same run: bare one-row transactions of the same driver, each waiting for the
// disk as its synchronous level says. Speeds are given as multiples of that
// floor, medians of interleaved rounds; raw lines go to a file.
//
//	go run . -rounds 5 -out results.jsonl
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/settle-go/settle/sqlite"
)

// line is one measurement, as it is kept.
type line struct {
	Round int     `json:"round"`
	Level string  `json:"level"` // FULL or NORMAL, as read back from the database
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// scenario measures one thing on a fresh folder.
type scenario struct {
	what string
	run  func(ctx context.Context, dir string, level sqlite.Synchronous, size int) ([]reading, error)
}

type reading struct {
	what  string
	value float64
	unit  string
}

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	size := flag.Int("jobs", 50_000, "jobs of one measurement")
	out := flag.String("out", "results.jsonl", "where the raw lines go")
	flag.Parse()
	if err := measure(*rounds, *size, *out); err != nil {
		log.Fatal(err)
	}
}

func measure(rounds, size int, out string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	var all []line
	for round := range rounds {
		for _, level := range []sqlite.Synchronous{sqlite.Full, sqlite.Normal} {
			for _, s := range scenarios {
				got, err := once(ctx, s, level, size)
				if err != nil {
					return fmt.Errorf("%s: %w", s.what, err)
				}
				for _, r := range got {
					l := line{round, levelName(level), r.what, r.value, r.unit}
					all = append(all, l)
					if err := json.NewEncoder(f).Encode(l); err != nil {
						return err
					}
				}
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, rounds)
	}
	table(all)
	return nil
}

func once(ctx context.Context, s scenario, level sqlite.Synchronous, size int) ([]reading, error) {
	dir, err := os.MkdirTemp("", "settle-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return s.run(ctx, dir, level, size)
}

func levelName(l sqlite.Synchronous) string {
	if l == sqlite.Normal {
		return "NORMAL"
	}
	return "FULL"
}

// table prints medians, and rates as multiples of the floor of the same level.
func table(all []line) {
	var keys []string
	values := map[string][]float64{}
	units := map[string]string{}
	for _, l := range all {
		k := l.Level + " " + l.What
		if values[k] == nil {
			keys = append(keys, k)
		}
		values[k] = append(values[k], l.Value)
		units[k] = l.Unit
	}
	median := func(k string) float64 {
		v := slices.Sorted(slices.Values(values[k]))
		return v[len(v)/2]
	}
	fmt.Printf("%-52s %14s %10s  %s\n", "", "median", "x floor", "min – max")
	for _, k := range keys {
		v := slices.Sorted(slices.Values(values[k]))
		level, _, _ := cut(k)
		floor := median(level + " floor: one-row transactions")
		times := median(k) / floor
		if units[k] == "ms" { // latency: in commits of the floor
			times = median(k) / (1000 / floor)
		}
		fmt.Printf("%-52s %9.2f %-4s %10.2f  %.2f – %.2f\n", k, median(k), units[k], times, v[0], v[len(v)-1])
	}
}

func cut(k string) (string, string, bool) {
	for i := range k {
		if k[i] == ' ' {
			return k[:i], k[i+1:], true
		}
	}
	return k, "", false
}

func file(dir string) string { return filepath.Join(dir, "bench.db") }
