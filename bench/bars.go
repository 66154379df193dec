package main

import (
	"fmt"
	"io"
	"math"
)

// bar is one thing that a run must show.
type bar struct {
	level, what, need, got string
	met                    bool
}

// ratios are the bars against peers: settle's rate is at least so many times
// theirs. Work-offs count at both sizes.
var ratios = []struct {
	level, row, peer string
	atLeast          float64
}{
	{full, workTen, "backlite", 10}, {full, workHun, "backlite", 10},
	{full, workTen, "goqite", 20}, {full, workHun, "goqite", 20},
	{full, workTen, "River", 15}, {full, workHun, "River", 15},
	{full, steady, "backlite", 8}, {full, steady, "River", 30},
	{normal, workTen, "backlite", 2.5}, {normal, workHun, "backlite", 2.5},
	{normal, workTen, "goqite", 8}, {normal, workHun, "goqite", 8},
	{normal, steady, "backlite", 4},
	{full, enqueueAll, "backlite", 0.5}, {normal, enqueueAll, "backlite", 0.5},
}

// selves are the bars of settle against itself.
var selves = []struct {
	what, row, than string
	atLeast         float64
}{
	{"rate at 1 million waiting ÷ at 10 thousand", workMil, workTen, 0.9},
	{"rate with 1 million ended kept ÷ without", workKept, workHun, 0.9},
	{"handled while producers run flat out ÷ balanced", saturated, steady, 0.8},
}

// bars lists all that could be measured.
func (r results) bars() (out []bar) {
	for _, b := range ratios {
		if x, ok := r.ratio(place{b.row, b.level, "settle", perSecond}, place{b.row, b.level, b.peer, perSecond}); ok {
			out = append(out, bar{b.level, b.row + " ÷ " + b.peer, "≥ " + times(b.atLeast), times(x), x >= b.atLeast})
		}
	}
	for _, level := range []string{full, normal} {
		for _, b := range selves {
			if x, ok := r.ratio(place{b.row, level, "settle", perSecond}, place{b.than, level, "settle", perSecond}); ok {
				out = append(out, bar{level, b.what, "≥ " + times(b.atLeast), times(x), x >= b.atLeast})
			}
		}
		out = append(out, r.tunedBars(level)...)
		out = append(out, r.latencyBars(level)...)
		out = append(out, r.waitBars(level)...)
		for _, row := range []string{fairTen, fairMil} {
			if s, ok := r.of(row, level, "settle", wait); ok {
				out = append(out, bar{level, row + ": wait", "≤ 25 ms", number(s.median) + " ms", s.median <= 25})
			}
		}
	}
	return append(out, r.recoveryBars()...)
}

// tunedBars: defaults against the best that was tried.
func (r results) tunedBars(level string) (out []bar) {
	for _, row := range []string{workHun, steady} {
		shipped, ok := r.of(row, level, "settle", perSecond)
		best, with := shipped.median, 64
		for _, slots := range tuned {
			if s, ok := r.of(tunedName(row, slots), level, "settle", perSecond); ok && s.median > best {
				best, with = s.median, slots
			}
		}
		if _, measured := r.of(tunedName(row, tuned[0]), level, "settle", perSecond); ok && measured {
			x := shipped.median / best
			out = append(out, bar{level, fmt.Sprintf("%s: defaults ÷ tuned (%d slots)", row, with), "≥ 0.9×", times(x), x >= 0.9})
		}
	}
	return out
}

// latencyBars: against backlite, and against one commit of the floor in the
// same rhythm.
func (r results) latencyBars(level string) (out []bar) {
	ours, ok1 := r.of(latency, level, "settle", p50)
	worst, ok2 := r.of(latency, level, "settle", p99)
	theirs, ok3 := r.of(latency, level, "backlite", p50)
	commit, ok4 := r.of(latency, level, "floor", p50)
	if ok1 && ok3 && ok4 {
		most := theirs.median + commit.median
		out = append(out, bar{level, "enqueue to start, p50", fmt.Sprintf("≤ backlite's %s + a commit %s ms", number(theirs.median), number(commit.median)),
			number(ours.median) + " ms", ours.median <= most})
	}
	if ok2 && ok4 {
		out = append(out, bar{level, "enqueue to start, p99", fmt.Sprintf("≤ 8 commits = %s ms", number(8*commit.median)),
			number(worst.median) + " ms", worst.median <= 8*commit.median})
	}
	return out
}

// waitBars: what parked waits may cost, and how soon answers are settled.
func (r results) waitBars(level string) (out []bar) {
	at := func(row, value string) (float64, bool) {
		s, ok := r.of(row, level, "settle", value)
		return s.median, ok
	}
	most := func(what, unit string, limit, x float64, ok bool) {
		if ok {
			out = append(out, bar{level, what, "≤ " + number(limit) + unit, number(x) + unit, x <= limit})
		}
	}
	for _, v := range []string{gos, sockets} {
		few, ok1 := at(waits10, v)
		many, ok2 := at(waitsTen, v)
		most(waitsTen+": "+v+", as 10 waits", "", few, many, ok1 && ok2)
	}
	x, ok := at(waitsTen, idleCPU)
	most(waitsTen+": CPU, idle", " % of a core", 1, x, ok)
	x, ok = at(waitsTen, burst)
	most(waitsTen+": all answered at once", " ms", 2000, x, ok)
	floor, ok1 := r.of(latency, level, "floor", p50)
	x, ok = at(answerLow, p50)
	most(answerLow+": p50, above a commit", " ms", 2, x-floor.median, ok && ok1)
	x, ok = at(answerLow, p99)
	most(answerLow+": p99, above a commit", " ms", 15, x-floor.median, ok && ok1)
	x, ok = at(answerMil, p99)
	most(answerMil+": p99", " ms", 100, x, ok)
	few, ok1 := at(answerHun, rss)
	many, ok2 := at(answerMil, rss)
	if ok1 && ok2 {
		out = append(out, bar{level, "memory with 1 million waits ÷ 200 thousand", "≤ 1.2×", times(many / few), many <= 1.2*few})
	}
	return out
}

// recoveryBars: all jobs of a killed worker run again in time, and together.
func (r results) recoveryBars() (out []bar) {
	for _, row := range []string{recovery, recovery30} {
		late, ok := r.of(row, full, "settle", last)
		early, _ := r.of(row, full, "settle", first)
		most, _ := r.of(row, full, "settle", bound)
		if !ok {
			continue
		}
		apart := noop.Policy().BackoffMin.Seconds() + 1
		out = append(out, bar{full, row + ": the last of 64 jobs runs again after", fmt.Sprintf("≤ %s s", number(most.median)), number(late.high) + " s", late.high <= most.median},
			bar{full, row + ": between the first and the last", fmt.Sprintf("≤ %s s", number(apart)), number(math.Abs(late.median-early.median)) + " s", late.median-early.median <= apart})
	}
	return out
}

func writeBars(w io.Writer, bars []bar) {
	met := 0
	fmt.Fprint(w, barsText)
	fmt.Fprintf(w, "| level | what | bar | measured | |\n|---|---|---|---|---|\n")
	for _, b := range bars {
		verdict := "**missed**"
		if b.met {
			verdict = "met"
			met++
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", b.level, b.what, b.need, b.got, verdict)
	}
	fmt.Fprintf(w, "\n%d of %d bars are met.\n", met, len(bars))
}
