package redact

import (
	"regexp"
	"strings"
)

const pathChars = "[^\\s\"'`:,;|<>]*"

var (
	quotedPathRE  = regexp.MustCompile(`"(?:~?/|[A-Za-z]:[\\/]+|\\{2,})[^":]*"|'(?:~?/|[A-Za-z]:[\\/]+|\\{2,})[^':]*'`)
	drivePathRE   = regexp.MustCompile(`(^|[^A-Za-z0-9])([A-Za-z]:[\\/]` + pathChars + `)`)
	networkPathRE = regexp.MustCompile("(^|[\\s\"'`=:,;(\\[{])(" + `\\{2,}[\w.$-]+\\+[\w.$-]` + pathChars + ")")
	unixPathRE    = regexp.MustCompile("(^|[\\s\"'`=:,;(\\[{|&>])(~?/" + pathChars + ")")
)

// paths cuts absolute paths, of Unix and Windows, to their last element.
func paths(s string) string {
	if !strings.ContainsAny(s, `/\`) {
		return s
	}
	s = quotedPathRE.ReplaceAllStringFunc(s, func(m string) string {
		return m[:1] + orAll(lastElement(m[1:len(m)-1]), m[1:len(m)-1]) + m[:1]
	})
	s = replacePath(s, drivePathRE)
	s = replacePath(s, networkPathRE)
	return replacePath(s, unixPathRE)
}

// replacePath cuts what the second group of re matched.
func replacePath(s string, re *regexp.Regexp) string {
	var b strings.Builder
	last := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		lead, path := s[m[2]:m[3]], s[m[4]:m[5]]
		if lead == ":" && strings.HasPrefix(path, "//") {
			continue // what is left of a URL
		}
		kept := strings.TrimRight(path, ")]}.&")
		if hasQuery(path) {
			kept = path
		}
		b.WriteString(s[last:m[4]])
		b.WriteString(orAll(lastElement(kept), kept) + path[len(kept):])
		last = m[5]
	}
	return b.String() + s[last:]
}

// hasQuery reports whether a query follows the path p.
func hasQuery(p string) bool {
	_, query, _ := strings.Cut(p, "?")
	return strings.Contains(query, "=")
}

// lastElement returns the last element of a path, without its query.
func lastElement(p string) string {
	if hasQuery(p) {
		p, _, _ = strings.Cut(p, "?")
	}
	p = strings.TrimRight(p, `/\`)
	return p[strings.LastIndexAny(p, `/\`)+1:]
}

// orAll returns element or, if the path has none ("/"), the whole path.
func orAll(element, path string) string {
	if element == "" {
		return path
	}
	return element
}
