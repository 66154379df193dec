package sqlite

import (
	"math"
	"slices"
)

// Rows stand in the order of their numbers: within a page, and from page to
// page. A number that breaks the order is damaged, and may be another row's by
// now: a job must not get the state of another one.

// fitness says how an entry stands in the order.
type fitness int

const (
	fitting  fitness = iota
	doubtful         // in the order of its page, but not in that of the pages beside it: one of them may stand in the wrong place
	misfit           // out of the order of its page
)

// places judges a page's entries; nil = all fit. before and behind are the pages
// beside it; 0 = not known. Where two entries contradict each other, these decide.
func (im *image) places(n, before, behind uint32) map[int]fitness {
	rows, lo, hi := im.numbers(n), int64(math.MinInt64), int64(math.MaxInt64)
	if beside := im.numbers(before); len(beside) > 0 {
		lo = beside[slices.Max(ascending(beside, lo, hi))]
	}
	if beside := im.numbers(behind); len(beside) > 0 {
		hi = beside[ascending(beside, math.MinInt64, hi)[0]]
	}
	between := ascending(rows, lo, hi)
	if len(between) == len(rows) {
		return nil
	}
	fit := ascending(rows, math.MinInt64, math.MaxInt64)
	if len(between) == len(fit) {
		fit = between
	}
	out := map[int]fitness{}
	for i := range rows {
		out[i] = misfit
	}
	for _, i := range fit {
		out[i] = doubtful
	}
	for _, i := range between {
		if out[i] == doubtful {
			out[i] = fitting
		}
	}
	return out
}

// numbers are the row numbers of a page, in its order; nil = it has none.
func (im *image) numbers(n uint32) (rows []int64) {
	if n == 0 {
		return nil
	}
	if kind, ok := im.kind(n); !ok || kind != tableLeaf {
		return nil
	}
	p := im.page(n)
	for _, at := range im.cells(n, p) {
		row := uint64(0)
		if _, size := uvarint(p[at:im.usable]); size > 0 { // of the payload
			row, _ = uvarint(p[at+size : im.usable])
		}
		rows = append(rows, int64(row))
	}
	return rows
}

// ascending finds the places of a longest ascending part between two bounds.
func ascending(rows []int64, lo, hi int64) []int {
	var ends []int // by length: the place of the smallest number that ends one
	from := make([]int, len(rows))
	for i, n := range rows {
		if n < lo || n > hi {
			continue
		}
		length, _ := slices.BinarySearchFunc(ends, n, func(at int, n int64) int {
			if rows[at] < n {
				return -1
			}
			return 1
		})
		from[i] = -1
		if length > 0 {
			from[i] = ends[length-1]
		}
		ends = append(ends[:length], append([]int{i}, ends[min(length+1, len(ends)):]...)...)
	}
	if len(ends) == 0 {
		return nil
	}
	out := make([]int, 0, len(ends))
	for i := ends[len(ends)-1]; i >= 0; i = from[i] {
		out = append(out, i)
	}
	slices.Reverse(out)
	return out
}
