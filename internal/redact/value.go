package redact

import "strings"

const maxNest = 4 << 10 // bytes searched for the closing bracket of a value

// schemes are the words that may stand before the secret of an Authorization
// header.
var schemes = []string{
	"basic", "bearer", "digest", "token", "apikey", "negotiate", "ntlm", "hawk",
	"aws4-hmac-sha256", "sharedkey", "signature", "key",
}

// span is the place of a value. It includes no quotes.
type span struct {
	start, end int
	quoted     bool
}

// valueAt returns the value that begins at i, behind the label l.
func valueAt(s string, i int, l label) span {
	if i >= len(s) || isSpace(s[i]) {
		return span{i, i, false}
	}
	if j := i + 1; j < len(s) && strings.IndexByte("bBuUrR", s[i]) >= 0 && isQuote(s[j]) {
		i = j // Python: b'…'
	}
	if q := skipSlashes(s, i); q < len(s) && isQuote(s[q]) {
		return quotedValue(s, q, q-i)
	}
	if s[i] == '[' || s[i] == '{' {
		return nestedValue(s, i, l)
	}
	flat := strings.ToLower(l.key)
	switch {
	case strings.Contains(flat, "authorization"):
		return headerValue(s, i, ',')
	case strings.Contains(flat, "cookie"):
		return listValue(s, i, i, ';')
	}
	return wordValue(s, i)
}

// startsQuoted reports whether a quote, perhaps escaped, stands at i.
func startsQuoted(s string, i int) bool {
	i = skipSlashes(s, i)
	return i < len(s) && isQuote(s[i])
}

// skipSlashes returns the first position from i that holds no backslash.
func skipSlashes(s string, i int) int {
	for i < len(s) && s[i] == '\\' {
		i++
	}
	return i
}

// quotedValue returns the text inside the quote at q, which depth backslashes
// precede. Without a closing quote the value goes to the end of the text. A quote
// that a letter or digit follows does not close: 'it's'.
func quotedValue(s string, q, depth int) span {
	slashes := 0
	for i := q + 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			slashes++
			continue
		case s[i] == s[q] && closes(slashes, depth) && (i+1 == len(s) || !isWord(s[i+1])):
			return span{q + 1, max(i-min(slashes, depth), q+1), true}
		}
		slashes = 0
	}
	return span{q + 1, len(s), true}
}

// closes reports whether a quote behind n backslashes ends a value whose opening
// quote stood behind depth of them. JSON in a JSON string has depth 1, and there
// `\\\"` is a quote inside the value.
func closes(n, depth int) bool {
	return n <= depth || (n-depth)%(2*(depth+1)) == 0
}

// nestedValue returns a list or object. If its end is missing, a quoted key takes
// everything (JSON that was cut), another one a word ("unexpected token: {").
func nestedValue(s string, i int, l label) span {
	depth := 0
	for j := i; j < min(len(s), i+maxNest); j++ {
		switch s[j] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth > 0 {
				continue
			}
			return span{i, max(j+1, wordValue(s, j+1).end), false}
		}
	}
	if l.quoted {
		return span{i, len(s), false}
	}
	return wordValue(s, i)
}

// headerValue returns the value of an Authorization header: a word, or the
// parameters behind the name of a scheme.
func headerValue(s string, i int, sep byte) span {
	first := wordValue(s, i)
	word := s[first.start:first.end]
	next := skipSpace(s, first.end)
	if next > first.end && next < len(s) && hasAny(word, schemes, strings.EqualFold) {
		return listValue(s, next, next, sep)
	}
	return listValue(s, i, i, sep)
}

// listValue returns a value of several words: key=value pairs that sep divides.
func listValue(s string, start, i int, sep byte) span {
	for {
		end := itemEnd(s, i)
		next := skipSpace(s, end+1)
		if end == i || end >= len(s) || s[end] != sep || !strings.Contains(s[next:wordValue(s, next).end], "=") {
			return span{start, max(start, end), false}
		}
		i = next
	}
}

// itemEnd returns the end of one item of a list: behind its quotes, if it is of
// the form key="some words".
func itemEnd(s string, i int) int {
	j := i
	for j < len(s) && !isSpace(s[j]) && strings.IndexByte(`",;`, s[j]) < 0 {
		j++
	}
	if j == i || j == len(s) || s[j] != '"' || s[j-1] != '=' {
		return wordValue(s, i).end
	}
	if n := strings.IndexByte(s[j+1:], '"'); n >= 0 {
		return j + n + 2
	}
	return len(s)
}

// wordValue returns an unquoted value: to the next white space, closing quote or
// separator before another pair, without punctuation at its end.
func wordValue(s string, i int) span {
	j := i
	for j < len(s) && !isSpace(s[j]) && !endsWord(s, j, i) {
		j++
	}
	for j > i && strings.IndexByte("\"'`)]},;:.>\\", s[j-1]) >= 0 {
		j--
	}
	if strings.HasSuffix(s[i:min(len(s), j+1)], mark) {
		j++
	}
	return span{i, j, false}
}

// endsWord reports whether an unquoted value that began at start ends at j.
func endsWord(s string, j, start int) bool {
	switch c := s[j]; {
	case c == ',', c == ';', c == '&':
		return pairAt(s, j+1)
	case c == '<':
		return true
	case j > start && s[j-1] == '\\':
		return false // inside a run that was looked at
	case isQuote(c), c == '\\':
		k := skipSlashes(s, j)
		if k == len(s) || !isQuote(s[k]) || j == start {
			return false
		}
		return k+1 == len(s) || isSpace(s[k+1]) || strings.IndexByte(`,:;}])&\`, s[k+1]) >= 0
	}
	return false
}

// pairAt reports whether another key, perhaps quoted, and its separator begin at i.
func pairAt(s string, i int) bool {
	i = skipQuote(s, skipSpace(s, i))
	j := i + len(keyAt(s, i))
	if j == i {
		return false
	}
	j = skipQuote(s, j)
	return j < len(s) && (s[j] == '=' || s[j] == ':')
}

// skipQuote returns the position behind the quote at i, if there is one. It may be
// escaped a few times.
func skipQuote(s string, i int) int {
	for n := 0; n < maxSpace && i < len(s) && s[i] == '\\'; n++ {
		i++
	}
	if i < len(s) && isQuote(s[i]) {
		i++
	}
	return i
}
