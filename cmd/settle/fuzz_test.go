package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/xwork"
)

// refusedSafely: what is refused is told in words, a line for each fault, that
// reach a terminal as they are.
func refusedSafely(t *testing.T, err error) {
	t.Helper()
	if s := strings.ReplaceAll(err.Error(), "\n", ""); !utf8.ValidString(s) || strings.ContainsFunc(s, invisible) || len(s) > 1000 {
		t.Fatalf("the error is not safe to show: %q", s)
	}
}

func FuzzSpanIsReadBackAsItIsWritten(f *testing.F) {
	for _, s := range []string{"90s", "7d", "1d12h", "-1d12h", "1d24h", "0", "0d", "106750d23h", "106751d", "1.5h", "d", "9223372036854775807d", "-2562047h47m16.854775808s", "1d-1h", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		const untouched = 42
		got := time.Duration(untouched)
		if err := (spanFlag{&got}).Set(s); err != nil {
			refusedSafely(t, err)
			if got != untouched {
				t.Fatalf("%q: %v, and yet it set %s", s, err, got)
			}
			return
		}
		if want, err := time.ParseDuration(s); err == nil && got != want {
			t.Fatalf("%q: %s, want %s", s, got, want)
		}
		text := (spanFlag{&got}).String()
		if back, err := parseSpan(text); got != 0 && (err != nil || back != got) {
			t.Fatalf("%q is %s, written %q, which is %s, %v", s, got, text, back, err)
		}
	})
}

func FuzzInputIsOneJSONDocument(f *testing.F) {
	for _, s := range []string{"", " ", "1", ` {"a":[1,2]} `, "{}{}", `{"a":`, "nul", "\"\xff\"", "[1,\n2,]", "\ufeff1", `"\u0000"`, strings.Repeat("[", 10_001)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := checkJSON(b)
		if want := json.Valid(b) && utf8.Valid(b); want != (err == nil) {
			t.Fatalf("%q: %v, want valid = %v", b, err, want)
		}
		if err != nil {
			refusedSafely(t, err)
		}
	})
}

func FuzzLinesAreThoseThatAreNotBlank(f *testing.F) {
	for _, s := range []string{"", "\n", "a", "a\n\n b \r\nc\r", "\r\n\t\n\x00\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		type line struct {
			n    int
			text string
		}
		var got, want []line
		for i, s := range strings.Split(string(in), "\n") {
			if s = strings.TrimSuffix(s, "\r"); len(bytes.TrimSpace([]byte(s))) > 0 {
				want = append(want, line{i + 1, s})
			}
		}
		err := eachLine(bytes.NewReader(in), "the input", func(n int, b []byte) error {
			got = append(got, line{n, string(b)})
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %v, %v, want %v", in, got, err, want)
		}
	})
}

func FuzzFilterIsRefusedOrCanBeCarriedByAJob(f *testing.F) {
	f.Add("mail", "send", "acme", "k", "live", "0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a")
	f.Add("", "", "", "", "dead", "00000000-0000-0000-0000-000000000000")
	f.Add("a\u202eb", "\xff", " a", "a\x00b", "Dead", "")
	f.Fuzz(func(t *testing.T, queue, kind, tenant, key, state, id string) {
		ids, err := parseIDs([]string{id})
		if err != nil {
			refusedSafely(t, err)
		} else if len(ids) != 1 || ids[0].IsZero() || ids[0].String() != strings.ToLower(id) {
			t.Fatalf("%q was read as %v", id, ids)
		}
		flags := filterFlags{queue: queue, kind: kind, tenant: tenant, key: key, states: []string{state}}
		got, err := flags.filter()
		if err != nil {
			refusedSafely(t, err)
			return
		}
		for _, s := range got.States {
			if !slices.Contains(settle.States, s) || state != string(s) && state != "live" && state != "ended" {
				t.Fatalf("--state %q chooses %q", state, s)
			}
		}
		for _, name := range []string{got.Queue, got.Kind, got.Tenant, got.Key} {
			if !utf8.ValidString(name) || strings.ContainsFunc(name, invisible) || len(name) > max(settle.MaxName, settle.MaxKey) {
				t.Fatalf("accepted the name %q", name)
			}
		}
		if len(got.States) == 0 {
			t.Fatalf("--state %q chooses all", state)
		}
	})
}

func FuzzTargetIsAKindAndWhatFollows(f *testing.F) {
	for _, s := range []string{"mail=cat", "mail=", "=cat", "mail", "a=b=c", "a\u202eb=cat", "", "\xff=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		targets := map[string]xwork.Target{}
		rest := "nothing was read"
		add := func() error {
			return addTarget(targets, "--exec", s, "KIND=CMD", func(cmd string) (xwork.Target, error) {
				rest = cmd
				return &xwork.Command{}, nil
			})
		}
		if err := add(); err != nil {
			refusedSafely(t, err)
			if len(targets) > 0 {
				t.Fatalf("%q: %v, and yet it is a target", s, err)
			}
			return
		}
		for kind := range targets {
			if len(targets) != 1 || kind+"="+rest != s || strings.Contains(kind, "=") || checkNames("", kind, "", "") != nil {
				t.Fatalf("%q was read as %q and %q", s, kind, rest)
			}
		}
		if add() == nil {
			t.Fatalf("%q: a kind has two targets", s)
		}
	})
}
