package main

import (
	"fmt"
	"maps"
	"slices"
)

// place names one series: a value of a queue in a row at a level.
type place struct{ row, level, queue, value string }

// results are all values of a run.
type results struct {
	values     map[place][]float64
	durability map[place]map[string]bool // by level and queue
	faults     []line
	quick      bool
	rounds     int
}

func gather(lines []line) results {
	r := results{values: map[place][]float64{}, durability: map[place]map[string]bool{}}
	for _, l := range lines {
		r.rounds = max(r.rounds, l.Round+1)
		r.quick = r.quick || l.Row == workTen && l.Backlog < fullSizes.ten
		if l.Fault != "" {
			r.faults = append(r.faults, l)
			continue
		}
		for k, v := range l.Values {
			p := place{l.Row, l.Level, l.Queue, k}
			r.values[p] = append(r.values[p], v)
		}
		d := place{level: l.Level, queue: l.Queue}
		if r.durability[d] == nil {
			r.durability[d] = map[string]bool{}
		}
		r.durability[d][l.Durability] = true
	}
	return r
}

// stat is what rounds of one series came to.
type stat struct {
	median, low, high float64
	n                 int
}

// of returns a series' numbers; ok is false if it was not measured.
func (r results) of(row, level, queue, value string) (s stat, ok bool) {
	v := slices.Sorted(slices.Values(r.values[place{row, level, queue, value}]))
	if len(v) == 0 {
		return s, false
	}
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return stat{mid, v[0], v[len(v)-1], len(v)}, true
}

// cell is the median with its range.
func (s stat) cell() string {
	if s.n == 1 || number(s.low) == number(s.high) {
		return number(s.median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median), number(s.low), number(s.high))
}

// ratio is one series' median as a multiple of another's.
func (r results) ratio(a, b place) (float64, bool) {
	x, okA := r.of(a.row, a.level, a.queue, a.value)
	y, okB := r.of(b.row, b.level, b.queue, b.value)
	if !okA || !okB || y.median == 0 {
		return 0, false
	}
	return x.median / y.median, true
}

// found lists what was read back about durability.
func (r results) found(level, queue string) []string {
	return slices.Sorted(maps.Keys(r.durability[place{level: level, queue: queue}]))
}

// number writes three figures.
func number(x float64) string {
	switch {
	case x >= 999_500:
		return fmt.Sprintf("%.2fM", x/1e6)
	case x >= 99_950:
		return fmt.Sprintf("%.0fk", x/1000)
	case x >= 9_995:
		return fmt.Sprintf("%.1fk", x/1000)
	case x >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.995:
		return fmt.Sprintf("%.1f", x)
	case x == 0:
		return "0"
	case x < 0.01:
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func times(x float64) string { return number(x) + "×" }
