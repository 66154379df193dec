package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/xrun"
	"github.com/settle-go/settle/sqlite"
)

// runFlags are the flags of "settle run" that are more than a field of its
// Config.
type runFlags struct {
	xrun.Config
	file       string
	maxDead    string
	durability string
	dry        bool
}

// newRunCmd is durable xargs.
func newRunCmd(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG...]",
		Short: "run a command for each line of standard input, durably",
		Long: `Run a command for each item of the input, some at once, as xargs does. Killed by
any means and started again it goes on where it was: no item whose success was
recorded runs again, failed ones are tried again, and every item ends as
succeeded, dead or cancelled, which the closing table counts.

Input. Each line is an item (with -0, each part up to a NUL byte), passed on
byte for byte; blank lines are skipped. In the command these are replaced, as
often as they stand there; without any, the item is the last argument:

  {}   the item               {/}   without its folder     {#}  its number
  {.}  without its extension  {/.}  without both           {//} its folder

Commands run without a shell and with empty standard input. They see
SETTLE_ITEM, SETTLE_JOB (the same at every attempt: an idempotency key) and
SETTLE_ATTEMPT. Each is a process group of its own: what it leaves running there
when it ends is killed, and when settle dies, by whatever means, all processes of
its groups die too. Items that are settle's own files (the database and what lies
beside it) are skipped and counted apart.

Exit codes of the command. 0 is success. 64-66, 76-78, 126 and 127 (bad usage,
bad data, not found …) end the item at once. Every other one, a killing signal
and a timeout are tried again after a pause, up to --attempts. --ok and
--terminal add codes to either side.

Output. What an item that succeeded wrote goes to standard output, whole, before
its success is recorded: a kill may repeat it, never lose it. Until then it waits
in memory, or when it is longer in a file in TMPDIR; if that is full the run stops
and no item is charged. With -k a kill also repeats finished items that were
waiting for their turn. What a failed attempt wrote there is dropped, except that of
an item's last one, which goes to standard error, as does what commands write
there. An item's error text is the end of its standard error.

A run is named by --name, or after folder and command. It knows its items by
their text and how often that stands in the input, so the same input may be given
again, changed or longer: what was done is skipped, what is new is run, what is
missing from it still runs. A killed settle costs each item that was running one
attempt. Dead items stay dead until --retry-dead. A finished run is remembered
for 30 days, or until --forget. --attempts and --backoff are stored with an item
when it is first seen; all else is as this start says.

The first Ctrl-C or SIGTERM lets what runs go on for --grace; a second one, a
second or more later, kills it. Either way the same command continues.

Exit codes: 0 all items succeeded, 1 interrupted or failed, 2 usage, 3 all have
ended, some of them dead or cancelled.`,
		Example: `  find . -name '*.jpg' | settle run -- convert {} {.}.png
  find . -type f -print0 | settle run -0 -- gzip -k
  settle run --items urls.txt -j 20 --timeout 30s -- curl -fsSO {}
  ls *.csv | settle run --name import -k -- sh -c 'load < "$1"' sh {}`,
		Args: wantArgs(1, -1, "a command to run for each item, such as: settle run -- gzip {}"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Command = args
			f.DB, f.Again = a.db, again(cmd.Flags(), args, f.file)
			return a.runItems(cmd.Context(), &f)
		},
	}
	f.add(c.Flags())
	return c
}

// add adds the flags.
func (f *runFlags) add(fs *pflag.FlagSet) {
	fs.SetInterspersed(false) // flags behind the command are the command's
	fs.SortFlags = false
	fs.IntVarP(&f.Jobs, "jobs", "j", runtime.NumCPU(), "run `N` commands at once")
	fs.Lookup("jobs").DefValue = "number of cores"
	fs.StringVar(&f.file, "items", "", "read items from `FILE`, not from standard input")
	fs.BoolVarP(&f.NUL, "null", "0", false, "items end with a NUL byte, not with a line end (find -print0)")
	fs.IntVar(&f.Attempts, "attempts", 3, "try an item `N` times at most")
	spanVar(fs, &f.Timeout, "timeout", 24*time.Hour, "limit of one attempt: SIGTERM, 5s later SIGKILL, to its whole group")
	spanVar(fs, &f.Backoff, "backoff", time.Second, "longest pause before the second attempt; doubles with each, up to 15m")
	fs.IntSliceVar(&f.OK, "ok", nil, "exit `CODES` that are success, too, such as 1,3")
	fs.IntSliceVar(&f.Terminal, "terminal", nil, "exit `CODES` that end an item at once, too")
	fs.StringVar(&f.maxDead, "max-dead", "", "stop when more than `N` items die in this start, or N% of those that end")
	fs.BoolVarP(&f.Ordered, "keep-order", "k", false, "write output in the order of the input; a kill repeats finished items that wait for their turn")
	fs.BoolVar(&f.Tag, "tag", false, "begin each line of output with its item and a tab")
	fs.StringVar(&f.Name, "name", "", "name the run `NAME`, not after folder and command")
	fs.BoolVar(&f.RetryDead, "retry-dead", false, "give the run's dead items a new chance")
	fs.BoolVar(&f.Forget, "forget", false, "forget a finished run, and run all items anew")
	fs.BoolVar(&f.dry, "dry-run", false, "show what would be run and skipped, and change nothing")
	spanVar(fs, &f.Grace, "grace", 25*time.Second, "how long running commands may go on after the first Ctrl-C or SIGTERM")
	fs.StringVar(&f.durability, "durability", "full", "`MODE` full: what was recorded survives a power cut; normal: only a crash of settle, and is faster")
	fs.BoolVar(&f.JSON, "json", false, "write the closing table as one JSON object, to standard error")
}

// runItems carries the command out.
func (a *app) runItems(ctx context.Context, f *runFlags) (err error) {
	in, err := a.items(f.file)
	if err != nil {
		return err
	}
	if c, ok := in.(io.Closer); ok && in != a.in {
		defer c.Close()
	}
	if f.MaxDead, err = xrun.ParseMaxDead(f.maxDead); err != nil {
		return &exitError{exitUsage, err}
	}
	sync, err := durability(f.durability)
	if err != nil {
		return err
	}
	f.In, f.Out, f.Err = in, a.out, a.err
	f.Live = terminal(a.err) && !terminal(in) // what is typed stands in the line of progress
	f.Env = os.Environ()
	if f.Folder, err = os.Getwd(); err != nil {
		return fmt.Errorf("the current folder: %w", err)
	}
	stop := make(chan os.Signal, 2)
	f.Stop = stop
	plan, err := xrun.Prepare(f.Config)
	if err != nil {
		return runError(exitOK, err)
	}
	if f.dry {
		return a.dryRun(ctx, plan)
	}
	if err := a.look(false); err != nil {
		return err
	}
	st, err := sqlite.Open(a.db, sqlite.Config{Synchronous: sync})
	if err != nil {
		return a.denied(err, "")
	}
	defer catch(stop)()
	defer catchPipe()()
	code, err := plan.Start(ctx, st)
	return runError(code, errors.Join(err, st.Close()))
}

// dryRun shows what would be run; a database that does not exist stays so.
func (a *app) dryRun(ctx context.Context, plan *xrun.Plan) error {
	if _, err := os.Stat(a.db); errors.Is(err, fs.ErrNotExist) {
		return runError(exitOK, plan.DryRun(ctx, nil))
	}
	return a.read(ctx, func(st settle.Store) error { return runError(exitOK, plan.DryRun(ctx, st)) })
}

// runError makes an exit code and an error one.
func runError(code int, err error) error {
	var usage *xrun.UsageError
	switch {
	case errors.As(err, &usage):
		return &exitError{exitUsage, err}
	case err != nil:
		return &exitError{max(code, exitFailed), err}
	case code != exitOK:
		return &exitError{code: code}
	}
	return nil
}

// items opens the input.
func (a *app) items(file string) (io.Reader, error) {
	if file == "" || file == "-" {
		if terminal(a.in) {
			fmt.Fprintln(a.err, "settle: reading items from the terminal, one a line; Ctrl-D ends them")
		}
		return a.in, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("--items: %w", err)}
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, usagef("--items: %s is a folder: want a file with one item a line", file)
	}
	return f, nil
}

func durability(word string) (sqlite.Synchronous, error) {
	switch word {
	case "full":
		return sqlite.Full, nil
	case "normal":
		return sqlite.Normal, nil
	}
	return 0, usagef("--durability %q: want full or normal", clip(word))
}

// terminal reports whether a stream is one.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// again writes the command line that continues: all flags but those that are
// meant once.
func again(fs *pflag.FlagSet, args []string, file string) string {
	words := []string{"settle", "run"}
	fs.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "retry-dead", "forget", "dry-run":
		default:
			value := f.Value.String()
			if s, ok := f.Value.(pflag.SliceValue); ok {
				value = strings.Join(s.GetSlice(), ",")
			}
			if f.Value.Type() == "bool" && value == "true" {
				words = append(words, "--"+f.Name)
			} else {
				words = append(words, "--"+f.Name+"="+value)
			}
		}
	})
	line := child.Line(append(append(words, "--"), args...))
	if file == "" || file == "-" {
		line = "… | " + line
	}
	return line
}
