package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// runner makes the measurements of a run, one child process after the other.
type runner struct {
	self  string         // this program
	dir   string         // for database files; removed at the end
	only  *regexp.Regexp // rows that are measured
	until time.Time      // nothing is begun later
	out   io.Writer      // raw lines
	files map[string]string
	lines []line
}

// rounds runs the plan, round by round: what is compared is measured in turn.
func (r *runner) rounds(ctx context.Context, rows []row, n int) error {
	for round := range n {
		began := time.Now()
		for _, row := range rows {
			if !r.only.MatchString(row.name) {
				continue
			}
			for _, s := range row.specs(round) {
				if time.Now().After(r.until) {
					fmt.Fprintln(os.Stderr, "out of time: what is missing was not measured")
					return nil
				}
				if err := r.measure(ctx, s); err != nil {
					return err
				}
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d took %s\n", round+1, n, time.Since(began).Round(time.Second))
	}
	return nil
}

// measure makes one measurement on a file of its own and keeps its line. A
// child that fails is a line too; only the end of ctx ends the run.
func (r *runner) measure(ctx context.Context, s spec) error {
	dir, err := os.MkdirTemp(r.dir, "one-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.Path = filepath.Join(dir, "bench.db")
	l := line{spec: s}
	if s.Backlog > 0 || s.Kept > 0 {
		err = r.prefilled(ctx, s)
	}
	began := time.Now()
	if err == nil {
		l, err = r.child(ctx, s, s.Window+90*time.Second)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		l.Fault = err.Error()
	}
	fmt.Fprintf(os.Stderr, "%d %-8s %-8s %-52s %6.1fs %s%s\n", s.Round, s.Level, s.Queue, s.Row,
		time.Since(began).Seconds(), brief(l.Values), l.Fault)
	r.lines = append(r.lines, l)
	return json.NewEncoder(r.out).Encode(l)
}

func brief(v map[string]float64) string {
	var b strings.Builder
	for _, k := range []string{perSecond, p50, p99, wait, first, last} {
		if x, ok := v[k]; ok {
			fmt.Fprintf(&b, " %s %s", number(x), k)
		}
	}
	return b.String()
}

// child starts this program for one measurement.
func (r *runner) child(ctx context.Context, s spec, limit time.Duration) (l line, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	arg, err := json.Marshal(s)
	if err != nil {
		return l, err
	}
	l.spec = s
	c := exec.CommandContext(ctx, r.self, "-child", string(arg), "-file", s.Path)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &l)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, firstLine(said.String()))
		if ctx.Err() != nil {
			err = fmt.Errorf("did not end within %s", limit)
		}
	}
	return l, err
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// fillLimit bounds the making of one file.
const fillLimit = 5 * time.Minute

// prefilled puts a copy of a file with the backlog at the spec's path. The
// original is made once a run, through the queue's own API.
func (r *runner) prefilled(ctx context.Context, s spec) error {
	key := fmt.Sprintf("%s-%d-%d.db", s.Queue, s.Backlog, s.Kept)
	if _, ok := r.files[key]; !ok {
		f := spec{Queue: s.Queue, Level: normal, Do: "fill", Backlog: s.Backlog, Kept: s.Kept, Path: filepath.Join(r.dir, key)}
		began := time.Now()
		if _, err := r.child(ctx, f, fillLimit); err != nil {
			return fmt.Errorf("fill %s: %w", key, err)
		}
		fmt.Fprintf(os.Stderr, "  made %s in %s\n", key, time.Since(began).Round(100*time.Millisecond))
		r.files[key] = f.Path
	}
	if wal, err := os.Stat(r.files[key] + "-wal"); err == nil && wal.Size() > 0 {
		return fmt.Errorf("%s was not closed in order", key)
	}
	return copyFile(r.files[key], s.Path)
}

// copyFile copies, and waits for the disk: writing back must not go on while
// something is measured.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
