package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/settle-go/settle"
)

// knownQueue refuses the name of a queue in which no job has ever been: a
// mistyped name must not look like an empty, healthy queue. "" is every queue.
func knownQueue(ctx context.Context, st settle.Store, db, queue string) error {
	if queue == "" {
		return nil
	}
	for _, err := range settle.NewClient(st).List(ctx, settle.Filter{Queue: queue, Limit: 1}) {
		return err // one job is enough
	}
	known, err := queues(ctx, st)
	switch {
	case err != nil || slices.Contains(known, queue):
		return err
	case len(known) == 0:
		return fmt.Errorf("queue %q is unknown: %s has no job yet", clip(queue), db)
	}
	return fmt.Errorf("queue %q is unknown in %s; there are: %s", clip(queue), db, strings.Join(cells(known[:min(len(known), 20)]), ", "))
}

// queues lists the queues that are known, also those whose jobs have all been
// removed.
func queues(ctx context.Context, st settle.Store) (names []string, err error) {
	ages, err := st.Ages(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := st.Counts(ctx, 0)
	if err != nil {
		return nil, err
	}
	removed, err := st.Removed(ctx)
	for _, g := range ages {
		names = append(names, g.Queue)
	}
	for _, c := range counts {
		names = append(names, c.Queue)
	}
	for _, r := range removed {
		names = append(names, r.Queue)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

func cells(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = cell(n)
	}
	return out
}
