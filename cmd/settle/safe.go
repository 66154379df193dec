package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/settle-go/settle/internal/redact"
)

// invisible reports runes that write on a terminal or hide in it: controls,
// format characters (bidi, zero width, tags), line and paragraph separators.
func invisible(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// safeLine makes one line of our own words safe to show. Unlike redact.Text it
// keeps paths, which an operator needs in order to act.
func safeLine(s string) string {
	return strings.Map(func(r rune) rune {
		if invisible(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

// cell is a name in a table; "-" stands for none.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return redact.Name(s)
}

// clipped is error text in a table: one line, at most limit runes.
func clipped(s string, limit int) string {
	if s == "" {
		return "-"
	}
	r := []rune(redact.Text(s))
	if len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return string(r)
}

// stamp is an instant for people and for JSON: RFC 3339, UTC.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Truncate(time.Second).Format(time.RFC3339)
}

// span is a duration for people, rounded to the smaller of its two largest
// units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + span(-max(d, -math.MaxInt64))
	case d >= day-30*time.Second:
		d = d.Round(time.Hour)
		if d%day == 0 {
			return fmt.Sprintf("%dd", d/day)
		}
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour-time.Second/2:
		return trimZero(d.Round(time.Minute).String())
	case d >= 10*time.Second:
		return trimZero(d.Round(time.Second).String())
	default:
		return d.Round(time.Millisecond).String()
	}
}

// plural is "1 job", "2 jobs".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// trimZero cuts last units that are zero: "1h0m0s" becomes "1h".
func trimZero(s string) string {
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(s, zero); ok {
			s = rest + zero[:1]
		}
	}
	return s
}

// ago is an instant beside the clock: "2026-01-02T03:04:05Z (3m ago)".
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "-"
	case d >= 0:
		return stamp(t) + " (" + span(d) + " ago)"
	default:
		return stamp(t) + " (in " + span(-d) + ")"
	}
}

// writeJSON writes v as one line of JSON in which no character is invisible:
// those stand as \u escapes, which change no value.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(append(escapeInvisible(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), '\n'))
	return err
}

// escapeInvisible writes the invisible characters of a JSON text as \u
// escapes. In compact JSON they can only stand inside strings.
func escapeInvisible(doc []byte) []byte {
	if bytes.IndexFunc(doc, invisible) < 0 {
		return doc
	}
	var b []byte
	for _, r := range string(doc) {
		switch {
		case !invisible(r):
			b = utf8.AppendRune(b, r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
