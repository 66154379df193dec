package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
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
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().StringVar(&a.db, "db", cmp.Or(a.env("SETTLE_DB"), defaultDB), "database file; SETTLE_DB names another default")
	root.PersistentFlags().Lookup("db").DefValue = defaultDB
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Do work:"}, &cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupSteer, Title: "Steer:"}, &cobra.Group{ID: groupUpkeep, Title: "Upkeep:"})
	addAll(root, groupRun, newRunCmd(a), newEnqueueCmd(a), newWorkCmd(a))
	addAll(root, groupLook, newStatusCmd(a), newAgeCmd(a), newAuditCmd(a), newJobsCmd(a), newJobCmd(a), newWhyCmd(a), newNodesCmd(a), newDemoCmd(a))
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
	word := args[0]
	msg := fmt.Sprintf("unknown command %q for %q", clip(word), c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	near := slices.DeleteFunc(c.SuggestionsFor(word), func(name string) bool { return !strings.HasPrefix(name, word[:min(1, len(word))]) }) // a short word is near to everything
	c.SuggestionsMinimumDistance = 1
	if len(near) == 0 {
		near = c.SuggestionsFor(word)
	}
	switch _, err := child.Find(word, ""); {
	case len(near) > 0:
		msg += "; did you mean " + strings.Join(near, ", ") + "?"
	case !c.HasParent() && err == nil:
		msg += fmt.Sprintf("; to run it for each line of the input: settle run -- %s", child.Line(args))
	default:
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		msg += "; there are: " + strings.Join(names, ", ")
	}
	return errors.New(msg)
}

// flagError says in our words what pflag says in those of a library.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &bad) {
		return err
	}
	f := bad.GetFlag()
	want := bad.Unwrap().Error()
	switch errors.As(err, &number); {
	case number == nil:
	case errors.Is(number, strconv.ErrRange):
		want = "is beyond what a number can hold"
	case f.Value.Type() == "bool":
		want = "want true or false"
	case f.Value.Type() == "intSlice":
		want = "want whole numbers, such as 1,3"
	default:
		want = "want a whole number"
	}
	return fmt.Errorf("--%s %q: %s", f.Name, clip(bad.GetValue()), want)
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
