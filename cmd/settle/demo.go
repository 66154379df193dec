package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// newDemoCmd holds the demonstrations.
func newDemoCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "see what goes wrong elsewhere, and how settle ends it",
		Long: `Show one thing that goes wrong with background work, side by side with what settle
does. A demo works in a folder of its own, which it removes, and touches no
database of yours. It ends with 1 when settle did not do what it promises.`,
		Example: `  settle demo hang`,
		Args:    unknownCommand,
		RunE:    showHelp,
	}
	c.AddCommand(newDemoHangCmd(a))
	return c
}

// newDemoHangCmd shows the answer that was read and not understood.
func newDemoHangCmd(a *app) *cobra.Command {
	h := newHang(a)
	c := &cobra.Command{
		Use:   "hang",
		Short: "a failure notice that is read, not understood, and gone",
		Long: `Render a film on a node that runs out of memory and says so in its answer. Two
consumers wait for that answer, side by side. The naive one reads it with a read
that deletes, takes whatever is no result for "not there yet", and waits for ever.
settle ends the wait, keeps the node's words, and lets another node do the work.

Both nodes are simulated in this process, on loopback. Answers come to settle by
HTTP callbacks, and to the naive consumer by a mailbox in memory.

With --redis they come by a Redis of yours, 6.2 or newer: to settle by streams, to
the naive consumer by SET, PUBLISH and GETDEL. All names there begin with
settle-demo- and a random word, and are removed at the end.

It takes about ten seconds, at most 45. Exit codes: 0 settle did what it promises,
1 it did not, or the demo was stopped or failed, 2 usage.`,
		Example: `  settle demo hang
  settle demo hang --redis redis://127.0.0.1:6379`,
		Args: wantArgs(0, 0, "no words, only flags"),
		RunE: func(c *cobra.Command, _ []string) error { return h.run(c.Context()) },
	}
	c.Flags().StringVar(&h.url, "redis", "", "let answers come by the Redis at `URL`, such as redis://127.0.0.1:6379")
	return c
}

// telling is a time line that is written while things happen, by anybody.
type telling struct {
	w      io.Writer
	colour bool
	broken func() // called when the reader is gone

	mu    sync.Mutex
	began time.Time
	err   error
}

// Colours of a terminal, by who speaks. Others are plain.
var colours = map[string]string{"settle": "\x1b[32m", "naive": "\x1b[33m"}

const plainly = "\x1b[0m"

// line writes one line of the time line.
func (t *telling) line(who, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := fmt.Sprintf("%-6s", who)
	if c := colours[who]; c != "" && t.colour {
		name, text = c+name, text+plainly
	}
	t.write(fmt.Sprintf("%5.1fs  %s  %s\n", time.Since(t.began).Seconds(), name, text))
}

// Write writes what is no part of the time line.
func (t *telling) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(string(b))
	return len(b), t.err
}

func (t *telling) write(s string) {
	if t.err == nil {
		if _, t.err = io.WriteString(t.w, s); t.err != nil {
			t.broken()
		}
	}
}

// colourful reports whether colours are wanted: https://no-color.org.
func colourful(terminal bool, env func(string) string) bool {
	return terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
}
