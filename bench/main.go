// Command bench compares settle on its embedded store with other SQLite job
// queues for Go, and with the floor of the same run: bare transactions of the
// same driver. All are measured in turn, each measurement in a process and on a
// file of its own, at synchronous FULL and NORMAL.
//
//	go run . -quick                      # three minutes, small sizes, prints tables
//	go run . -docs ../docs               # the real run, writes performance.md and charts
//	go run . -report results.jsonl -docs ../docs
//
// The way through the files: plan.go says what is measured, run.go starts a
// child for each measurement, child.go and what it names measure, report.go
// writes. queue.go and the files named like the queues say how each is set up.
// Raw lines go to a file, one JSON object per measurement.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

type options struct {
	rounds, million   int
	quick             bool
	out, docs, report string
	dir, only         string
	limit             time.Duration
	sizes             sizes
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	o := options{sizes: fullSizes}
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; all queues are measured in turn in each")
	flag.IntVar(&o.million, "million-rounds", 3, "rounds of them with a backlog of 1 million (peers: 1)")
	flag.BoolVar(&o.quick, "quick", false, "small sizes, one round")
	flag.StringVar(&o.out, "out", "results.jsonl", "file for the raw lines")
	flag.StringVar(&o.docs, "docs", "", "folder in which performance.md and charts/ are written; empty = only print")
	flag.StringVar(&o.report, "report", "", "measure nothing: report the raw lines of this file")
	flag.StringVar(&o.only, "only", "", "regular expression: rows to measure")
	flag.StringVar(&o.dir, "dir", "", "folder on the disk to measure on; empty = the system's for temporary files")
	flag.DurationVar(&o.limit, "limit", 25*time.Minute, "begin no measurement later than this")
	flag.DurationVar(&o.sizes.work, "work-window", o.sizes.work, "bound of one work-off of 10 and 100 thousand")
	flag.DurationVar(&o.sizes.long, "million-window", o.sizes.long, "bound of a work-off of 1 million")
	flag.DurationVar(&o.sizes.peer, "peer-million-window", o.sizes.peer, "the same, for peers")
	spec := flag.String("child", "", "used by bench itself: make this one measurement")
	file := flag.String("file", "", "used by bench itself: the database file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, *spec, *file); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options, spec, file string) error {
	switch {
	case spec == "victim" || spec == "shipped victim":
		return victim(ctx, file, spec != "victim")
	case spec != "":
		return child(ctx, spec, file)
	case o.report != "":
		lines, err := readLines(o.report)
		if err != nil {
			return err
		}
		return report(lines, o.docs)
	}
	lines, err := measureAll(ctx, o)
	if err != nil {
		return err
	}
	return report(lines, o.docs)
}

// measureAll makes the run and keeps its raw lines.
func measureAll(ctx context.Context, o options) (_ []line, err error) {
	if o.quick {
		o.sizes, o.rounds = quickSizes, 1
	}
	r := runner{until: time.Now().Add(o.limit), files: map[string]string{}}
	if r.only, err = regexp.Compile(o.only); err != nil {
		return nil, err
	}
	if r.self, err = os.Executable(); err != nil {
		return nil, err
	}
	schema, err := findGoqiteSchema(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(schemaVar, schema); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp(o.dir, "settle-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.dir)
	out, err := os.Create(o.out)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	r.out = out
	err = r.rounds(ctx, plan(o.sizes, o.million), o.rounds)
	return r.lines, err
}

// readLines reads raw lines back.
func readLines(name string) (lines []line, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}
