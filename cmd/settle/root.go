package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// Groups of the help page.
const (
	groupRun    = "run"
	groupLook   = "look"
	groupSteer  = "steer"
	groupUpkeep = "upkeep"
)

// newRoot builds the command tree on the app.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "settle",
		Short: "durable jobs, each of which reaches an end that you can see",
		Long: `settle runs durable jobs: each of them reaches an end that you can see.

Work is done at least once: after a crash a job may run again, so its effects
must be idempotent.

Exit codes: 0 fine, 1 failed, 2 usage, 3 unhealthy (run, age, audit, status --check).`,
		Example: `  find . -name '*.jpg' | settle run -- convert {} {.}.png
  settle enqueue mail.send '{"to":"ada@example.org"}'
  settle work --exec mail.send=./send-mail
  settle status`,
		Args:          unknownCommand,
		RunE:          showHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().StringVar(&a.db, "db", cmp.Or(a.env("SETTLE_DB"), defaultDB), "database file; SETTLE_DB names another default")
	root.PersistentFlags().Lookup("db").DefValue = defaultDB
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Do work:"}, &cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupSteer, Title: "Steer:"}, &cobra.Group{ID: groupUpkeep, Title: "Upkeep:"})
	addAll(root, groupRun, newRunCmd(a), newEnqueueCmd(a), newWorkCmd(a))
	addAll(root, groupLook, newStatusCmd(a), newAgeCmd(a), newAuditCmd(a), newJobsCmd(a), newJobCmd(a), newWhyCmd(a))
	addAll(root, groupSteer, newCancelCmd(a), newPauseCmd(a), newResumeCmd(a), newHoldCmd(a), newReleaseCmd(a), newDeadCmd(a))
	addAll(root, groupUpkeep, newMigrateCmd(a), newRepairCmd(a), newVersionCmd(a))
	root.SetHelpCommandGroupID(groupUpkeep)
	root.SetCompletionCommandGroupID(groupUpkeep)
	markRuns(a, root)
	complete(a, root)
	return root
}

func addAll(root *cobra.Command, group string, cmds ...*cobra.Command) {
	for _, c := range cmds {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// markRuns notes when a command's own code begins: an error before that comes
// from the parsing of the command line.
func markRuns(a *app, c *cobra.Command) {
	if f := c.RunE; f != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			a.ran = true
			return f(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		markRuns(a, sub)
	}
}

// showHelp is what a command does that only holds others.
func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// unknownCommand refuses words behind a command that only holds others.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	msg := fmt.Sprintf("unknown command %q for %q", args[0], c.CommandPath())
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return errors.New(msg)
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	code := exitCode(a, err)
	if err == nil || code != exitOK && errors.Is(err, errSaid) {
		return code
	}
	if e := (*exitError)(nil); errors.As(err, &e) && e.err == nil {
		return code
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(a.err, "settle: %s\n", safeLine(line))
	}
	if code == exitUsage {
		fmt.Fprintf(a.err, "try: %s --help\n", cmd.CommandPath())
	}
	return code
}

// errSaid marks failures of which every line has been printed already.
var errSaid = errors.New("some of it failed")

// exitCode chooses the code of an error.
func exitCode(a *app, err error) int {
	var exit *exitError
	var invalid *settle.InvalidError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case !a.ran, errors.As(err, &invalid):
		return exitUsage
	default:
		return exitFailed
	}
}
