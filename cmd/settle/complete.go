package main

import (
	"context"
	"slices"
	"strings"

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
	if c.Flags().Lookup("durability") != nil {
		_ = c.RegisterFlagCompletionFunc("durability", cobra.FixedCompletions([]cobra.Completion{"full", "normal"}, cobra.ShellCompDirectiveNoFileComp))
	}
	if c.Name() == "work" {
		_ = c.RegisterFlagCompletionFunc("exec", a.targetWords)
		_ = c.RegisterFlagCompletionFunc("http", a.targetWords)
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
	ctx := completing(c)
	var words []cobra.Completion
	_ = a.read(ctx, func(st settle.Store) (err error) {
		words, err = queues(ctx, st)
		return err
	})
	return words, cobra.ShellCompDirectiveNoFileComp
}

// targetWords lists the kinds of live jobs as the beginning of KIND=….
func (a *app) targetWords(c *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.Contains(word, "=") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var words []cobra.Completion
	_ = a.read(completing(c), func(st settle.Store) error {
		ages, err := st.Ages(completing(c))
		for _, g := range ages {
			words = append(words, g.Kind+"=")
		}
		return err
	})
	slices.Sort(words)
	return slices.Compact(words), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completing is the context of a completion.
func completing(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
