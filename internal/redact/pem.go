package redact

import (
	"regexp"
	"strings"
)

var (
	pemBeginRE = regexp.MustCompile(`-{4,5} ?BEGIN [^-]{0,40}PRIVATE KEY[^-]{0,20}-{4,5}`)
	pemEndRE   = regexp.MustCompile(`-{4,5} ?END [^-]{0,40}PRIVATE KEY[^-]{0,20}-{4,5}`)
)

// privateKeys redacts PEM private keys. A key without its end is redacted to the
// end of the text, one without its beginning back to the first word that cannot
// be part of it.
func privateKeys(s string) string {
	if !strings.Contains(s, "PRIVATE KEY") {
		return s
	}
	begins, ends := pemBeginRE.FindAllStringIndex(s, -1), pemEndRE.FindAllStringIndex(s, -1)
	var b strings.Builder
	pos := 0
	for _, end := range ends {
		if len(begins) > 0 && begins[0][0] < end[0] {
			b.WriteString(s[pos:begins[0][0]])
		} else {
			b.WriteString(strings.TrimRightFunc(s[pos:end[0]], inKey))
			b.WriteByte(' ')
		}
		b.WriteString(mark)
		pos = end[1]
		for len(begins) > 0 && begins[0][0] < pos {
			begins = begins[1:]
		}
	}
	if len(begins) > 0 {
		return b.String() + s[pos:begins[0][0]] + mark
	}
	return b.String() + s[pos:]
}

// inKey reports whether r may stand in the body of a PEM block, which may be
// quoted with "\n" for its line breaks.
func inKey(r rune) bool {
	return r < 0x80 && (isWord(byte(r)) || strings.ContainsRune("+/= \t\n\\", r))
}
