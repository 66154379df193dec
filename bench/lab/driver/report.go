package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// median of at least one value; the slice is sorted.
func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

// table keeps one value per round for each cell, so that ratios are taken
// within a round before the median is.
type table map[[2]string][]float64

func (t table) add(row, col string, v float64) {
	t[[2]string{row, col}] = append(t[[2]string{row, col}], v)
}

// ratio is the median over rounds of row/col divided by baseRow/baseCol.
func (t table) ratio(row, col, baseRow, baseCol string) float64 {
	a, b := t[[2]string{row, col}], t[[2]string{baseRow, baseCol}]
	r := make([]float64, min(len(a), len(b)))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return median(r)
}

func (t table) median(row, col string) float64 { return median(slices.Clone(t[[2]string{row, col}])) }

// floor measures appends of 4 KiB + fdatasync per second: the disk's own speed.
func floor(dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "floor"))
	must(err)
	defer os.Remove(f.Name())
	defer f.Close()
	page, n, start := make([]byte, 4096), 0, time.Now()
	for time.Since(start) < 150*time.Millisecond {
		_, err := f.Write(page)
		must(err)
		must(syscall.Fdatasync(int(f.Fd())))
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

// waits prints the distribution of durations given in milliseconds.
func waits(label string, ms []float64) {
	fmt.Printf("  %-58s n=%-6d p50 %8.2f  p99 %8.2f  max %8.2f ms\n", label, len(ms), quantile(ms, .5), quantile(ms, .99), quantile(ms, 1))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

func verdict(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}
