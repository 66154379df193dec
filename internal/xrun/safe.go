package xrun

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// safe reports whether a text can be shown as it is: valid, and nothing in it
// steers a terminal.
func safe(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// itemText writes an item for people: quoted, on one line, and not too long.
func itemText(item []byte) string {
	const most = 100
	s := string(item)
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
		if !safe(s) {
			return quote(string(item[:cut])) + "…"
		}
	}
	if safe(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return quote(s)
}
