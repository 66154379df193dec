package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/xwork"
	"github.com/settle-go/settle/worker"
)

// workFlags are the flags of work.
type workFlags struct {
	exec, http  []string
	queue       string
	slots       int
	limit       int
	drain       bool
	grace       time.Duration
	poll, lease time.Duration
	quiet       bool
}

// newWorkCmd runs jobs with commands and HTTP targets.
func newWorkCmd(a *app) *cobra.Command {
	var f workFlags
	c := &cobra.Command{
		Use:   "work (--exec KIND=CMD | --http KIND=URL)…",
		Short: "run jobs with commands or HTTP targets",
		Long: `Run the jobs of a queue, each kind with a command or an HTTP target. Work is done
at least once, so targets must bear being called again. A job's timeout and
attempts are those that it was enqueued with.

--exec KIND=CMD runs CMD for each job, without a shell. CMD is split as a shell
would split it (white space, '…', "…", \), but nothing is expanded: for pipes or
variables write  --exec 'KIND=sh -c "…"'. KIND ends at the first =, so a kind that
holds one cannot be served here. The command reads the input from
standard input; its standard output, at most 1 MiB, becomes the job's output (more
ends the job); the end of its standard error is the error text. It sees SETTLE_JOB
(the same at every attempt: an idempotency key) and SETTLE_ATTEMPT. Exit code 0
is done; 64-66, 76-78, 126 and 127 end the job; every other one, and a killing
signal, is tried again. The command is a process group of its own. At a timeout,
a cancellation and the end of --grace the whole group gets SIGTERM, 500ms later
SIGKILL; what is left of it when the command has ended, or when settle dies by
whatever means, is killed.

--http KIND=URL posts the input with the headers Settle-Job, Settle-Attempt and
Idempotency-Key, through HTTP_PROXY or HTTPS_PROXY if set. 200, 201, 202 and 204
are done, and the body, at most 1 MiB, is the output (more ends the job). Network
errors, 407, 408, 425, 429, 5xx (but 501), other 2xx and HTML pages are tried
again; Retry-After is honoured up to 1 h. All other answers end the job,
redirects among them.

--drain ends when nothing is due and nothing runs. A database that is damaged ends
it at once, one that cannot be written for a minute then, both with exit code 1.

The first Ctrl-C or SIGTERM stops claiming and gives running jobs --grace, then
hands them back uncharged; a second one, a second or more later, kills them.`,
		Example: `  settle work --exec mail.send=./send-mail
  settle work --queue video -j 2 --exec 'video.analyze=python3 analyze.py --fast'
  settle work --exec 'report=sh -c "./report | gzip"' --drain   # for cron
  settle work --http order.ship=https://shop.example/hooks/ship`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error { return a.work(c.Context(), c, &f) },
	}
	f.add(c)
	return c
}

func (f *workFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.exec, "exec", nil, "run a command for the jobs of a kind: `KIND=CMD`; may be repeated")
	fs.StringArrayVar(&f.http, "http", nil, "post the jobs of a kind to an address: `KIND=URL`; may be repeated")
	fs.StringVar(&f.queue, "queue", settle.DefaultQueue, "run the jobs of queue `NAME`")
	fs.IntVarP(&f.slots, "slots", "j", 64, "run `N` jobs at once")
	fs.IntVar(&f.limit, "limit", 0, "end after `N` attempts")
	fs.BoolVar(&f.drain, "drain", false, "end when nothing is due and nothing runs")
	spanVar(fs, &f.grace, "grace", 25*time.Second, "how long running jobs may go on after the first signal")
	spanVar(fs, &f.lease, "lease", 30*time.Second, "how soon another worker may take over after this one died")
	spanVar(fs, &f.poll, "poll", time.Second, "longest pause between two looks for due work")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "log warnings and errors only")
}

// check refuses what the worker would read as its default, or would only find
// when it runs.
func (f *workFlags) check(c *cobra.Command) error {
	for name, ok := range map[string]bool{"slots": f.slots > 0, "limit": f.limit > 0, "poll": f.poll > 0, "grace": f.grace >= 0} {
		if c.Flags().Changed(name) && !ok {
			return usagef("--%s %s: want more than 0", name, cmp.Or(c.Flags().Lookup(name).Value.String(), "0"))
		}
	}
	for _, d := range []struct {
		name       string
		is, lo, hi time.Duration
	}{{"lease", f.lease, time.Second, time.Hour}, {"poll", f.poll, time.Millisecond, time.Hour}, {"grace", f.grace, 0, 24 * time.Hour}} {
		if d.is < d.lo || d.is > d.hi {
			return usagef("--%s %s: want %s to %s", d.name, c.Flags().Lookup(d.name).Value, cmp.Or(spanFlag{&d.lo}.String(), "0s"), spanFlag{&d.hi})
		}
	}
	if f.queue == "" {
		return usagef("--queue: the name is empty")
	}
	return checkNames(f.queue, "", "", "")
}

// work runs until a signal, or until the flags say that it is enough.
func (a *app) work(ctx context.Context, c *cobra.Command, f *workFlags) (err error) {
	if err := f.check(c); err != nil {
		return err
	}
	var runner *child.Runner
	kill := func() {}
	if len(f.exec) > 0 {
		if runner, err = child.New(nil); err != nil {
			return err
		}
		kill = runner.Kill
		defer func() { err = errors.Join(err, runner.Close()) }()
	}
	targets, err := f.targets(runner)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if f.quiet {
		level = slog.LevelWarn
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
	return a.change(ctx, false, func(st settle.Store) error {
		ctx, stop := untilSignal(ctx, log, kill)
		defer stop()
		var sum tally
		w := worker.New(st, worker.Config{Queue: f.queue, Slots: f.slots, Lease: f.lease, Poll: f.poll, Drain: max(f.grace, time.Nanosecond),
			UntilIdle: f.drain, Limit: f.limit, Logger: log, Events: worker.Events{Settled: sum.settled}})
		for kind, t := range targets {
			worker.HandleRaw(w, kind, handler(t))
		}
		warnUnserved(ctx, st, f.queue, targets, log)
		err := w.Run(ctx)
		log.Info("worked", "succeeded", sum.succeeded.Load(), "dead", sum.dead.Load(), "again", sum.again.Load())
		return err
	})
}

// tally counts what attempts of this process came to.
type tally struct{ succeeded, dead, again atomic.Int64 }

// settled is the worker's event.
func (t *tally) settled(s worker.Settled) {
	if s.Applied != settle.Done || s.By != "holder" {
		return
	}
	switch s.Transition.To {
	case settle.Succeeded:
		t.succeeded.Add(1)
	case settle.Dead:
		t.dead.Add(1)
	default:
		t.again.Add(1)
	}
}

// untilSignal returns a context that the first signal ends. The second kills
// what runs and leaves the program.
func untilSignal(ctx context.Context, log *slog.Logger, kill func()) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	release := catch(signals)
	over := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case s := <-signals:
				if n > 0 {
					log.Warn("killed: the jobs that ran are taken over when their leases run out", "signal", s.String())
					kill()
					os.Exit(exitFailed)
				}
				log.Info("stopping: no job is claimed any more, running ones may go on for a while; a second signal kills them", "signal", s.String())
				cancel()
			}
		}
	}()
	return ctx, func() {
		release()
		close(over)
		cancel()
	}
}

// warnUnserved says which kinds have live jobs here that this worker leaves
// alone: a mistyped kind would otherwise look like an empty queue.
func warnUnserved(ctx context.Context, st settle.Reader, queue string, targets map[string]xwork.Target, log *slog.Logger) {
	ages, err := st.Ages(ctx)
	if err != nil {
		return // the worker meets the same error and says it
	}
	var others []string
	for _, g := range ages {
		if g.Queue == queue && targets[g.Kind] == nil {
			others = append(others, cell(g.Kind))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		log.Warn("live jobs of other kinds are left alone", "queue", queue, "kinds", strings.Join(others, ","))
	}
}
