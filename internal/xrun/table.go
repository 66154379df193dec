package xrun

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// summary is the closing table.
type summary struct {
	Run       string                 `json:"run"`
	Queue     string                 `json:"queue"`
	DB        string                 `json:"db"`
	Complete  bool                   `json:"complete"`      // every item has ended
	Why       string                 `json:"why,omitempty"` // else: why not
	Again     string                 `json:"-"`
	Took      float64                `json:"seconds"`
	Items     int64                  `json:"items"` // in the input, as far as it was read
	Succeeded int64                  `json:"succeeded"`
	Before    int64                  `json:"succeeded_before"` // of them: before this start
	Open      int64                  `json:"open"`             // not ended
	Refused   int64                  `json:"refused"`          // too long to be stored
	Skipped   int64                  `json:"skipped_own_files,omitempty"`
	Left      map[settle.State]int64 `json:"left_from_earlier_input,omitempty"`
	Earlier   int64                  `json:"bad_in_earlier_input,omitempty"` // neither in this input nor run now
	Bad       []*badGroup            `json:"bad,omitempty"`
	LeftBad   []*badGroup            `json:"left_bad,omitempty"` // of Left
}

// badGroup is the items that ended in the same way, without success.
type badGroup struct {
	State  settle.State     `json:"state"`
	Reason settle.EndReason `json:"reason"`
	N      int64            `json:"n"`
	First  []badItem        `json:"first"`
}

type badItem struct {
	Number int64     `json:"number"` // in the input in which it was first seen
	Item   string    `json:"item"`   // for people: quoted, perhaps cut
	Job    settle.ID `json:"job"`
	Error  string    `json:"error"`
}

// group returns the group of a state and reason.
func group(groups *[]*badGroup, st settle.State, why settle.EndReason) *badGroup {
	for _, g := range *groups {
		if g.State == st && g.Reason == why {
			return g
		}
	}
	g := &badGroup{State: st, Reason: why}
	*groups = append(*groups, g)
	return g
}

// bad is how many items of the input ended without success, the refused ones
// among them.
func (s *summary) bad() int64 {
	n := s.Refused
	for _, g := range s.Bad {
		n += g.N
	}
	return n
}

// String writes the table.
func (s *summary) String() string {
	var b strings.Builder
	took := shortSpan(time.Duration(s.Took * float64(time.Second)))
	switch {
	case s.Complete && s.Items+s.Refused+s.Skipped+sum(s.Left) == 0:
		fmt.Fprintf(&b, "settle: the input held no item\n")
	case s.Complete && s.bad() == 0:
		fmt.Fprintf(&b, "settle: done in %s: %s succeeded%s\n", took, items(s.Succeeded), s.before())
	case s.Complete:
		fmt.Fprintf(&b, "settle: done in %s: %s succeeded%s, %s did not\n", took, items(s.Succeeded), s.before(), humanize.Comma(s.bad()))
	default:
		fmt.Fprintf(&b, "settle: stopped after %s (%s): %s succeeded%s, %s still to run\n", took, s.Why, items(s.Succeeded), s.before(), humanize.Comma(s.Open))
	}
	if len(s.Bad) > 0 {
		fmt.Fprintf(&b, "  %-22s %9s\n", settle.Succeeded, humanize.Comma(s.Succeeded))
	}
	for _, g := range s.Bad {
		g.write(&b)
	}
	if s.Refused > 0 {
		fmt.Fprintf(&b, "  %-22s %9s  too long to be stored, see above\n", "refused", humanize.Comma(s.Refused))
	}
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "  %-22s %9s  settle's own files, see above\n", "skipped", humanize.Comma(s.Skipped))
	}
	if text := endsText(s.Left); text != "" {
		fmt.Fprintf(&b, "  not in this input, left from an earlier one, and counted apart: %s\n", text)
		for _, g := range s.LeftBad {
			g.write(&b)
		}
	}
	if s.Earlier > 0 {
		fmt.Fprintf(&b, "  not in this input, and dead or cancelled since an earlier one: %s\n", humanize.Comma(s.Earlier))
	}
	s.hints(&b)
	return b.String()
}

func (s *summary) before() string {
	if s.Before == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s before this start)", humanize.Comma(s.Before))
}

func (s *summary) hints(b *strings.Builder) {
	where := "--queue " + child.Quote(s.Queue) + dbFlag(s.DB)
	if s.any(settle.Dead) {
		fmt.Fprintf(b, "settle: see all: settle dead list %s; try them again: the same command with --retry-dead\n", where)
	}
	if s.any(settle.Cancelled) {
		fmt.Fprintf(b, "settle: see what was cancelled: settle jobs %s --state cancelled; to run one after all: settle dead redrive ID%s, then the same command\n", where, dbFlag(s.DB))
	}
	if !s.Complete {
		fmt.Fprintf(b, "settle: the same command continues: %s\n", s.Again)
	}
}

// any reports whether the table names an item that ended so.
func (s *summary) any(st settle.State) bool {
	is := func(g *badGroup) bool { return g.State == st }
	return slices.ContainsFunc(s.Bad, is) || slices.ContainsFunc(s.LeftBad, is)
}

func dbFlag(db string) string {
	if db == "settle.db" {
		return ""
	}
	return " --db " + child.Quote(db)
}

// errorWidth is how much of an error text the table shows, in bytes.
const errorWidth = 300

func (g *badGroup) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %-22s %9s", string(g.State)+": "+string(g.Reason), humanize.Comma(g.N))
	for i, it := range g.First {
		if i > 0 {
			fmt.Fprintf(b, "  %-22s %9s", "", "")
		}
		b.WriteString("  ")
		if it.Number > 0 {
			fmt.Fprintf(b, "#%d ", it.Number)
		}
		fmt.Fprintf(b, "%s", it.Item)
		if it.Error != "" {
			fmt.Fprintf(b, ": %s", cutStart(it.Error, errorWidth))
		}
		b.WriteString("\n")
	}
	if more := g.N - int64(len(g.First)); more > 0 {
		fmt.Fprintf(b, "  %-22s %9s  and %s more\n", "", "", humanize.Comma(more))
	}
}

// cutStart keeps the end of a text: it holds the reason.
func cutStart(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := len(s) - n
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return "…" + s[at:]
}
