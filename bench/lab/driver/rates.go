package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

var callers = []int{1, 50, 500}

// rates compares the drivers: raw one-row transactions, group commit of single
// inserts, and a cycle whose transactions each settle 100, claim 100, insert 100.
func rates(dir string) {
	for _, sync := range []string{"FULL", "NORMAL"} {
		t := table{}
		for round := range *rounds {
			for i := range drivers {
				d := drivers[(i+round)%len(drivers)]
				if d == "zombiezen-fds" && sync == "NORMAL" {
					continue
				}
				path := fresh(dir)
				t.add("floor", d, floor(dir))
				s := open(d, path, sync)
				t.add("raw", d, raw(s))
				t.add("cycle", d, cycle(s))
				for _, g := range callers {
					r, _ := group(newChannel(s), g)
					t.add(fmt.Sprint("group ", g), d, r)
				}
				s.close()
				must(os.RemoveAll(filepath.Dir(path)))
			}
		}
		printRates(sync, t)
	}
}

func printRates(sync string, t table) {
	fmt.Printf("  synchronous=%s: jobs/s (× floor; × own raw; × zombiezen in the same round)\n", sync)
	for _, row := range []string{"raw", "cycle", "group 1", "group 50", "group 500"} {
		for _, d := range drivers {
			if t.median(row, d) > 0 {
				fmt.Printf("  %-10s %-14s %8.0f  (%5.2f; %5.2f; %4.2f)\n", row, d, t.median(row, d),
					t.ratio(row, d, "floor", d), t.ratio(row, d, "raw", d), t.ratio(row, d, row, "zombiezen"))
			}
		}
	}
}

// raw runs one-row transactions from one goroutine, nothing in between.
func raw(s *store) float64 {
	n, start := 0, time.Now()
	for time.Since(start) < duration() {
		s.tx(func() { s.insert(newID(), 0) })
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

func cycle(s *store) float64 {
	s.tx(func() { s.insertN(1000) })
	var held []claimed
	n, start := 0, time.Now()
	for time.Since(start) < 2*duration() {
		s.tx(func() {
			s.settle(held)
			held = s.claim(100, held)
			s.insertN(100)
		})
		n += len(held)
	}
	return float64(n) / time.Since(start).Seconds()
}

// group has g callers insert one job at a time through w; it answers the rate
// and every caller's waits in milliseconds.
func group(w combiner, g int) (rate float64, lat []float64) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for lane := range g {
		wg.Go(func() {
			var own []float64
			for time.Since(start) < duration() {
				at := time.Now()
				id := newID()
				w.do(func(s *store) { s.insert(id, int64(lane%lanes)) })
				own = append(own, ms(time.Since(at)))
			}
			mu.Lock()
			lat = append(lat, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	d := time.Since(start).Seconds()
	w.stop()
	return float64(len(lat)) / d, lat
}
