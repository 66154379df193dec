package main

import (
	"fmt"
	"slices"
	"time"
)

// row is one row of the report: what is measured, for whom, how often.
type row struct {
	name   string
	spec   spec
	queues []string
	levels []string
	rounds int // at most; 0 = every round
	// What peers get instead where they would take too long; zero = the same.
	peerWindow time.Duration
	peerRounds int
	peerLevels []string
}

// sizes are what makes a run long or short.
type sizes struct {
	ten, hundred, million int // jobs
	enqueue, flow, pace   time.Duration
	work, long, peer      time.Duration // bounds of work-offs; the last: of peers at a million
	behind                time.Duration // bound of B's wait
}

var fullSizes = sizes{ten: 10_000, hundred: 100_000, million: 1_000_000,
	enqueue: 800 * time.Millisecond, flow: 1500 * time.Millisecond, pace: 3 * time.Second,
	work: 3 * time.Second, long: 20 * time.Second, peer: 8 * time.Second, behind: 10 * time.Second}

var quickSizes = sizes{ten: 2_000, hundred: 10_000, million: 50_000,
	enqueue: 300 * time.Millisecond, flow: 500 * time.Millisecond, pace: time.Second,
	work: 700 * time.Millisecond, long: 2 * time.Second, peer: 700 * time.Millisecond, behind: time.Second}

// Names of rows, without their sizes.
const (
	enqueue1   = "enqueue one by one, 1 goroutine"
	enqueue50  = "enqueue one by one, 50 goroutines"
	enqueueAll = "enqueue in batches of 1000"
	workTen    = "work-off, 10 thousand"
	workHun    = "work-off, 100 thousand"
	workMil    = "work-off, 1 million"
	workKept   = "work-off, 100 thousand, 1 million ended kept"
	steady     = "steady state"
	saturated  = "saturation"
	latency    = "enqueue to start"
	fairTen    = "B behind 10 thousand of A"
	fairHun    = "B behind 100 thousand of A"
	fairMil    = "B behind 1 million of A"
	recovery   = "recovery, lease 10 s"
	recovery30 = "recovery, lease 30 s"
	waits10    = "10 parked waits"
	waitsTen   = "10 thousand parked waits"
	answerLow  = "answer to settled, 50/s"
	answerMil  = "answer to settled, 1000/s among 1 million waits"
	answerHun  = "answer to settled, 1000/s among 200 thousand waits"
)

// balanced is how many jobs wait when producers and workers start together.
const balanced = 1000

// tuned are the numbers of slots that the default (64) is compared with.
var tuned = []int{16, 256, 1000}

func tunedName(name string, slots int) string { return fmt.Sprintf("%s, %d slots", name, slots) }

// plan lists all rows, in the order of a round.
func plan(z sizes, millionRounds int) []row {
	all := append([]string{"settle"}, peers...)
	floored := append([]string{"floor"}, all...)
	ours := []string{"settle"}
	both := []string{full, normal}
	rows := []row{
		{name: enqueue1, queues: floored, spec: spec{Do: "enqueue", Callers: 1, Window: z.enqueue}},
		{name: enqueue50, queues: all, spec: spec{Do: "enqueue", Callers: 50, Window: z.enqueue}},
		{name: enqueueAll, queues: floored, spec: spec{Do: "enqueue", Callers: 1, Batch: 1000, Window: z.enqueue}},
		{name: workTen, queues: all, spec: spec{Do: "work", Backlog: z.ten, Window: z.work}},
		{name: workHun, queues: all, spec: spec{Do: "work", Backlog: z.hundred, Window: z.work}},
		{name: steady, queues: all, spec: spec{Do: "flow", Callers: 50, InFlight: 2000, Backlog: balanced, Window: z.flow}},
		{name: saturated, queues: all, spec: spec{Do: "flow", Callers: 50, Backlog: balanced, Window: z.flow}},
		{name: latency, queues: floored, spec: spec{Do: "latency", Window: z.pace}},
		{name: workKept, queues: []string{"settle", "backlite", "River"}, peerRounds: 2,
			spec: spec{Do: "work", Backlog: z.hundred, Kept: z.million, Window: z.work}},
		{name: fairTen, queues: ours, spec: spec{Do: "fairness", Backlog: z.ten, Window: z.behind}},
		{name: fairHun, queues: all, peerRounds: 1, peerLevels: []string{normal},
			spec: spec{Do: "fairness", Backlog: z.hundred, Window: z.behind}},
		{name: fairMil, queues: ours, spec: spec{Do: "fairness", Backlog: z.million, Window: z.behind}},
		{name: recovery, queues: ours, levels: []string{full}, rounds: 3, spec: spec{Do: "recovery"}},
		{name: recovery30, queues: ours, levels: []string{full}, rounds: 1, spec: spec{Do: "recovery", Shipped: true}},
		{name: workMil, queues: all, rounds: millionRounds, peerRounds: 1, peerWindow: z.peer,
			spec: spec{Do: "work", Backlog: z.million, Window: z.long}},
	}
	rows = append(rows,
		row{name: waits10, queues: ours, rounds: 3, spec: spec{Do: "burst", Backlog: 10, Window: 3 * z.pace}},
		row{name: waitsTen, queues: ours, rounds: 3, spec: spec{Do: "burst", Backlog: z.ten, Window: 3 * z.pace}},
		row{name: answerLow, queues: ours, rounds: 3, spec: spec{Do: "answers", Backlog: 1000, Rate: 50, Window: z.pace}},
		row{name: answerHun, queues: ours, rounds: 1, levels: []string{full}, spec: spec{Do: "answers", Backlog: 2 * z.hundred, Rate: 1000, Window: 3 * z.pace}},
		row{name: answerMil, queues: ours, rounds: 1, levels: []string{full}, spec: spec{Do: "answers", Backlog: z.million, Rate: 1000, Window: 3 * z.pace}})
	if z.ten < fullSizes.ten { // quick: what takes half a minute is left out
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.name == recovery30 })
	}
	for _, slots := range tuned {
		rows = append(rows,
			row{name: tunedName(workHun, slots), queues: ours, rounds: 3, spec: spec{Do: "work", Backlog: z.hundred, Window: z.work, Slots: slots}},
			row{name: tunedName(steady, slots), queues: ours, rounds: 3, spec: spec{Do: "flow", Callers: 50, InFlight: 2000, Backlog: balanced, Window: z.flow, Slots: slots}})
	}
	for i := range rows {
		if rows[i].levels == nil {
			rows[i].levels = both
		}
	}
	return rows
}

// specs lists a row's measurements of one round; queues take turns in going
// first.
func (r row) specs(round int) (out []spec) {
	for _, level := range r.levels {
		for i := range r.queues {
			queue := r.queues[(i+round)%len(r.queues)]
			s := r.spec
			s.Row, s.Round, s.Level, s.Queue = r.name, round, level, queue
			if r.left(queue, level, round) {
				continue
			}
			if queue != "settle" && queue != "floor" && r.peerWindow > 0 {
				s.Window = r.peerWindow
			}
			out = append(out, s)
		}
	}
	return out
}

// left tells whether a queue is left out of a round.
func (r row) left(queue, level string, round int) bool {
	if r.rounds > 0 && round >= r.rounds {
		return true
	}
	if queue == "settle" || queue == "floor" {
		return false
	}
	if r.peerLevels != nil && !slices.Contains(r.peerLevels, level) {
		return true
	}
	return r.peerRounds > 0 && round >= r.peerRounds
}
