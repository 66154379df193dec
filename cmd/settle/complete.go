package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// complete adds shell completion of names that the database knows, for every
// command below c.
func complete(a *app, c *cobra.Command) {
	if c.Flags().Lookup("queue") != nil {
		_ = c.RegisterFlagCompletionFunc("queue", a.queueWords)
	}
	if c.Flags().Lookup("state") != nil {
		words := []cobra.Completion{"live", "ended"}
		for _, s := range settle.States {
			words = append(words, string(s))
		}
		_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	switch c.Name() {
	case "pause", "resume":
		c.ValidArgsFunction = a.queueWords
	case "enqueue", "run", "completion", "help":
	default:
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		complete(a, sub)
	}
}

// queueWords lists the queues; where there is no database, none.
func (a *app) queueWords(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	var words []cobra.Completion
	_ = a.read(ctx, func(st settle.Store) (err error) {
		words, err = queues(ctx, st)
		return err
	})
	return words, cobra.ShellCompDirectiveNoFileComp
}
