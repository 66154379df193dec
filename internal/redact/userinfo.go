package redact

import (
	"regexp"
	"strings"
)

var userRE = regexp.MustCompile("([A-Za-z0-9_.+-]+):([^\\s/\"'`<>@][^\\s\"'`<>]*)@[^\\s\"'@]")

// userinfo redacts the password of user:password@host without a scheme, as in the
// connection strings of MySQL. What a mail label or an image digest says is kept.
func userinfo(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	var b strings.Builder
	last := 0
	for _, m := range userRE.FindAllStringSubmatchIndex(s, -1) {
		if isMail(s[m[2]:m[3]]) || strings.HasPrefix(s[m[5]:], "@sha256:") {
			continue
		}
		b.WriteString(s[last:m[4]])
		b.WriteString(mark)
		last = m[5]
	}
	return b.String() + s[last:]
}

// isMail reports whether a label announces an e-mail address.
func isMail(label string) bool {
	switch strings.ToLower(label) {
	case "mailto", "mail", "email", "e-mail", "to", "from", "cc", "bcc", "sender", "recipient":
		return true
	}
	return false
}
