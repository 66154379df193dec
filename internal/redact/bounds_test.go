package redact

import (
	"strings"
	"testing"
	"time"
)

// hostile units, repeated, would make a careless scanner quadratic.
var hostile = map[string]string{
	"A": "A", "space": " ", "open OSC": "\x1b]", "CSI": "\x1b[", "backslash": "\\", "quote": `password="`,
	"escaped quote": `\"`, "bracket": "password=[a ", "weak": "pass:", "name": "token:", "url": "a://", "at": "a:b@",
	"pem end": "-----END PRIVATE KEY-----", "pem begin": "-----BEGIN PRIVATE KEY-----", "slash": "/", "equals": "=",
	"tag": "<secret>", "goroutine": "goroutine 1 [x]: ", "frames": "\n\tx.go:1 +0x1", "invalid": "\xff", "dash": "a-",
	"user": "://u:", "invisible": "\u200b", "cookie": "cookie=a;", "list": "authorization: digest a=b,", "drive": `C:\`,
	"issued": "eyJaaaaaaaaaaa.", "words": "a1B.", "jwt": "ghp_", "escapes": `\u003d`, "java": "at a.b(c.java:1) ",
	"key": `"password" `, "invalid port": `invalid port "`, "lookup": "lookup ", "percent": "a%3a%2f%2f",
	"bearer": "bearer ", "flag": " --token", "quoted path": `"/a`, "brace": `"token":{`, "sum": "sha256:",
}

func TestHostileInputIsFast(t *testing.T) {
	// Measured against ordinary text, so that slow machines and -race do not count.
	ordinary := strings.Repeat("password=hunter2 at https://u:p@h/x in /a/b/c; ", maxRead/47)
	start := time.Now()
	for range 10 {
		Text(ordinary)
	}
	limit := 4 * time.Since(start) // 40 times one Text; the three calls below take about 8
	for name, unit := range hostile {
		for _, lead := range []string{"", "@"} {
			s := lead + strings.Repeat(unit, maxRead/len(unit)) + "x"
			start := time.Now()
			Text(s)
			Name(s)
			Tail([]byte(s))
			if d := time.Since(start); d > limit {
				t.Errorf("%s after %q: %v", name, lead, d)
			}
		}
	}
}

func TestSecretAtTheReadLimitLeavesNoPrefix(t *testing.T) {
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	for off := -2; off < len(secret)+2; off++ {
		// Invisible characters take the place, so that the end of what is read
		// would be shown.
		lead := "reason: full " + strings.Repeat("\u200b", 64<<10)
		lead = lead[:13+(maxRead-13-off)/3*3]
		lead += strings.Repeat(" ", max(0, maxRead-off-len(lead)))
		got := Text(lead + secret + " end")
		if strings.Contains(got, "ghp") || !strings.Contains(got, "reason: full") {
			t.Fatalf("offset %d: %q", off, got)
		}
	}
}

func TestTailKeepsTheEndAndDropsTheIncompleteLine(t *testing.T) {
	lines := "secret-half-of-a-token\n" + strings.Repeat("progress 10%\n", 2000) + "fatal: disk full\n"
	got := Tail([]byte(lines))
	check(t, got, Max)
	if !strings.HasSuffix(got, "fatal: disk full") || !strings.HasPrefix(got, ellipsis) {
		t.Errorf("got %q … %q", got[:20], got[len(got)-20:])
	}
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	for off := range len(token) {
		rest := strings.Repeat("\u200b", (TailRead-60)/3) + "\nfatal: disk full"
		pad := TailRead - len(rest) - off
		got := Tail([]byte(token + strings.Repeat(" ", pad) + rest))
		if got != "fatal: disk full" {
			t.Fatalf("offset %d: %q", off, got)
		}
	}
	for name, in := range map[string]string{
		"one line":  strings.Repeat("word ", 4000) + "reason",
		"one word":  strings.Repeat("x", 20000) + " reason",
		"last line": strings.Repeat("x", 20000) + "\nreason\n",
		"only end":  strings.Repeat("x ", 6000) + "reason\n",
	} {
		if got := Tail([]byte(in)); !strings.HasSuffix(got, "reason") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Tail(nil); got != noMessage {
		t.Errorf("Tail(nil) = %q", got)
	}
}

func TestFixedTextsAreStable(t *testing.T) {
	for _, s := range []string{noMessage, noError, noName, withheld, mark, Error(panicking{})} {
		if Text(s) != s || Name(s) != s || Tail([]byte(s)) != s {
			t.Errorf("%q changes: %q", s, Text(s))
		}
	}
}

func BenchmarkTextTypical(b *testing.B) {
	s := `claim: Get "https://api.example.com:8443/v1/x?token=abc": dial tcp 10.0.0.1:443: connect: connection refused (open /var/lib/x.db)`
	for b.Loop() {
		Text(s)
	}
}

func BenchmarkTextTenMegabytes(b *testing.B) {
	s := strings.Repeat("password=hunter2 at https://u:p@h/x in /a/b/c; ", 10<<20/47)
	for b.Loop() {
		Text(s)
	}
}
