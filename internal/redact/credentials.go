package redact

import "strings"

const (
	maxKey   = 64 // bytes of a key that are looked at
	maxSpace = 8  // white space allowed between key, separator and value
)

// assigns separate a key from its value, longest first. The last ones are "=" and
// ":" escaped for a URL or for JSON.
var assigns = []string{":=", "=>", "==", "=", ":", "%3D", "%3d", "%3A", "%3a", `\u003d`, `\u003D`}

// closers may stand between a key and its separator.
var closers = []string{`"`, "'", "`", `\`, "]", "&quot;", "&#34;", `\u0022`, "%22"}

// label is a key found in front of a separator.
type label struct {
	key    string
	quoted bool // in quotes, as in JSON
	tag    bool // behind "<", as in XML
}

// credentials redacts the values that a key labels as secret (password=…,
// "token":"…", Authorization: Bearer …, --api-key …, <secret>…).
func credentials(s string, name bool) string {
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); {
		start, end := credentialAt(s, last, i, name)
		if end <= i {
			i++
			continue
		}
		if start < end {
			b.WriteString(s[last:start])
			b.WriteString(mark)
			last = end
		}
		i = end
	}
	return b.String() + s[last:]
}

// credentialAt returns the secret announced by the separator at i. The key begins
// at floor or later. Without separator, end is 0; without secret, start is end.
func credentialAt(s string, floor, i int, name bool) (start, end int) {
	switch c := s[i]; {
	case c == '=', c == ':', c == '%', c == '\\':
		return assigned(s, floor, i, name)
	case c == '>':
		return element(s, floor, i)
	case isSpace(c):
		return announced(s, floor, i)
	case isQuote(c) && i > floor && isSpace(s[i-1]):
		return quotedAfter(s, floor, i)
	}
	return 0, 0
}

// assigned handles key=value, key: value and their kin.
func assigned(s string, floor, i int, name bool) (start, end int) {
	n := assignLen(s, i)
	if n == 0 {
		return 0, 0
	}
	l := labelBefore(s[floor:i])
	lv := levelOf(l.key)
	if lv == harmless {
		return 0, 0
	}
	from := skipSpace(s, i+n)
	colon := s[i] == ':' && n == 1
	if lv == weak && colon && !l.quoted && !startsQuoted(s, from) {
		return i + n, i + n
	}
	v := valueAt(s, from, l)
	text := s[v.start:v.end]
	switch {
	case text == "":
		return i + n, i + n
	case !v.quoted && (isPlain(text) || isCounter(l.key, text)),
		name && colon && !l.quoted && from == i+n && isLowerName(text):
		return v.end, v.end
	}
	return v.start, v.end
}

// assignLen returns the length of the separator at i, or 0. Neither "://" nor "::"
// separates.
func assignLen(s string, i int) int {
	if strings.HasPrefix(s[i:], "://") || strings.HasPrefix(s[i:], "::") || s[i] == ':' && i > 0 && s[i-1] == ':' {
		return 0
	}
	for _, a := range assigns {
		if strings.HasPrefix(s[i:], a) {
			return len(a)
		}
	}
	return 0
}

// labelBefore returns the key at the end of s.
func labelBefore(s string) label {
	var l label
	s = trimSpaces(s)
	for again := true; again; {
		again = false
		for _, c := range closers {
			if t, ok := strings.CutSuffix(s, c); ok {
				l.quoted = l.quoted || c != "]" && c != `\`
				s, again = t, true
			}
		}
	}
	i := keyStart(s)
	l.key = s[i:]
	l.tag = i > 0 && s[i-1] == '<'
	switch strings.ToLower(l.key) {
	case "key", "keys", "string", "id", "is", "was":
		if before := trimSpaces(s[:i]); len(before) < i { // "api key"
			l.key = before[keyStart(before):] + l.key
		}
	}
	return l
}

// trimSpaces drops up to maxSpace white space at the end of s.
func trimSpaces(s string) string {
	for n := 0; n < maxSpace && s != "" && isSpace(s[len(s)-1]); n++ {
		s = s[:len(s)-1]
	}
	return s
}

// keyStart returns where the key at the end of s begins.
func keyStart(s string) int {
	i := len(s)
	for i > 0 && len(s)-i < maxKey && isKeyByte(s[i-1]) {
		i--
	}
	return i
}

// skipSpace returns the first position from i that holds no white space.
func skipSpace(s string, i int) int {
	for n := 0; n < maxSpace && i < len(s) && isSpace(s[i]); n++ {
		i++
	}
	return i
}

// element handles <key>value<.
func element(s string, floor, i int) (start, end int) {
	l := labelBefore(s[floor:i])
	if !l.tag || levelOf(l.key) == harmless {
		return 0, 0
	}
	end = strings.IndexByte(s[i+1:], '<')
	if end < 0 {
		return i + 1, len(s)
	}
	return i + 1, max(i+1+end, i+1)
}

// quotedAfter handles: invalid password "value".
func quotedAfter(s string, floor, i int) (start, end int) {
	l := labelBefore(s[floor:i])
	flat := separators.Replace(strings.ToLower(l.key))
	if l.quoted || !hasAny(flat, quotableWords, strings.HasSuffix) {
		return 0, 0
	}
	v := valueAt(s, i, l)
	return v.start, v.end
}

// announced handles what follows a word and a space: Bearer value, Basic value,
// --password value, -u user:value.
func announced(s string, floor, i int) (start, end int) {
	k := keyStart(s[floor:i]) + floor
	word, from := s[k:i], skipSpace(s, i)
	if word == "" || from == len(s) || isSpace(s[from]) {
		return 0, 0
	}
	switch {
	case strings.EqualFold(word, "bearer"), strings.EqualFold(word, "basic"):
		v := wordValue(s, from)
		if looksIssued(s[v.start:v.end]) {
			return v.start, v.end
		}
	case word == "-u", word == "--user":
		v := wordValue(s, from)
		if c := strings.IndexByte(s[v.start:v.end], ':'); c > 0 {
			return v.start + c + 1, v.end
		}
	case word[0] == '-' && s[from] != '-' && levelOf(strings.TrimLeft(word, "-")) == strong:
		v := valueAt(s, from, label{key: word})
		if v.quoted || !isPlain(s[v.start:v.end]) {
			return v.start, v.end
		}
	}
	return 0, 0
}

// looksIssued reports whether v, behind "Bearer" or "Basic", is a credential and
// not the next word of a sentence or a parameter (realm="…").
func looksIssued(v string) bool {
	if v == "" || hasAny(v, []string{"realm=", "error=", "scope=", "charset="}, strings.HasPrefix) {
		return false
	}
	rest := strings.Trim(v[1:], "abcdefghijklmnopqrstuvwxyz")
	return rest != "" || !isUpper(v[0]) && !isLower(v[0]) || len(v) >= 20
}
