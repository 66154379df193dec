package redact

import (
	"strings"
	"testing"
)

// seed adds the golden inputs and hostile units to a fuzz target.
func seed(f *testing.F, add func(s string)) {
	f.Helper()
	for _, c := range golden {
		add(c.in)
	}
	for _, unit := range hostile {
		add(unit)
		add(strings.Repeat(unit, 2*Max/len(unit)+1))
	}
	add("a\x1b]0;t\x07\u202e\u2028\xff")
}

func FuzzText(f *testing.F) {
	seed(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		check(t, got, Max)
		if got == "" {
			t.Error("empty")
		}
		if again := Text(got); again != got {
			t.Errorf("not idempotent: %q then %q", got, again)
		}
	})
}

func FuzzTail(f *testing.F) {
	seed(f, func(s string) { f.Add([]byte(s)) })
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Tail(b)
		check(t, got, Max)
		if got == "" {
			t.Error("empty")
		}
		if again := Tail([]byte(got)); again != got {
			t.Errorf("not idempotent: %q then %q", got, again)
		}
	})
}

func FuzzName(f *testing.F) {
	seed(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, s string) {
		got := Name(s)
		check(t, got, MaxName)
		if got == "" && s != "" {
			t.Error("empty")
		}
		if again := Name(got); again != got {
			t.Errorf("not idempotent: %q then %q", got, again)
		}
	})
}

// planted secrets: as they stand in the text, and the part that must not survive.
var planted = []struct{ text, core string }{
	{"password=Hunter2-Zebra9x", "Hunter2-Zebra9x"},
	{`"api_key":"Hunter2-Zebra9x"`, "Hunter2-Zebra9x"},
	{`\"token\": \"Hunter2-Zebra9x\"`, "Hunter2-Zebra9x"},
	{"Authorization: Bearer Hunter2-Zebra9x", "Hunter2-Zebra9x"},
	{"postgres://bob:Hunter2-Zebra9x@host/db", "Hunter2-Zebra9x"},
	{"ghp_q8Hunter2Zebra9xq8Hunter2Zebra9x0123", "q8Hunter2Zebra9xq8Hunter2Zebra9x0123"},
	{"AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"},
	{"xoxb-1234567890-Zebra9xZebra", "xoxb-1234567890-Zebra9xZebra"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmN", "eyJzdWIiOiIxIn0.dozjgNryP4J3jVmN"},
}

// gaps are what a screen does not show.
var gaps = []string{"", "\u202e", "\u200b", "\xff", "\x00", "\x1b[31m", "\x1b]0;t\x07", "\ufffd", "\u2066", "\b"}

// FuzzPlantedSecret puts a secret into any text, split by something invisible.
func FuzzPlantedSecret(f *testing.F) {
	for which := range planted {
		f.Add("connect failed: ", ": refused", byte(which), byte(which), byte(7))
		f.Add(`{"error":"`, `","code":4}`, byte(which), byte(which+1), byte(3))
	}
	f.Fuzz(func(t *testing.T, before, after string, which, gap, at byte) {
		p := planted[int(which)%len(planted)]
		i := int(at) % (len(p.text) + 1)
		in := before + " " + p.text[:i] + gaps[int(gap)%len(gaps)] + p.text[i:] + " " + after
		for name, got := range map[string]string{"Text": Text(in), "Tail": Tail([]byte(in)), "Name": Name(in)} {
			if strings.Contains(got, p.core) {
				t.Errorf("%s(%q) = %q", name, in, got)
			}
		}
	})
}
