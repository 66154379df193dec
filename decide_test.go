package settle

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/decide.golden and the table in docs/lifecycle.md anew")

const (
	goldenFile    = "testdata/decide.golden"
	lifecycleFile = "docs/lifecycle.md"
	tableBegin    = "<!-- begin of the table that Decide is tested against: go test . -update -->\n"
	tableEnd      = "<!-- end of the table -->\n"
)

// Half of the backoff: what the jitter of the table is.
const tableJitter = 0.5

func TestTableOfArrows(t *testing.T) {
	var got strings.Builder
	got.WriteString("| from | event | when | to | counters | recorded | besides | proves |\n")
	got.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range table {
		got.WriteString(r.line(t))
	}
	doc := read(t, lifecycleFile)
	before, rest, ok1 := strings.Cut(doc, tableBegin)
	inDoc, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s: the markers of the table are missing", lifecycleFile)
	}
	if *update {
		write(t, goldenFile, got.String())
		write(t, lifecycleFile, before+tableBegin+got.String()+tableEnd+after)
		return
	}
	same(t, goldenFile, read(t, goldenFile), got.String())
	same(t, lifecycleFile, inDoc, got.String())
}

// line decides the row for all its states, which must agree, and shows it.
func (r row) line(t *testing.T) string {
	var shown string
	for _, from := range r.from {
		t.Run(r.name(from), func(t *testing.T) {
			snap := baseSnapshot(from)
			if r.snap != nil {
				r.snap(&snap)
			}
			tr := Decide(snap, r.event, r.policy, tableJitter)
			checkTransition(t, snap, r.event, r.policy, tr)
			line := fmt.Sprintf("%s | %s | %s | %s | %s | %s",
				eventText(r.event), pick(r.when, " "), toText(tr), countersText(snap, tr), recordText(tr), besidesText(tr))
			if shown != "" && shown != line {
				t.Errorf("is not one row:\n%s\n%s", shown, line)
			}
			shown = line
		})
	}
	var from []string
	for _, s := range r.from {
		from = append(from, string(s))
	}
	line := fmt.Sprintf("| %s | %s | %s |", strings.Join(from, ", "), shown, r.proves)
	return strings.Join(strings.Fields(line), " ") + "\n"
}

// name is a sentence that begins with the promises that the row proves.
func (r row) name(from State) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", r.proves, from, eventText(r.event), r.when))
}

func TestTableMeetsEveryEventInEveryState(t *testing.T) {
	met := map[string]bool{}
	for _, r := range table {
		for _, s := range r.from {
			met[string(s)+" "+reflect.TypeOf(r.event).Name()] = true
		}
	}
	for _, s := range States {
		for _, ev := range everyEvent() {
			if key := string(s) + " " + reflect.TypeOf(ev).Name(); !met[key] {
				t.Errorf("no row for %s", key)
			}
		}
	}
	for _, end := range EndReasons {
		if !slices.ContainsFunc(table, func(r row) bool { return r.decide(r.from[0]).End == end }) {
			t.Errorf("no row ends with reason %s", end)
		}
	}
}

func (r row) decide(from State) Transition {
	snap := baseSnapshot(from)
	if r.snap != nil {
		r.snap(&snap)
	}
	return Decide(snap, r.event, r.policy, tableJitter)
}

func everyEvent() []Event {
	return []Event{Claimed{}, Settled{}, Deferred{}, Submitting{}, Parked{}, Delivered{}, Kept{}, Progressed{}, LeaseOver{},
		WaitOver{}, DeadlineOver{}, CancelAsked{}, RedriveAsked{}}
}

// ---- how a row is shown

func eventText(ev Event) string {
	words := []string{reflect.TypeOf(ev).Name()}
	outcome := func(o Outcome) {
		words = append(words, pick(string(o.Verdict), "(no verdict)"), quoteWords(o.Reason))
		if o.After != 0 {
			words = append(words, "after", short(o.After))
		}
	}
	switch e := ev.(type) {
	case Settled:
		outcome(e.Outcome)
		if e.Refused {
			words = append(words, "refused")
		}
	case Kept:
		outcome(e.Outcome)
	case Delivered:
		outcome(e.Outcome)
		if e.Retryable {
			words = append(words, "retryable")
		}
	case Deferred:
		words = append(words, quoteWords(e.Reason))
		if e.After != 0 {
			words = append(words, "for", short(e.After))
		}
		if e.Uncounted {
			words = append(words, "uncounted")
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// quoteWords sets reasons that are not on the list apart.
func quoteWords(r AttemptReason) string {
	if r == "" || slices.Contains(AttemptReasons, r) {
		return string(r)
	}
	return fmt.Sprintf("%q", string(r))
}

func toText(tr Transition) string {
	switch {
	case tr.Refusal != "":
		return "refused: " + string(tr.Refusal)
	case tr.To == Pending:
		return "**pending**, due in " + short(tr.After)
	case tr.To == Awaiting:
		return fmt.Sprintf("**awaiting**, looked at in %s, ceiling in %s", short(tr.After), short(tr.WaitLeft))
	case tr.To.Ended():
		return fmt.Sprintf("**%s**: %s", tr.To, tr.End)
	default:
		return "**" + string(tr.To) + "**"
	}
}

func countersText(s Snapshot, tr Transition) string {
	if tr.Refusal != "" {
		return ""
	}
	was, is := reflect.ValueOf(s.Counters), reflect.ValueOf(tr.Counters)
	var moved []string
	for i := range was.NumField() {
		if a, b := was.Field(i).Int(), is.Field(i).Int(); a != b {
			moved = append(moved, fmt.Sprintf("%s %d→%d", strings.ToLower(was.Type().Field(i).Name), a, b))
		}
	}
	return strings.Join(moved, ", ")
}

func recordText(tr Transition) string {
	r := tr.Record
	if r == nil {
		return ""
	}
	text := string(r.Reason)
	if r.Step != "" {
		text += " of step " + r.Step
	}
	if r.Node != "" {
		text += " on node " + r.Node
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}

func besidesText(tr Transition) string {
	var words []string
	if tr.Suspect {
		words = append(words, "suspect: runs alone")
	}
	if tr.Step != nil {
		words = append(words, "result of step "+tr.Step.Step+" stored")
	}
	if tr.Keep != nil {
		words = append(words, "the answer is kept")
	}
	if tr.To == Running && tr.Wait != nil {
		words = append(words, "ticket for node "+tr.Wait.Node+" recorded")
	}
	if tr.Recall != nil {
		words = append(words, "inserts "+tr.Recall.Kind)
	}
	if tr.Deadline > 0 {
		words = append(words, "deadline in "+short(tr.Deadline))
	}
	if tr.OnEnd != nil {
		words = append(words, "inserts "+tr.OnEnd.Kind)
	}
	return strings.Join(words, ", ")
}

// short writes a duration without its empty parts: 2h, not 2h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ---- small helpers of the tests of this package

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// same compares line by line, so that a difference names its line.
func same(t *testing.T, file, kept, now string) {
	t.Helper()
	a, b := strings.Split(kept, "\n"), strings.Split(now, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			t.Errorf("%s differs from what Decide says, line %d of the table:\n kept %s\n  now %s\nrun go test . -update and look at the difference", file, i+1, x, y)
			return
		}
	}
}
