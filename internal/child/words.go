package child

import (
	"errors"
	"strings"
)

// Words splits a command line as a shell would, without being one: words are
// parted by white space; '…' keeps everything; "…" keeps everything but \" and
// \\; outside quotes \ keeps the next character. Nothing is expanded: no
// variables, no patterns, no pipes, and # begins no comment. An unclosed quote or
// a \ at the end is an error.
func Words(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false // also by an empty pair of quotes
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			end()
			continue
		case '\'', '"':
			n, err := quoted(&word, s[i+1:], c)
			if err != nil {
				return nil, err
			}
			i += n
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New(`\ at the end`)
			}
			word.WriteByte(s[i])
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	end()
	return words, nil
}

// quoted reads up to the closing quote and returns how many bytes that took.
func quoted(word *strings.Builder, s string, quote byte) (int, error) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return i + 1, nil
		case quote == '"' && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		word.WriteByte(s[i])
	}
	return 0, errors.New("unclosed " + string(quote))
}
