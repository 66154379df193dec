package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// head returns the first maxRead bytes of s, stripped, without the last word if
// that was cut. The word is dropped after stripping, as white space inside an
// ANSI sequence ends no word.
func head(s string) string {
	if len(s) <= maxRead {
		return s
	}
	s = strip(s[:maxRead])
	floor := max(0, len(s)-maxWord)
	if i := strings.LastIndexFunc(s[floor:], unicode.IsSpace); i >= 0 {
		return s[:floor+i]
	}
	return s[:runeStart(s, floor)]
}

// end returns the last TailRead bytes of b, stripped, without the first line (or
// word, or maxWord bytes) if that was cut.
func end(b []byte) string {
	if len(b) <= TailRead {
		return string(b)
	}
	s := strip(string(b[len(b)-TailRead:]))
	first := s[:min(len(s), maxWord)]
	if i := strings.IndexByte(first, '\n'); i >= 0 && strings.TrimSpace(s[i:]) != "" {
		return s[i:]
	}
	if i := strings.IndexFunc(first, unicode.IsSpace); i >= 0 {
		return s[i:]
	}
	return s[runeStart(s, len(first)):]
}

// cut shortens s to f.max bytes on a rune boundary and marks the place.
func (f form) cut(s string) string {
	if len(s) <= f.max {
		return s
	}
	room := f.max - len(ellipsis)
	if !f.tail {
		return strings.TrimRight(s[:runeStart(s, room)], " ") + ellipsis
	}
	i := len(s) - room
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return ellipsis + strings.TrimLeft(s[i:], " ")
}

// runeStart returns the start of the rune of s that contains byte i.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// strip drops invalid UTF-8, invisible characters, ANSI sequences and controls.
// Line breaks of every kind become '\n'; tabs stay. Invisible characters go
// first, as they may stand inside an ANSI sequence.
func strip(s string) string {
	return dropControls(dropInvisible(strings.ToValidUTF8(s, "")))
}

// dropInvisible removes runes that leave no mark on a screen.
func dropInvisible(s string) string {
	var prev rune
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && invisible(r, prev) {
			return -1
		}
		prev = r
		return r
	}, s)
}

// invisible reports whether r, which follows prev, goes with the format
// characters. unicode.IsControl knows none of them.
func invisible(r, prev rune) bool {
	switch {
	case r == utf8.RuneError, unicode.Is(unicode.Cf, r):
		return true
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true // Hangul fillers, combining grapheme joiner, tags
	case unicode.Is(unicode.Variation_Selector, r):
		return prev < utf8.RuneSelf
	}
	return false
}

// dropControls removes ANSI sequences and controls.
func dropControls(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b || r >= 0x80 && r <= 0x9f && r != 0x85:
			i = sequenceEnd(s, i+n, r)
			continue
		case r == '\r', r == '\v', r == '\f', r == 0x85, r == '\u2028', r == '\u2029':
			b.WriteByte('\n')
		case r == '\n', r == '\t', !isControl(r):
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// isControl reports whether r is a control or a line or paragraph separator.
func isControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
