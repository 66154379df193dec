package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/defaults.md anew")

func TestPageOfDefaultsIsUpToDate(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	now, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, page)
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != now {
		t.Errorf("%s is stale: run make docs and look at the difference", page)
	}
	if strings.Contains(now, "?") {
		t.Errorf("a value could not be found:\n%s", now)
	}
}

// The comment of a field and the value behind it say the same.
func TestCommentsOfThePolicySayTheTrueDefaults(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := fieldsOf(root, "Policy")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		value, _ := policyField(f)
		value = strings.ReplaceAll(value, " 000", "000")
		if said := strings.Split(f.zero, ", "); f.zero != value && said[0] != value && said[len(said)-1] != value {
			t.Errorf("Policy.%s: the comment says 0 = %s, the code %s", f.name, f.zero, value)
		}
	}
}

func TestZeroValuesAreReadFromComments(t *testing.T) {
	for text, want := range map[string][2]string{
		"Slots is how many. 0 = 64.":                    {"Slots is how many.", "64"},
		`Queue is the queue. "" = "default".`:           {"Queue is the queue.", `"default"`},
		"Lease is long. 0 = 30 s, at least 1 s.":        {"Lease is long.", "30 s, at least 1 s"},
		"Logger is told. nil = slog.Default(); x.Y = z": {"Logger is told. x.Y = z", "slog.Default()"},
		"Poll is long. 0 = 2 s; up to 1 min. Rest.":     {"Poll is long. Up to 1 min. Rest.", "2 s"},
		"Limit, if above zero, ends it.":                {"Limit, if above zero, ends it.", ""},
	} {
		if meaning, zero := splitZero(text); meaning != want[0] || zero != want[1] {
			t.Errorf("%q: %q, %q", text, meaning, zero)
		}
	}
}

func TestDurationsAreWrittenForPeople(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1 s": time.Second, "15 min": 15 * time.Minute, "1 h": time.Hour, "24 h": 24 * time.Hour, "30 days": 720 * time.Hour,
		"10 years": 3650 * 24 * time.Hour, "1500 ms": 1500 * time.Millisecond, "1µs": time.Microsecond, "90 min": 90 * time.Minute,
	} {
		if got := human(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
