package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
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
		Long: `Run the jobs of a queue: each kind with a command or an HTTP target. Work is done
at least once, so targets must bear being called again.

--exec KIND=CMD runs CMD for every job, without a shell. CMD is split as a shell
would split it (white space, '…', "…", \), but nothing is expanded: for pipes or
variables write  --exec 'KIND=sh -c "…"'. The input is its standard input, its
standard output becomes the job's output (at most 1 MiB, else the job is dead),
the end of its standard error is the error text. SETTLE_JOB and SETTLE_ATTEMPT
stand in its environment. Exit code 0 is done; 64-66, 76-78, 126 and 127 end the
job; all others, and a killing signal, are tried again. The command runs in a
process group of its own, which is killed at the job's timeout, when the job is
cancelled, when the command has ended, and when settle leaves.

--http KIND=URL posts the input with the headers Settle-Job, Settle-Attempt and
Idempotency-Key. 200, 201, 202 and 204 are done, and the body (at most 1 MiB) is
the output; an HTML page is not. 408, 425, 429, 5xx (but 501) and network errors
are tried again, Retry-After is honoured up to 1 h. Other answers, redirects
among them, end the job.

The first Ctrl-C or SIGTERM stops claiming and gives running jobs --grace, then
hands them back uncharged; the second kills them.`,
		Example: `  settle work --exec mail.send=./send-mail
  settle work --queue video -j 2 --exec 'video.analyze=python3 analyze.py --fast'
  settle work --http order.ship=https://shop.example/hooks/ship
  settle work --exec report=./report --drain     # for cron: ends when nothing is due`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error { return a.work(c.Context(), c, &f) },
	}
	f.add(c)
	return c
}

func (f *workFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringArrayVar(&f.exec, "exec", nil, "run this command for jobs of a kind: KIND=CMD; may be repeated")
	fs.StringArrayVar(&f.http, "http", nil, "post jobs of a kind to this address: KIND=URL; may be repeated")
	fs.StringVar(&f.queue, "queue", settle.DefaultQueue, "queue to serve")
	fs.IntVarP(&f.slots, "slots", "j", 64, "how many jobs run at once")
	fs.IntVar(&f.limit, "limit", 0, "end after this many attempts")
	fs.BoolVar(&f.drain, "drain", false, "end when nothing is claimable, running or buffered")
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
			return usagef("--%s %s: want more than 0", name, c.Flags().Lookup(name).Value)
		}
	}
	if f.lease < time.Second || f.lease > time.Hour {
		return usagef("--lease %s: want 1s to 1h", f.lease)
	}
	if f.queue == "" {
		return usagef("--queue: the name is empty")
	}
	return checkNames(f.queue, "", "", "")
}

// work runs until a signal, or until the flags say that it is enough.
func (a *app) work(ctx context.Context, c *cobra.Command, f *workFlags) error {
	if err := f.check(c); err != nil {
		return err
	}
	group := &xwork.Group{}
	targets, err := a.targets(f, group)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if f.quiet {
		level = slog.LevelWarn
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
	return a.change(ctx, false, func(st settle.Store) error {
		ctx, stop := a.untilSignal(ctx, log, group)
		defer stop()
		defer group.Kill()
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
func (a *app) untilSignal(ctx context.Context, log *slog.Logger, group *xwork.Group) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // the terminal is closed, and nohup did not say to ignore that
		signal.Notify(signals, syscall.SIGHUP)
	}
	over := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case s := <-signals:
				if n > 0 {
					log.Warn("killed: the jobs that ran are taken over when their leases run out", "signal", s.String())
					group.Kill()
					os.Exit(exitFailed)
				}
				log.Info("stopping: no job is claimed any more, running ones may go on for a while; a second signal kills them", "signal", s.String())
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
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
