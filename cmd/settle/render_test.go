package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// evil writes on a terminal, hides, reverses and forges.
const evil = "a\x1b[2J\x1b]0;x\x07\x1b]8;;http://e\x1b\\ \u009b2J\u202e\u2066\u2028\r\nlevel=INFO forged\b\b\u200bz مرحبا 👍"

// evilJob carries it wherever text can stand.
func evilJob() settle.Job {
	return ended(settle.Dead, settle.EndExhausted, func(j *settle.Job) {
		j.Kind, j.Queue, j.Tenant, j.Key = evil, evil, evil, evil
		j.Input, j.Output = []byte(`{"x":"`+"\u202e\U000e0041"+`"}`), []byte("\x1b[2J")
		j.Attempts = []settle.Attempt{{N: 1, Reason: settle.AttemptError, Error: evil, Node: evil, Step: evil, At: now}}
	})
}

func evilOverview() overview {
	return overview{db: evil, at: now,
		ages:    []settle.Age{{Queue: evil, Kind: evil, Unfinished: time.Hour, Oldest: settle.DeriveID()}},
		counts:  []settle.Count{{Queue: evil, State: settle.Dead, N: 100_000, More: true}},
		removed: []settle.Removal{{Queue: evil, State: settle.Succeeded, N: 7}},
		holds:   []settle.Hold{{Queue: evil, Tenant: evil, Text: evil, Until: now.Add(time.Hour), For: time.Hour}}}
}

// TestB055NoOutputWritesOnTheScreen walks everything that renders.
func TestB055NoOutputWritesOnTheScreen(t *testing.T) {
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs, func(string) string { return "" })
	outputs := map[string]func() error{
		"job":        func() error { return showJob(&out, evilJob()) },
		"job --json": func() error { return writeJSON(&out, viewJob(evilJob())) },
		"export":     func() error { return writeJSON(&out, exportJob(evilJob())) },
		"why":        func() error { return a.showWhy(evilJob(), around{}) },
		"status":     func() error { return a.status(evilOverview(), 0, false) },
		"ages":       func() error { return a.unhealthy(tooOld(evilOverview().ages, time.Minute)) },
		"status json": func() error {
			a.json = true
			defer func() { a.json = false }()
			return a.status(evilOverview(), 0, false)
		},
		"jobs": func() error {
			write, flush := a.jobWriter(settle.Filter{})
			_ = write(evilJob())
			return flush()
		},
		"items": func() error {
			write, flush := a.jobWriter(settle.Filter{Queue: "run/x"})
			_ = write(evilJob())
			return flush()
		},
		"dead items": func() error {
			write, flush := a.deadWriter(settle.Filter{Queue: "run/x"})
			_ = write(evilJob())
			return flush()
		},
		"dead list": func() error {
			write, flush := a.deadWriter(settle.Filter{})
			_ = write(evilJob())
			return flush()
		},
	}
	for name, render := range outputs {
		out.Reset()
		errs.Reset()
		_ = render()
		text := out.String() + errs.String()
		for _, r := range strings.NewReplacer("\n", "").Replace(text) {
			if invisible(r) {
				t.Errorf("%s: %q stands in %q", name, r, text)
				break
			}
		}
		if !utf8.ValidString(text) || text == "" {
			t.Errorf("%s: %q", name, text)
		}
		if name != "items" && (!strings.Contains(text, "مرحبا") || !strings.Contains(text, "👍")) {
			t.Errorf("%s: other scripts are gone from %q", name, text)
		}
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "level=INFO") {
				t.Errorf("%s: a forged line", name)
			}
		}
	}
}

// TestJSONIsExactAllTheSame: escapes change no value.
func TestJSONIsExactAllTheSame(t *testing.T) {
	var out bytes.Buffer
	if err := writeJSON(&out, viewJob(evilJob())); err != nil {
		t.Fatal(err)
	}
	var v struct {
		Key   string
		Input struct{ X string }
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if v.Key != evil || v.Input.X != "\u202e\U000e0041" {
		t.Errorf("%q, %q", v.Key, v.Input.X)
	}
}

// TestPayloadsStandInJSONAsTheyAre: JSON embedded, all else in base64, and an
// export holds the exact bytes.
func TestPayloadsStandInJSONAsTheyAre(t *testing.T) {
	for _, c := range []struct{ in, view, export string }{
		{`{"a":1.50,"b":12345678901234567890,"a":2}`, `"input":{"a":1.50,"b":12345678901234567890,"a":2},"policy"`, `"input":{"a":1.50,"b":12345678901234567890,"a":2},"policy"`},
		{"{ }", `"input":{},"policy"`, `"input":{},"input_base64":"eyB9","policy"`},
		{"\"\u200d\"", `"input":"\u200d","policy"`, `"input":"\u200d","input_base64":"IuKAjSI=","policy"`},
		{"null", `"input":null,"policy"`, `"input":null,"policy"`},
		{"<&>", `"input_base64":"PCY+","policy"`, `"input_base64":"PCY+","policy"`},
		{`"<&>"`, `"input":"<&>","policy"`, `"input":"<&>","policy"`},
		{"\"\xff\"", `"input_base64":"Iv8i","policy"`, `"input_base64":"Iv8i","policy"`},
		{"", `"acked":false,"policy"`, `"acked":false,"policy"`},
	} {
		j := sample(func(j *settle.Job) { j.Input = []byte(c.in) })
		for want, v := range map[string]jobJSON{c.view: viewJob(j), c.export: exportJob(j)} {
			var out bytes.Buffer
			if err := writeJSON(&out, v); err != nil || !strings.Contains(out.String(), want) {
				t.Errorf("%q: %v\n got %s\nwant %s", c.in, err, out.String(), want)
			}
		}
	}
}

// TestTheJSONOfAJobIsStable: field names are an interface.
func TestTheJSONOfAJobIsStable(t *testing.T) {
	var out bytes.Buffer
	j := ended(settle.Dead, settle.EndExhausted, func(j *settle.Job) {
		j.Key, j.Worker, j.Batch, j.Acked, j.Suspect = "k", 1<<62, settle.DeriveID([]byte("b")), true, true
		j.Input, j.Output = []byte(`{"a":1}`), []byte{0xff}
		j.Attempts = []settle.Attempt{{N: 1, Reason: settle.AttemptStepError, Error: "boom", Step: "s", Ticket: settle.DeriveID([]byte("t")), Node: "n", Worker: 5, At: now}}
		j.Steps = []settle.StepResult{{Step: "s", Ticket: settle.DeriveID([]byte("t")), Node: "n", Output: []byte("1")}}
	})
	live := sample(func(j *settle.Job) {
		j.State, j.Attempt, j.Alarm, j.WaitEnds = settle.Running, 1, now.Add(time.Minute), now.Add(time.Hour)
		j.Held = now.Add(time.Hour)
		j.Wait = &settle.Wait{Ticket: settle.DeriveID([]byte("t")), Step: "s", Node: "n", Silence: 90 * time.Second}
	})
	for _, v := range []any{viewJob(j), viewJob(live), insertedJSON{j.ID, true, j.State}, evilFree().view([]string{"p"}),
		agesJSON{now, viewAges(evilFree().ages), 60, false}, whyJSON{j.ID, j.State, j.Label(), j.Reason, "…", now}, versionJSON{"v1", 1, "go", "linux", "amd64"}} {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(b, '\n'))
	}
	golden(t, "json.golden", out.String())
}

func evilFree() overview {
	return overview{db: "settle.db", at: now,
		ages: []settle.Age{{Queue: "mail", Kind: "send", Unfinished: time.Hour, Waiting: 90 * time.Second, Oldest: settle.DeriveID()}, {Queue: "mail", Kind: "later"}},
		counts: []settle.Count{{Queue: "mail", State: settle.Pending, N: 100_000, More: true}, {Queue: "mail", State: settle.Dead, N: 5, Acked: 2},
			{Queue: "old", State: settle.Dead, N: 1, Acked: 1}},
		removed: []settle.Removal{{Queue: "mail", State: settle.Succeeded, N: 7}, {Queue: "gone", State: settle.Dead, N: 1}},
		holds: []settle.Hold{{Queue: "mail", Whole: true, Text: "operator", Reason: "operator", Began: now, Until: now.Add(time.Hour), For: time.Hour},
			{Queue: "mail", Tenant: "", Text: "operator", Reason: "operator", Began: now, Until: now.Add(30 * 24 * time.Hour), For: 30 * 24 * time.Hour}}}
}

// TestTheStatusScreen.
func TestTheStatusScreen(t *testing.T) {
	var b strings.Builder
	if err := evilFree().show(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n---- nothing yet\n")
	if err := (overview{db: "settle.db", at: now}).show(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "status.golden", b.String())
}

// TestUnhealthyIsWhatNeedsAPerson: unacknowledged dead letters and old work.
func TestUnhealthyIsWhatNeedsAPerson(t *testing.T) {
	o := evilFree()
	for most, want := range map[time.Duration]int{0: 1, time.Hour: 1, 59 * time.Minute: 2} {
		if got := o.problems(most); len(got) != want {
			t.Errorf("--max %s: %q", most, got)
		}
	}
	o.counts[1].Acked = 5
	if got := o.problems(0); len(got) != 0 {
		t.Errorf("all acknowledged: %q", got)
	}
}

func TestSpanIsShortAndParseSpanReadsDays(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 17 * time.Millisecond: "17ms", 9_999_600 * time.Microsecond: "10s", 90 * time.Second: "1m30s", 2 * time.Minute: "2m",
		59*time.Minute + 59*time.Second + 600*time.Millisecond: "1h", time.Hour + time.Second: "1h", 90 * time.Minute: "1h30m",
		24*time.Hour - time.Millisecond: "1d", 36 * time.Hour: "1d12h", 30 * 24 * time.Hour: "30d", -time.Minute: "-1m", -1 << 63: "-106751d23h", 1<<63 - 1: "106751d23h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	for s, want := range map[string]time.Duration{"90s": 90 * time.Second, "1d12h": 36 * time.Hour, "30d": 720 * time.Hour, "-1d": -24 * time.Hour, "-1d6h": -30 * time.Hour, "0d": 0, "0": 0} {
		if got, err := parseSpan(s); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "d", "1", "1dd", "1d25h", "1d-1h", "1.5d", "h", "106752d", "99999999999999999999d", "1h1d"} {
		if d, err := parseSpan(s); err == nil {
			t.Errorf("%q is read as %s", s, d)
		}
	}
}

// TestASpanFlagPrintsWhatItReads: run writes its own command line anew.
func TestASpanFlagPrintsWhatItReads(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, time.Hour + 31*time.Second, 36 * time.Hour, 30 * 24 * time.Hour, 90 * time.Minute} {
		var back time.Duration
		if err := (spanFlag{&back}).Set(spanFlag{&d}.String()); err != nil || back != d {
			t.Errorf("%s: %q, %s, %v", d, spanFlag{&d}.String(), back, err)
		}
	}
}

// TestARepairSaysWhatWasLost.
func TestARepairSaysWhatWasLost(t *testing.T) {
	var b strings.Builder
	for _, r := range []sqlite.Report{
		{Path: "settle.db", Sound: true},
		{Path: "settle.db", Sound: true, Reindexed: true, Problems: []string{"row 7 missing from index live_key"}},
		{Path: "settle.db", Moved: "settle.db.damaged-20260304T120000Z", Problems: []string{"Tree 5 page 9: " + evil},
			Tables: []sqlite.Saved{{Table: "body", Kept: 90, Damaged: 2, Pages: 1}, {Table: "live", Kept: 88}}, Lost: 12, EndUnknown: true, Highest: 102, Stateless: 2, Bodiless: 1, Queues: 1, Policies: 3},
	} {
		if err := showRepair(&b, r); err != nil {
			t.Fatal(err)
		}
		b.WriteString("----\n")
	}
	golden(t, "repair.golden", b.String())
}
