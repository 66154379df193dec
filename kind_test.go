package settle

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

type mailIn struct{ To string }

var mail = Define[mailIn, None]("mail.send", Policy{Attempts: 5})

// noon is the store's clock in these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestDefineRefusesWhatCannotBeStored(t *testing.T) {
	for name, define := range map[string]func(){
		"no name":          func() { Define[None, None]("", Policy{}) },
		"a line break":     func() { Define[None, None]("a\nb", Policy{}) },
		"a bad policy":     func() { Define[None, None]("a", Policy{Attempts: -1}) },
		"a name too long":  func() { Define[None, None](strings.Repeat("a", MaxName+1), Policy{}) },
		"a bad hook":       func() { Define[None, None]("a", Policy{OnEnd: " "}) },
		"a short deadline": func() { Define[None, None]("a", Policy{Deadline: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if said := recover(); said == nil || !strings.HasPrefix(said.(string), "settle.Define: ") {
					t.Errorf("no panic with its reason: %v", said)
				}
			}()
			define()
		})
	}
}

func TestPrepareFillsInWhatIsOpen(t *testing.T) {
	n, pol, err := mail.New(mailIn{"a@example.org"}).Prepare(noon)
	if err != nil {
		t.Fatal(err)
	}
	if n.ID.IsZero() || n.Queue != DefaultQueue || n.Delay != 0 || string(n.Input) != `{"To":"a@example.org"}` {
		t.Errorf("%+v", n)
	}
	if pol != mail.Policy() || pol.Attempts != 5 || n.Deadline != pol.Deadline {
		t.Errorf("%+v, deadline %s", pol, n.Deadline)
	}
	if n, pol, err = (New{Kind: "by hand"}).Prepare(noon); err != nil || pol != DefaultPolicy() || n.RawPolicy == nil {
		t.Errorf("%v, %+v", err, pol)
	}
}

func TestPrepareKeepsTheCallersID(t *testing.T) {
	id := DeriveID([]byte("mine"))
	for range 2 { // the second time as after a lost answer
		if n, _, err := mail.New(mailIn{}, EnqueueOpts{ID: id}).Prepare(noon); err != nil || n.ID != id {
			t.Fatalf("%s, %v", n.ID, err)
		}
	}
}

// What one enqueue chose is stored with the job: a redrive gives it anew.
func TestP10DeadlineOfOneEnqueueHoldsForItsRedrives(t *testing.T) {
	n, pol, err := mail.New(mailIn{}, EnqueueOpts{Deadline: time.Hour + 1500*time.Microsecond}).Prepare(noon)
	if err != nil {
		t.Fatal(err)
	}
	var stored Policy
	if err := stored.UnmarshalBinary(n.RawPolicy); err != nil {
		t.Fatal(err)
	}
	want := time.Hour + time.Millisecond // kept to the millisecond
	if n.Deadline != want || pol.Deadline != want || stored != pol || stored.Attempts != 5 {
		t.Errorf("deadline %s, policy %+v, stored %+v", n.Deadline, pol, stored)
	}
	if tr := Decide(baseSnapshot(Dead), RedriveAsked{}, stored, 0); tr.Deadline != want {
		t.Errorf("redriven with a deadline of %s", tr.Deadline)
	}
}

func TestPolicyOfOneEnqueueWins(t *testing.T) {
	_, pol, err := mail.New(mailIn{}, EnqueueOpts{Policy: &Policy{Attempts: 2}}).Prepare(noon)
	if err != nil || pol.Attempts != 2 {
		t.Errorf("%+v, %v", pol, err)
	}
}

// invalid asks that Prepare refuses n, and names the field.
func invalid(t *testing.T, field string, n New) {
	t.Helper()
	_, _, err := n.Prepare(noon)
	var bad *InvalidError
	if !errors.As(err, &bad) || bad.Field != field {
		t.Errorf("want a fault of %s, got %v", field, err)
		return
	}
	if strings.ContainsFunc(strings.ReplaceAll(err.Error(), "\n", ""), unprintable) || !utf8.ValidString(err.Error()) {
		t.Errorf("the error shows what it was given: %q", err.Error())
	}
}

// B-061: beyond the horizon refused with a clear error, inside kept exactly.
func TestB061DueFarAhead(t *testing.T) {
	due := func(at time.Time) New { return New{Kind: "k", EnqueueOpts: EnqueueOpts{Due: at}} }
	for _, at := range []time.Time{
		noon.Add(MaxAhead + 1),
		time.Date(4000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(math.MaxInt64-62_135_596_800, 999_999_999), // the largest that time.Time holds
		time.Unix(math.MaxInt64, 999_999_999),                // wraps: time.Time says that it is past
		time.Unix(math.MinInt64, 0),
		time.Unix(math.MinInt64/2, 0),
		time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(at.Format(time.RFC3339Nano), func(t *testing.T) { invalid(t, "due", due(at)) })
	}
	for _, d := range []time.Duration{MaxAhead + 1, math.MaxInt64} {
		invalid(t, "due", New{Kind: "k", EnqueueOpts: EnqueueOpts{Delay: d}})
	}
	for _, at := range []time.Time{noon.Add(MaxAhead), noon.Add(time.Nanosecond), noon.Add(time.Hour).In(time.FixedZone("", -5*3600))} {
		if n, _, err := due(at).Prepare(noon); err != nil || !noon.Add(n.Delay).Equal(at) {
			t.Errorf("%s: %s, %v", at, noon.Add(n.Delay), err)
		}
	}
}

func TestDueInThePastIsNow(t *testing.T) {
	for _, at := range []time.Time{noon, noon.Add(-1), time.Unix(0, 0), time.Unix(-1, 0), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)} {
		n, _, err := New{Kind: "k", EnqueueOpts: EnqueueOpts{Due: at, Delay: -1}}.Prepare(noon)
		if err != nil || n.Delay != 0 {
			t.Errorf("due %s: in %s, %v", at, n.Delay, err)
		}
	}
}

func TestP1NoSpanOfAnEnqueueIsUnbounded(t *testing.T) {
	opts := func(o EnqueueOpts) New { return New{Kind: "k", EnqueueOpts: o} }
	invalid(t, "delay", opts(EnqueueOpts{Delay: -1}))
	invalid(t, "delay", opts(EnqueueOpts{Delay: math.MinInt64}))
	for _, d := range []time.Duration{-1, MaxHead + 1, math.MaxInt64, math.MinInt64} {
		invalid(t, "head start", opts(EnqueueOpts{HeadStart: d}))
	}
	for _, d := range []time.Duration{-1, 1, time.Millisecond - 1, maxDeadline + 1, math.MaxInt64, math.MinInt64} {
		invalid(t, "deadline", opts(EnqueueOpts{Deadline: d}))
	}
	if _, _, err := opts(EnqueueOpts{HeadStart: MaxHead, Deadline: maxDeadline, Delay: MaxAhead}).Prepare(noon); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
}

// B-054, the part of the enqueue.
func TestB054PayloadAtTheLimitAndOneAbove(t *testing.T) {
	if _, _, err := (New{Kind: "k", Input: make([]byte, MaxPayload)}).Prepare(noon); err != nil {
		t.Error(err)
	}
	invalid(t, "input", New{Kind: "k", Input: make([]byte, MaxPayload+1)})
}

func TestBadTextIsRefusedWhereverItStands(t *testing.T) {
	fields := map[string]struct {
		limit int
		with  func(string) New
	}{
		"kind":   {MaxName, func(s string) New { return New{Kind: s} }},
		"queue":  {MaxName, func(s string) New { return New{Kind: "k", EnqueueOpts: EnqueueOpts{Queue: s}} }},
		"tenant": {MaxName, func(s string) New { return New{Kind: "k", EnqueueOpts: EnqueueOpts{Tenant: s}} }},
		"key":    {MaxKey, func(s string) New { return New{Kind: "k", EnqueueOpts: EnqueueOpts{Key: s}} }},
	}
	bad := map[string]string{
		"NUL": "a\x00b", "line break": "a\nb", "escape": "\x1b[2J", "C1 control": "a\u009bb", "delete": "a\x7fb",
		"bidi override": "a\u202eb", "bidi isolate": "a\u2066b", "zero width space": "a\u200bb", "joiner": "a\u200db",
		"soft hyphen": "a\u00adb", "byte order mark": "\ufeffa", "line separator": "a\u2028b", "tag": "a\U000e0041b",
		"invalid UTF-8": "a\xffb", "surrogate": "a\xed\xa0\x80b", "cut rune": "a\xe2\x82",
		"space in front": " a", "space behind": "a ", "no-break space behind": "a\u00a0", "only spaces": "   ",
	}
	for field, f := range fields {
		for what, text := range bad {
			t.Run(field+" with "+what, func(t *testing.T) { invalid(t, field, f.with(text)) })
		}
		t.Run(field+" too long", func(t *testing.T) {
			invalid(t, field, f.with(strings.Repeat("é", f.limit/2)+"a"))
		})
		for _, good := range []string{"a", "video-7", "Zürich 東京 🚀", "عربي", "a  b", strings.Repeat("a", f.limit)} {
			if _, _, err := f.with(good).Prepare(noon); err != nil {
				t.Errorf("%s %q: %v", field, clip(good, 20), err)
			}
		}
	}
	invalid(t, "kind", New{})
	invalid(t, "kind", Kind[None, None]{}.New(None{})) // never defined
}

func FuzzNames(f *testing.F) {
	f.Add("mail.send")
	f.Add("a\u202e")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if checkName("kind", s, MaxName) != nil {
			return
		}
		if s == "" || len(s) > MaxName || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
		}) {
			t.Fatalf("accepted %q", s)
		}
	})
}

func TestDamagedOrForeignPolicyIsRefusedAtEnqueue(t *testing.T) {
	good, _ := Policy{OnEnd: "tell"}.AppendBinary(nil)
	for what, raw := range map[string][]byte{
		"empty": {}, "unknown format": {9}, "cut": good[:len(good)-1],
		"a hook that could never be inserted": append(good[:len(good)-4:len(good)-4], "a\x00bc"...),
		"endless":                             append(good[:len(good):len(good)], make([]byte, maxStored)...),
	} {
		t.Run(what, func(t *testing.T) { invalid(t, "policy", New{Kind: "k", RawPolicy: raw}) })
	}
	invalid(t, "policy", New{Kind: "k", EnqueueOpts: EnqueueOpts{Policy: &Policy{Crashes: -1}}})
}

func TestInputThatCannotBeEncodedIsReportedByTheEnqueue(t *testing.T) {
	k := Define[func(), None]("f", Policy{})
	invalid(t, "input of f", k.New(func() {}))
	invalid(t, "options", mail.New(mailIn{}, EnqueueOpts{}, EnqueueOpts{}))
}
