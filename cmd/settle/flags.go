package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/settle-go/settle"
)

// spanFlag is a duration flag that also knows days: "36h", "1d12h", "30d".
type spanFlag struct{ d *time.Duration }

// spanVar adds a duration flag that also knows days.
func spanVar(fs *pflag.FlagSet, d *time.Duration, name string, def time.Duration, usage string) {
	*d = def
	fs.Var(spanFlag{d}, name, usage)
	if def == 0 {
		fs.Lookup(name).DefValue = ""
	}
}

// String returns the exact value, as Set reads it.
func (f spanFlag) String() string {
	const day = 24 * time.Hour
	switch {
	case f.d == nil || *f.d == 0:
		return ""
	case *f.d%day == 0:
		return fmt.Sprintf("%dd", *f.d/day)
	default:
		return trimZero(f.d.String())
	}
}

// Type names the value in the help text.
func (spanFlag) Type() string { return "duration" }

// Set parses one value.
func (f spanFlag) Set(s string) error {
	d, err := parseSpan(s)
	if err == nil {
		*f.d = d
	}
	return err
}

// parseSpan is time.ParseDuration with days in front.
func parseSpan(s string) (time.Duration, error) {
	bad := errors.New("want a duration such as 90s, 15m, 36h or 7d")
	days, rest, found := strings.Cut(s, "d")
	if !found {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, bad
		}
		return d, nil
	}
	n, err := strconv.ParseInt(days, 10, 64)
	if err != nil {
		return 0, bad
	}
	if n > math.MaxInt64/int64(24*time.Hour)-1 || n < math.MinInt64/int64(24*time.Hour)+1 {
		return 0, errors.New("is beyond what a duration can hold")
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more >= 24*time.Hour {
		return 0, bad
	}
	if n < 0 {
		more = -more
	}
	return d + more, nil
}

// jsonFlag adds --json.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "write JSON, one object a line: times RFC 3339 UTC, durations in seconds")
}

// filterFlags choose jobs.
type filterFlags struct {
	queue, kind, tenant, key string
	states                   []string
	all                      bool
}

// add adds the flags that every filter has.
func (f *filterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.queue, "queue", "", "only jobs of this queue")
	c.Flags().StringVar(&f.kind, "kind", "", "only jobs of this kind")
	c.Flags().StringVar(&f.tenant, "tenant", "", "only jobs of this tenant")
}

// any reports whether something is chosen.
func (f *filterFlags) any() bool {
	return f.all || f.queue != "" || f.kind != "" || f.tenant != "" || f.key != ""
}

// filter checks the flags and returns the filter.
func (f *filterFlags) filter() (settle.Filter, error) {
	out := settle.Filter{Queue: f.queue, Kind: f.kind, Tenant: f.tenant, Key: f.key}
	for _, s := range f.states {
		states, err := parseState(s)
		if err != nil {
			return out, err
		}
		out.States = append(out.States, states...)
	}
	return out, checkNames(f.queue, f.kind, f.tenant, f.key)
}

// parseState reads a state, or "live" or "ended" for three of them.
func parseState(s string) ([]settle.State, error) {
	switch s {
	case "live":
		return settle.States[:3], nil
	case "ended":
		return settle.States[3:], nil
	}
	var words []string
	for _, st := range settle.States {
		if s == string(st) {
			return []settle.State{st}, nil
		}
		words = append(words, string(st))
	}
	return nil, usagef("--state %q: want %s, live or ended", clip(s), strings.Join(words, ", "))
}

// checkNames holds names to what a job may carry, by asking the one place that
// knows: a job that carries them.
func checkNames(queue, kind, tenant, key string) error {
	n := settle.New{Kind: cmp.Or(kind, "any"), EnqueueOpts: settle.EnqueueOpts{Queue: queue, Tenant: tenant, Key: key}}
	_, _, err := n.Prepare(time.Unix(0, 0))
	return err
}

// parseIDs reads job ids; a wrong one is a usage error.
func parseIDs(args []string) ([]settle.ID, error) {
	ids := make([]settle.ID, len(args))
	for i, s := range args {
		id, err := settle.ParseID(s)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		if id.IsZero() {
			return nil, usagef("job id %s names no job", s)
		}
		ids[i] = id
	}
	return ids, nil
}

// args wraps a check of positional arguments so that its error says what was
// wanted.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("want %s", what)
		case most >= 0 && len(args) > most:
			return fmt.Errorf("want %s; %q is one word too many", what, clip(args[most]))
		}
		return nil
	}
}

// clip shortens what a user typed for an error message.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "…"
}
