package child

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line writes words so that a shell reads them back as they are.
func Line(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quote(w)
	}
	return strings.Join(out, " ")
}

// Quote writes one word for a shell; controls are written as $'…' writes them,
// so that nothing reaches a terminal.
func Quote(w string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-=:,@+%{}#^", r) ||
			r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	if w != "" && w[0] != '#' && strings.TrimFunc(w, plain) == "" {
		return w
	}
	if Showable(w) {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(w) {
		switch c := w[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 0x20 && c < 0x7f:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// Showable reports whether a text can be shown as it is: valid, and nothing in
// it steers a terminal.
func Showable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
