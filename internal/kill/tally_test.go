//go:build linux

package kill

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fewest is how many kills a long run must have made.
const fewest = 500

// tally counts kills by the point at which they came.
type tally struct {
	mu sync.Mutex
	at map[string]*count
}

// count says of one point how often what was under way had been done.
type count struct {
	all, done, not int // done + not < all: there was nothing to ask
	drawn          [2]int
}

var kills = tally{at: map[string]*count{}}

func (k *tally) point(name string) *count {
	if k.at[name] == nil {
		k.at[name] = &count{}
	}
	return k.at[name]
}

// add counts one kill of which nothing was asked.
func (k *tally) add(point string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.point(point).all++
}

// addAsked counts one kill; drawn: its moment was drawn, not exact.
func (k *tally) addAsked(point string, done, drawn bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.point(point)
	c.all++
	at := 0
	if done {
		c.done++
		at = 1
	} else {
		c.not++
	}
	if drawn {
		c.drawn[at]++
	}
}

// bothWays fails a long run unless drawn moments came on both sides of the
// point: else the calls were not really met.
func (k *tally) bothWays(t *testing.T, points ...string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range points {
		c := k.point(p)
		if c.all == 0 || long && (c.drawn[0] == 0 || c.drawn[1] == 0) {
			t.Errorf("%s: %d kills; of those at a drawn moment %d came before it was done and %d after: want some of each", p, c.all, c.drawn[0], c.drawn[1])
		}
	}
}

func (k *tally) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, parts := 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(k.at)) {
		c := k.at[name]
		all += c.all
		part := fmt.Sprintf("%s %d", name, c.all)
		if c.done+c.not > 0 {
			part += fmt.Sprintf(" (%d done, %d not)", c.done, c.not)
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%d kills: %s", all, strings.Join(parts, ", "))
}

// close prints the count and, if all tests were to run, holds a long run to it.
func (k *tally) close() error {
	if len(k.at) == 0 {
		return nil
	}
	if text := k.String(); testing.Verbose() || long {
		fmt.Println(text)
	}
	all := 0
	for _, c := range k.at {
		all += c.all
	}
	if whole := flag.Lookup("test.run").Value.String() == ""; long && whole && all < fewest {
		return fmt.Errorf("%d kills, want at least %d", all, fewest)
	}
	return nil
}
