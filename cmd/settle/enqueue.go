package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// enqueueFlags are the flags of enqueue.
type enqueueFlags struct {
	file, due, id      string
	raw, lines         bool
	attempts           int
	timeout            time.Duration
	settle.EnqueueOpts // Queue, Tenant, Key, Delay, HeadStart, Deadline as flags
}

// insertBatch is how many lines are stored in one transaction.
const insertBatch = 500

// newEnqueueCmd stores jobs.
func newEnqueueCmd(a *app) *cobra.Command {
	var f enqueueFlags
	c := &cobra.Command{
		Use:   "enqueue KIND [JSON|-]",
		Short: "store a job, or one a line, and print its id",
		Long: `Store a job of a kind, or with --lines one job for each line that is not blank,
and print the ids. The input is a word of the command line, or read from --file
or standard input ("-"); without any it is the JSON value null. It must be JSON
unless --raw is given. The database is created if it does not exist.

A key is unique over the live jobs of one queue, kind and tenant: if it is
taken, nothing is stored and the id of the job that has it is printed with
"existing". The same goes for --id, which makes a repeated enqueue safe.

With --lines, lines are checked and stored in order, 500 at a time; an error
says which lines are stored already and how to go on.`,
		Example: `  settle enqueue mail.send '{"to":"ada@example.org"}'
  settle enqueue report.nightly --key nightly --delay 2h --attempts 3
  settle enqueue video.analyze --file job.json --tenant acme --queue video
  jq -c '.[]' orders.json | settle enqueue order.ship --lines -
  settle dead export --kind order.ship | jq -c .input | settle enqueue order.ship --lines -`,
		Args: wantArgs(1, 2, `a kind and at most one input; quote JSON: settle enqueue mail.send '{"to":"ada"}'`),
		RunE: func(c *cobra.Command, args []string) error { return a.enqueue(c, &f, args) },
	}
	f.add(c)
	a.jsonFlag(c)
	return c
}

// enqueue stores what the command line describes.
func (a *app) enqueue(c *cobra.Command, f *enqueueFlags, args []string) error {
	job, err := f.job(c, args[0])
	if err != nil {
		return err
	}
	if f.lines {
		return a.enqueueLines(c.Context(), f, job, args[1:])
	}
	if job.Input, err = a.input(f, args[1:]); err != nil {
		return err
	}
	if err := check(job); err != nil {
		return err
	}
	return a.change(c.Context(), false, func(st settle.Store) error {
		return a.insert(c.Context(), settle.NewClient(st), []settle.New{job})
	})
}

func (f *enqueueFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.file, "file", "", `read the input from this file ("-" = standard input)`)
	fs.BoolVar(&f.lines, "lines", false, "one job for each line of the input; blank lines are skipped")
	fs.BoolVar(&f.raw, "raw", false, "the input is bytes: do not check that it is JSON")
	fs.StringVar(&f.Queue, "queue", "", `queue that the job joins (default "default")`)
	fs.StringVar(&f.Tenant, "tenant", "", "party for whom the work is done; tenants take turns")
	fs.StringVar(&f.Key, "key", "", "unique over the live jobs of this queue, kind and tenant")
	fs.StringVar(&f.id, "id", "", "id of the job, so that a repeated enqueue is safe (default: a new one)")
	spanVar(fs, &f.Delay, "delay", 0, "due this long from now")
	fs.StringVar(&f.due, "due", "", "due at this instant, RFC 3339, such as 2030-01-31T08:00:00Z")
	spanVar(fs, &f.HeadStart, "head", 0, "head start over others that are due at once, at most 1h")
	spanVar(fs, &f.Deadline, "deadline", 0, "ends at the latest this long after it was due (default 30d)")
	fs.IntVar(&f.attempts, "attempts", 0, "charged attempts that the job has (default 10)")
	spanVar(fs, &f.timeout, "timeout", 0, "hard limit of one attempt (default 15m)")
}

// job makes the job that the flags describe, without input.
func (f *enqueueFlags) job(c *cobra.Command, kind string) (settle.New, error) {
	n := settle.New{Kind: kind, EnqueueOpts: f.EnqueueOpts}
	set := c.Flags().Changed
	if set("due") && set("delay") {
		return n, usagef("--due and --delay exclude each other")
	}
	if set("key") && f.Key == "" {
		return n, errNoKey
	}
	if f.lines && (set("id") || set("key")) {
		return n, usagef("--lines makes many jobs: --id and --key would make them one")
	}
	if set("due") {
		at, err := time.Parse(time.RFC3339, f.due)
		if err != nil {
			return n, usagef("--due %q: want RFC 3339, such as 2030-01-31T08:00:00Z or 2030-01-31T08:00:00+01:00, at most 10 years ahead", clip(f.due))
		}
		n.Due = at
	}
	if set("id") {
		ids, err := parseIDs([]string{f.id})
		if err != nil {
			return n, err
		}
		n.ID = ids[0]
	}
	for name, zero := range map[string]bool{"attempts": f.attempts == 0, "timeout": f.timeout == 0, "deadline": f.Deadline == 0} {
		if set(name) && zero {
			return n, usagef("--%s 0: want more than 0, or leave it out for the default", name)
		}
	}
	if f.attempts != 0 || f.timeout != 0 {
		n.Policy = &settle.Policy{Attempts: f.attempts, Timeout: f.timeout}
	}
	return n, check(n)
}

// errNoKey: an empty key is no key, which is rarely what was meant.
var errNoKey = usagef("--key: the key is empty: leave --key out for none")

// check refuses a job before a database is opened, or even created, for it.
func check(n settle.New) error {
	_, _, err := n.Prepare(time.Now())
	return err
}

// input reads and checks the input of one job.
func (a *app) input(f *enqueueFlags, args []string) (b []byte, err error) {
	name := "input"
	switch {
	case len(args) == 1 && f.file != "":
		return nil, usagef("an input and --file exclude each other")
	case len(args) == 1 && args[0] != "-":
		b = []byte(args[0])
	case len(args) == 1 || f.file != "":
		r, source, shut, err := a.source(f.file)
		if err != nil {
			return nil, err
		}
		b, err = readPayload(r, source)
		if err := errors.Join(err, shut()); err != nil {
			return nil, err
		}
		name = source
	case f.raw:
		return nil, nil
	default:
		return []byte("null"), nil
	}
	if f.raw {
		return b, nil
	}
	if err := checkJSON(b); err != nil {
		return nil, usagef("%s: %w; --raw passes on any bytes", name, err)
	}
	return b, nil
}

// enqueueLines stores a job for each line.
func (a *app) enqueueLines(ctx context.Context, f *enqueueFlags, base settle.New, args []string) error {
	if len(args) == 1 && args[0] != "-" {
		return usagef(`--lines reads from --file or standard input ("-"), not from the command line`)
	}
	r, name, shut, err := a.source(f.file)
	if err != nil {
		return err
	}
	err = a.change(ctx, false, func(st settle.Store) error {
		in := lineInserter{a: a, f: f, base: base, client: settle.NewClient(st), name: name}
		err := eachLine(r, name, func(n int, line []byte) error { return in.add(ctx, n, line) })
		if err == nil {
			err = in.flush(ctx)
		}
		return in.explain(err)
	})
	return errors.Join(err, shut())
}

// lineInserter gathers lines into batches.
type lineInserter struct {
	a      *app
	f      *enqueueFlags
	base   settle.New
	client *settle.Client
	name   string
	wait   []settle.New
	last   int // the last line that was read
	stored int // the last line that is stored
}

func (in *lineInserter) add(ctx context.Context, n int, line []byte) error {
	job := in.base
	job.Input = line
	if err := check(job); err != nil {
		return usagef("%s: line %d: %w", in.name, n, err)
	}
	if !in.f.raw {
		if err := checkJSON(line); err != nil {
			return usagef("%s: line %d: %w; --raw passes on any bytes", in.name, n, err)
		}
	}
	in.wait, in.last = append(in.wait, job), n
	if len(in.wait) < insertBatch {
		return nil
	}
	return in.flush(ctx)
}

func (in *lineInserter) flush(ctx context.Context) error {
	if err := in.a.insert(ctx, in.client, in.wait); err != nil {
		return err
	}
	in.wait, in.stored = in.wait[:0], in.last
	return nil
}

// explain says of a failure what is stored and how to go on.
func (in *lineInserter) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case in.stored == 0:
		return fmt.Errorf("%w; no line has been stored", err)
	default:
		return fmt.Errorf("%w; lines 1 to %d are stored: go on with line %d (tail -n +%d)", err, in.stored, in.stored+1, in.stored+1)
	}
}

// insertedJSON is one line of enqueue --json.
type insertedJSON struct {
	ID       settle.ID    `json:"id"`
	Existing bool         `json:"existing"`
	State    settle.State `json:"state"`
}

// insert stores jobs and prints their ids.
func (a *app) insert(ctx context.Context, client *settle.Client, jobs []settle.New) error {
	got, err := client.Enqueue(ctx, jobs...)
	if err != nil {
		return err
	}
	for _, in := range got {
		switch {
		case a.json:
			err = writeJSON(a.out, insertedJSON{in.ID, in.Existing, in.State})
		case in.Existing:
			_, err = fmt.Fprintf(a.out, "%s existing (%s)\n", in.ID, in.State)
		default:
			_, err = fmt.Fprintln(a.out, in.ID)
		}
		if err != nil {
			return fmt.Errorf("the jobs are stored, but their ids cannot be written: %w", err)
		}
	}
	return nil
}
