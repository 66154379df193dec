package redact

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// check fails the test if s is not fit to be stored and shown.
func check(t *testing.T, s string, limit int) {
	t.Helper()
	if len(s) > limit {
		t.Errorf("%d bytes, want at most %d", len(s), limit)
	}
	if !utf8.ValidString(s) {
		t.Errorf("invalid UTF-8: %q", s)
	}
	for _, r := range s {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("forbidden rune %U in %q", r, s)
		}
	}
	if s == withheld {
		t.Error("the text did not settle")
	}
	if strings.Contains(s, "  ") || strings.TrimSpace(s) != s {
		t.Errorf("spaces not collapsed: %q", s)
	}
}

// everyForm runs f once per function, with text as its input.
func everyForm(t *testing.T, text string, f func(t *testing.T, got string)) {
	t.Helper()
	for name, got := range map[string]string{
		"Text": Text(text), "Error": Error(errors.New(text)), "Tail": Tail([]byte(text)), "Name": Name(text),
	} {
		t.Run(name, func(t *testing.T) {
			check(t, got, Max)
			f(t, got)
		})
	}
}

type panicking struct{}

func (panicking) Error() string { panic("hunter2") }

type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

func TestB053FailureThatCouldNotBeSaved(t *testing.T) {
	var typedNil *pointerError
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"bytes that are not UTF-8":  {errors.New("\xe8\x72\x65: bad"), "re: bad"},
		"empty":                     {errors.New(""), "(no message)"},
		"only spaces":               {errors.New(" \t\r\n\u00a0\u3000"), "(no message)"},
		"only invisible":            {errors.New("\u200b\ufeff\x00\x1b[0m"), "(no message)"},
		"Error panics":              {panicking{}, "(no message: the Error method of redact.panicking panicked)"},
		"nil in a typed interface":  {typedNil, "(no message: the Error method of *redact.pointerError panicked)"},
		"nil":                       {nil, "(no error)"},
		"wrapped, with line breaks": {fmt.Errorf("claim: %w", errors.Join(errors.New("a"), errors.New("b"))), "claim: a b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Error(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestB053TextIsCutOnARuneBoundary(t *testing.T) {
	for pad := range 8 {
		s := strings.Repeat("x", Max-8+pad) + strings.Repeat("😀", 4)
		got := Text(s)
		check(t, got, Max)
		if len(got) < Max-6 || !strings.HasSuffix(got, ellipsis) {
			t.Errorf("pad %d: %d bytes, ends in %q", pad, len(got), got[len(got)-8:])
		}
		got = Tail([]byte(strings.Repeat("😀", 4) + strings.Repeat("x", Max-8+pad)))
		check(t, got, Max)
		if len(got) < Max-6 || !strings.HasPrefix(got, ellipsis) {
			t.Errorf("pad %d: %d bytes, begins with %q", pad, len(got), got[:8])
		}
	}
	if s := strings.Repeat("y ", Max/2-1) + "yy"; Text(s) != s {
		t.Error("text of exactly Max bytes was changed")
	}
}

func TestB053TenMegabytes(t *testing.T) {
	for _, name := range []string{"A", "space", "invalid", "invisible", "open OSC", "backslash"} {
		t.Run(name, func(t *testing.T) {
			unit := hostile[name]
			s := strings.Repeat(unit, 10<<20/len(unit))
			check(t, Text(s), Max)
			check(t, Tail([]byte(s)), Max)
			check(t, Name(s), MaxName)
		})
	}
	if got := Text(strings.Repeat("A", 10<<20)); len(got) != Max {
		t.Errorf("10 MB of A left %d bytes, want %d", len(got), Max)
	}
}

func TestB055NothingWritesOnTheScreen(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2Jb":                              "ab",
		"a\x1b]0;title\x07b":                     "ab",
		"a\x1b]8;;http://evil.example\x1b\\link": "alink",
		"a\x1b]52;c;aGVsbG8=\x07b":               "ab",
		"a\u009b2Jb":                             "ab",
		"a\u009d0;title\u009cb":                  "ab",
		"a\x9b2Jb":                               "a2Jb", // the bare byte is no text, the rest is harmless
		"a\u202eb\u2066c\u2069":                  "abc",
		"a\u2028b\u2029c":                        "a b c",
		"boom\r\n2026-01-01 level=INFO fake":     "boom 2026-01-01 level=INFO fake",
		"pass\b\b\b\bfail":                       "passfail",
		"zero\u200bwidth\u2060joined\ufeff":      "zerowidthjoined",
		"a\x1b[\u200b31mb":                       "ab",
		"a\x1b]0;never ends b":                   "a]0;never ends b", // harmless without its ESC
		"a\x1b(Bb\x1bcc\x1b":                     "abc",
		"a\x1bPq#0\x1b\\b\x1b_x\x07c\x1b^y\x07":  "abc",
		"tag\U000e0041\U000e007f h\u3164x\u115f": "tag hx",
		"x\ufe0f1":                               "x1",
		"a\ufffdb":                               "ab",
		"a\x00\x7f\u0085b":                       "a b",
	} {
		everyForm(t, in, func(t *testing.T, got string) {
			if got != want {
				t.Errorf("%q: got %q, want %q", in, got, want)
			}
		})
	}
}

func TestB055OtherScriptsStayReadable(t *testing.T) {
	for in, want := range map[string]string{
		"فشل الاتصال بالخادم":           "فشل الاتصال بالخادم",
		"השרת לא זמין":                  "השרת לא זמין",
		"सर्वर उपलब्ध नहीं है":          "सर्वर उपलब्ध नहीं है",
		"می\u200cخواهم":                 "میخواهم",
		"磁盘已满 ディスク 디스크":                 "磁盘已满 ディスク 디스크",
		"❤\ufe0f 🎉 👍🏽 🇩🇪":               "❤\ufe0f 🎉 👍🏽 🇩🇪",
		"👩\u200d🚀":                      "👩🚀",
		"naïve café Zürich e\u0301clat": "naïve café Zürich e\u0301clat",
	} {
		everyForm(t, in, func(t *testing.T, got string) {
			if got != want {
				t.Errorf("%q: got %q, want %q", in, got, want)
			}
		})
	}
}

func TestURLErrorKeepsMethodHostAndCause(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://u:p@api.example:8443/v1?token=abc123", Err: errors.New("dial tcp: connection refused")}
	want := `Get "https://api.example:8443": dial tcp: connection refused`
	if got := Error(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNameKeepsWhatNamesAreMadeOf(t *testing.T) {
	for _, s := range []string{
		"", "node-7.example", "email:alice@example.com", "token:refresh", "password:reset-all", "/var/lib/x",
		`C:\Users\x`, "https://host/path/x?page=2", "renders/2026/07", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
		"d41d8cd98f00b204e9800998ecf8427e", "Größe 7", "tenant 42",
	} {
		if got := Name(s); got != s {
			t.Errorf("Name(%q) = %q", s, got)
		}
	}
}

func TestNameRedactsCredentialsAndIsShort(t *testing.T) {
	for in, want := range map[string]string{
		"https://bob:pw@host/p?x=1&token=abc": "https://[redacted]@host/p?x=1&token=[redacted]",
		"node password=hunter2":               "node password=[redacted]",
		"password:hunter2":                    "password:[redacted]",
		"bob:hunter2@tcp(db:3306)/x":          "bob:[redacted]@tcp(db:3306)/x",
		"ghp_abcdefghijklmnopqrstuvwxyz01":    "[redacted]",
		"https://u:pa/ss@h/x":                 "https://[redacted]@h/x",
		"two\nlines":                          "two lines",
		"\u200b":                              "(unprintable)",
	} {
		if got := Name(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
	check(t, Name(strings.Repeat("é", 500)), MaxName)
}
