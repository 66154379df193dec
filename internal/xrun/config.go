package xrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/xrun/split"
	"github.com/settle-go/settle/internal/xrun/tmpl"
)

// Config is what a start of a run is asked to do: the flags of "settle run".
// Only Command, In, Out, Err, DB, Folder and the numbers are needed.
type Config struct {
	Command []string // the program and its arguments, with placeholders
	Name    string   // of the run; "" = made from folder and command
	DB      string   // path of the database, for the lock and for people
	Again   string   // the command line that goes on, for people

	In       io.Reader
	Out, Err io.Writer
	Live     bool // Err is a terminal: show a line of progress

	NUL       bool // items are separated by NUL, not by line ends
	Jobs      int  // commands at once
	Attempts  int
	Timeout   time.Duration // of one attempt
	Grace     time.Duration // of running commands when the run is interrupted
	Backoff   time.Duration // longest wait before the second attempt; doubles
	OK        []int         // exit codes that are OK, besides the table
	Terminal  []int         // exit codes that end the item
	MaxDead   MaxDead
	Ordered   bool // output in the order of the input
	Tag       bool // lines of output begin with their item
	RetryDead bool
	Forget    bool
	JSON      bool // the closing table as JSON

	// Stop brings the wish to stop: the first one to finish what runs, the
	// second one to kill it. nil = there is none.
	Stop <-chan os.Signal
	// Folder is this process's own folder, in which commands run: with the
	// command it names the run. Env is what commands inherit.
	Folder string
	Env    []string

	window int                      // of -k, for tests; 0 = the default
	dir    string                   // where commands run, for tests; "" = this process's folder
	spools func() (*os.File, error) // makes a file for output, for tests; nil = child.Spool
}

// UsageError: what was asked for cannot be done as it was asked.
type UsageError struct{ Err error }

// Error returns the text of the cause.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Bounds of what may be asked for.
const (
	maxJobs     = 10_000
	maxAttempts = 1_000
	maxTimeout  = 30 * 24 * time.Hour
	maxGrace    = time.Hour
	maxBackoff  = 24 * time.Hour
)

func (c Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Jobs < 1 || c.Jobs > maxJobs {
		fault("--jobs %d: want 1 to %d", c.Jobs, maxJobs)
	}
	if c.Attempts < 1 || c.Attempts > maxAttempts {
		fault("--attempts %d: want 1 to %d", c.Attempts, maxAttempts)
	}
	for _, f := range []struct {
		name       string
		is, lo, hi time.Duration
	}{
		{"--timeout", c.Timeout, time.Millisecond, maxTimeout},
		{"--grace", c.Grace, 0, maxGrace},
		{"--backoff", c.Backoff, time.Millisecond, maxBackoff},
	} {
		if f.is < f.lo || f.is > f.hi {
			fault("%s %s: want %s to %s", f.name, flagSpan(f.is), flagSpan(f.lo), flagSpan(f.hi))
		}
	}
	if most := (openFiles() - reserve) / filesPerJob; c.Jobs <= maxJobs && c.Jobs > most {
		fault("--jobs %d: this process may have %d files open, which is enough for %d at once; see ulimit -n", c.Jobs, openFiles(), most)
	}
	faults = append(faults, checkCodes(c.OK, c.Terminal))
	if err := errors.Join(faults...); err != nil {
		return &UsageError{err}
	}
	return nil
}

// checkCodes checks both lists of exit codes.
func checkCodes(ok, terminal []int) error {
	in := map[int]bool{}
	for _, code := range ok {
		in[code] = true
	}
	for _, code := range terminal {
		if in[code] {
			return fmt.Errorf("exit code %d stands in --ok and in --terminal", code)
		}
		if code == 0 && len(ok) == 0 {
			return errors.New("--terminal 0: 0 is success; if it is not here, say with --ok which codes are")
		}
	}
	for _, code := range append(append([]int{}, ok...), terminal...) {
		if code < 0 || code > 255 {
			return fmt.Errorf("exit code %d: want 0 to 255", code)
		}
	}
	return nil
}

// policy is what is stored with each job. The timeout of an attempt and the
// end of the worker's patience are not the same: an item that waits for its
// turn to be written (-k) is not late. So --timeout, which is always this
// start's, is kept by work, and the job has the longest one.
func (c Config) policy() settle.Policy {
	return settle.Policy{
		Attempts: c.Attempts,
		// Every attempt may end with a kill of settle; the last one then runs
		// alone, so that an item that kills settle takes no other with it.
		Crashes:    c.Attempts,
		Deferrals:  1_000_000, // of -k in a hurry, and of one Ctrl-C after the other
		Timeout:    maxTimeout,
		BackoffMin: c.Backoff,
		BackoffMax: max(c.Backoff, 15*time.Minute),
		Deadline:   365 * 24 * time.Hour,
	}
}

func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Plan is a checked Config and what was found out from it.
type Plan struct {
	Config
	tmpl  tmpl.Template
	path  string // the program's file; "" = it depends on the item
	items *split.Reader
}

// Prepare checks everything that can be checked before a database is opened,
// without waiting for input. Faults are UsageErrors.
func Prepare(c Config) (*Plan, error) {
	if len(c.Command) == 0 {
		return nil, usagef("want a command to run for each item, such as: settle run -- gzip {}")
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.window == 0 {
		c.window = window
	}
	if c.spools == nil {
		c.spools = child.Spool
	}
	p := &Plan{Config: c, tmpl: tmpl.Parse(c.Command), items: split.New(c.In, c.NUL)}
	if program, known := p.tmpl.Program(); known {
		path, err := find(program, c.dir)
		if err != nil {
			return nil, &UsageError{err}
		}
		p.path = path
	} else if strings.ContainsAny(c.Command[0], shellSyntax) {
		return nil, &UsageError{noShell(c.Command[0])}
	}
	if p.Name == "" {
		p.Name = runName(p.folder(), c.Command)
	} else if err := checkName(p.Name); err != nil {
		return nil, &UsageError{err}
	}
	if f, ok := c.In.(*os.File); ok && regular(f) { // else the first reading tells
		if err := p.items.Check(); err != nil {
			return nil, &UsageError{err}
		}
	}
	return p, nil
}
