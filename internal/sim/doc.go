// Package sim is a seeded simulation of the queue: random operations of
// enqueuers, two workers, sweeps, bridges, operators and clocks against a real SQLite
// file, from one goroutine, beside a model that says what must be true. It
// consists of tests.
//
// A seed makes a list of operations, each with a small seed of its own, so that
// an operation does the same whatever others are left out: that is how a
// failing list is shrunk. After each operation the whole file is compared with
// the model, and the promises that the model itself could break are checked by
// counts of its own (rules_test.go).
//
//	go test ./internal/sim                          kept lists, then 100 seeds
//	go test ./internal/sim -sim.seeds 10000         more
//	go test ./internal/sim -sim.minutes 10          as many as fit
//	go test ./internal/sim -sim.list "setup:1 …"    one list, told step by step
package sim
