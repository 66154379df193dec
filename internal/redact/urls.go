package redact

import (
	"regexp"
	"strings"
)

const (
	urlStops  = " \t\n\"'`<>"
	urlReach  = 128 // bytes searched for the "@" of a password with spaces or quotes
	maxScheme = 32
	maxHost   = 253
)

var (
	hostRE = regexp.MustCompile(`^(?:[\pL\pN_.-]+|\[[0-9A-Fa-f:.%]+\])(?::\d{0,5})?$`)
	// net/url quotes the broken part of an address, which is often a password.
	causeRE  = regexp.MustCompile(`(invalid (?:URL escape|port|host|userinfo)) \\*"[^"]*"?`)
	lookupRE = regexp.MustCompile(`\blookup \S*@`)
	// An address inside the query of another one that was cut elsewhere.
	escapedRE = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]{0,31})%3a%2f%2f[^\s"'&<>]*`)
)

// urls cuts every URL to scheme and host or, for a name, redacts its userinfo.
func urls(s string, name bool) string {
	s = causeRE.ReplaceAllString(s, "$1")
	if strings.Contains(s, "lookup ") {
		s = lookupRE.ReplaceAllString(s, "lookup ")
	}
	if strings.Contains(s, "%2") {
		s = escapedRE.ReplaceAllString(s, "$1://"+mark)
	}
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); {
		at := strings.IndexByte(s[i:], ':')
		if at < 0 {
			break
		}
		at += i
		body := afterSlashes(s, at+1)
		if body < 0 {
			i = at + 1
			continue
		}
		start := schemeStart(s, last, at)
		text, end := address(s, s[start:at], body, name)
		b.WriteString(s[last:at])
		b.WriteString("://" + text)
		last, i = end, end
	}
	return b.String() + s[last:]
}

// afterSlashes returns where the two slashes at i end, which JSON may have
// escaped, or -1.
func afterSlashes(s string, i int) int {
	for range 2 {
		for i < len(s) && s[i] == '\\' {
			i++
		}
		if i == len(s) || s[i] != '/' {
			return -1
		}
		i++
	}
	return i
}

// schemeStart returns where the scheme that ends at end begins.
func schemeStart(s string, floor, end int) int {
	i := end
	for i > floor && end-i < maxScheme && (isWord(s[i-1]) || strings.IndexByte("+.-", s[i-1]) >= 0) {
		i--
	}
	return i
}

// address returns what stands for the address that begins at body, behind the
// slashes, and where the address ends.
func address(s, scheme string, body int, name bool) (string, int) {
	word := strings.TrimRight(wordAt(s, body), ".,;:)}")
	if strings.IndexByte(word, '[') < 0 {
		word = strings.TrimRight(word, ".,;:)}]")
	}
	end := body + len(word)
	if word == "" {
		return "", body
	}
	auth, rest := splitAuthority(word)
	host, rest, user := hostOf(scheme, auth, rest)
	if host == "" && !strings.Contains(word, "@") && strings.Contains(auth, ":") {
		if h, e := broken(s, end); e > 0 {
			host, end, user, rest = h, e, true, ""
		}
	}
	switch {
	case host == "" && auth == "" && name && user:
		return mark, end
	case host == "" && auth == "" && name:
		return word, end
	case host == "" && scheme == "file" && auth == "" && !user:
		return lastElement(rest), end
	case host == "":
		return mark, end
	case name && user:
		return mark + "@" + host + rest, end
	case name:
		return host + rest, end
	}
	return host, end
}

// wordAt returns the part of s from i that may belong to a URL. A backslash ends
// it, unless it escapes a slash.
func wordAt(s string, i int) string {
	j := i
	for j < len(s) && strings.IndexByte(urlStops, s[j]) < 0 {
		if s[j] == '\\' && (j+1 == len(s) || s[j+1] != '/') {
			break
		}
		j++
	}
	return s[i:j]
}

// splitAuthority splits the text behind "://" before its path, query or fragment.
func splitAuthority(word string) (auth, rest string) {
	if i := strings.IndexAny(word, `/?#\`); i >= 0 {
		return word[:i], word[i:]
	}
	return word, ""
}

// hostOf returns the host, or "" if it cannot be told from a password, what follows
// it, and whether there is userinfo. Passwords pasted into a connection string may
// hold "/" and "@"; web addresses hold an "@" in their path more often than that.
func hostOf(scheme, auth, rest string) (host, path string, user bool) {
	at := strings.LastIndexByte(auth, '@')
	late := strings.LastIndexByte(rest, '@')
	switch {
	case at >= 0 && late >= 0 && !isWeb(scheme):
		return "", "", true
	case at >= 0:
		return valid(auth[at+1:]), rest, true
	case late >= 0 && isWeb(scheme) && valid(auth) != "":
		return auth, rest, false
	case late >= 0 && valid(auth) == "" && auth != "":
		host, path = splitAuthority(rest[late+1:])
		return valid(host), path, true
	case late >= 0:
		return "", "", true
	}
	return valid(auth), rest, false
}

// isWeb reports whether "@" is usual in the paths of a scheme.
func isWeb(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "git", "ssh", "git+https", "git+ssh":
		return true
	}
	return false
}

// valid returns the host or list of hosts h, or "" if it is none.
func valid(h string) string {
	if len(h) > maxHost {
		return ""
	}
	for part := range strings.SplitSeq(h, ",") {
		if !hostRE.MatchString(part) {
			return ""
		}
	}
	return h
}

// broken looks behind i for the "@" of an address whose password holds spaces or
// quotes. It returns the host and the end of the address, or 0.
func broken(s string, i int) (string, int) {
	reach := s[i:min(len(s), i+urlReach)]
	if next := strings.Index(reach, "://"); next >= 0 {
		reach = reach[:next]
	}
	at := strings.LastIndexByte(reach, '@')
	if at < 0 {
		return "", 0
	}
	word := wordAt(s, i+at+1)
	host, _ := splitAuthority(strings.TrimRight(word, ".,;:)}]"))
	return valid(host), i + at + 1 + len(word)
}
