// Package tmpl puts items into the arguments of a command, with the
// placeholders of GNU parallel. Items are bytes: nothing is decoded, quoted or
// changed.
package tmpl

import (
	"bytes"
	"strconv"
	"strings"
)

// Template is a command with its placeholders found. Build it with Parse.
type Template struct {
	args [][]part // one list of parts per argument
}

// part is literal text, or a placeholder.
type part struct {
	text string
	hole hole
}

// hole makes the text of one placeholder.
type hole func(item []byte, n int64) []byte

// holes are the placeholders.
//
// Source: parallel(1), "{}" to "{#}"; the edge cases are those of version
// 20221122 (see the tests).
var holes = map[string]hole{
	"{}":   func(item []byte, _ int64) []byte { return item },
	"{.}":  func(item []byte, _ int64) []byte { return noExtension(item) },
	"{/}":  func(item []byte, _ int64) []byte { return base(item) },
	"{//}": func(item []byte, _ int64) []byte { return folder(item) },
	"{/.}": func(item []byte, _ int64) []byte { return noExtension(base(item)) },
	"{#}":  func(_ []byte, n int64) []byte { return strconv.AppendInt(nil, n, 10) },
}

// Parse finds the placeholders in a command: the program and its arguments.
// Without any placeholder the item becomes a last argument of its own. The
// command must not be empty.
func Parse(command []string) Template {
	t := Template{args: make([][]part, len(command))}
	some := false
	for i, arg := range command {
		t.args[i] = parse(arg)
		some = some || hasHole(t.args[i])
	}
	if !some {
		t.args = append(t.args, []part{{hole: holes["{}"]}})
	}
	return t
}

// parse splits one argument into parts.
func parse(arg string) []part {
	var parts []part
	text := 0 // where the literal text under way begins
	for i := 0; i < len(arg); {
		name := holeAt(arg[i:])
		if name == "" {
			i++
			continue
		}
		if i > text {
			parts = append(parts, part{text: arg[text:i]})
		}
		parts = append(parts, part{hole: holes[name]})
		i += len(name)
		text = i
	}
	if text < len(arg) || len(parts) == 0 {
		parts = append(parts, part{text: arg[text:]})
	}
	return parts
}

// holeAt returns the placeholder that s begins with, or "".
func holeAt(s string) string {
	if s[0] != '{' {
		return ""
	}
	end := strings.IndexByte(s, '}')
	if _, known := holes[s[:end+1]]; !known {
		return ""
	}
	return s[:end+1]
}

func hasHole(parts []part) bool {
	for _, p := range parts {
		if p.hole != nil {
			return true
		}
	}
	return false
}

// Program returns the program, and false if it depends on the item.
func (t Template) Program() (string, bool) {
	if p := t.args[0]; !hasHole(p) {
		return p[0].text, true
	}
	return "", false
}

// Fill returns the command for one item. n is the item's number, from 1.
func (t Template) Fill(item []byte, n int64) []string {
	out := make([]string, len(t.args))
	for i, parts := range t.args {
		var b []byte
		for _, p := range parts {
			if p.hole != nil {
				b = append(b, p.hole(item, n)...)
			} else {
				b = append(b, p.text...)
			}
		}
		out[i] = string(b)
	}
	return out
}

// noExtension cuts the last dot of the last element and what follows it.
func noExtension(p []byte) []byte {
	if dot := bytes.LastIndexByte(p, '.'); dot > bytes.LastIndexByte(p, '/') {
		return p[:dot]
	}
	return p
}

// base is what follows the last slash.
func base(p []byte) []byte { return p[bytes.LastIndexByte(p, '/')+1:] }

// folder is dirname(1): all before the last element, slashes at the end not
// counted.
func folder(p []byte) []byte {
	if len(p) == 0 {
		return []byte(".")
	}
	p = bytes.TrimRight(p, "/")
	if len(p) == 0 {
		return []byte("/")
	}
	slash := bytes.LastIndexByte(p, '/')
	if slash < 0 {
		return []byte(".")
	}
	if p = bytes.TrimRight(p[:slash], "/"); len(p) == 0 {
		return []byte("/")
	}
	return p
}
