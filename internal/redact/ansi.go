package redact

import (
	"regexp"
	"strings"
)

// unseenRE matches what may stand between the letters of a word without being
// seen: whole sequences and controls.
var unseenRE = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x00-\x1f\x7f-\x{9f}]*(?:\x07|\x1b\\)|[\x00-\x08\x0e-\x1f\x7f-\x{84}\x{86}-\x{9f}]`)

// sequenceEnd returns where the ANSI sequence ends whose introducer r (ESC, or
// its one-rune C1 form) stands before i. Source: ECMA-48, sections 5.3 to 5.6.
func sequenceEnd(s string, i int, r rune) int {
	from := i
	if r == 0x1b {
		for i < len(s) && i-from < 2 && strings.IndexByte(" #$%()*+-./", s[i]) >= 0 {
			i++ // intermediates of a short escape
		}
		if i == len(s) || s[i] < 0x30 || s[i] > 0x7e {
			return i
		}
		if i > from || strings.IndexByte("[]PX^_", s[i]) < 0 {
			return finalEnd(s, i)
		}
		r = rune(s[i]) + 0x40
		i++
	}
	switch r {
	case 0x9b:
		return csiEnd(s, i)
	case 0x9d, 0x90, 0x98, 0x9e, 0x9f: // OSC, DCS, SOS, PM, APC
		return stringEnd(s, from, i)
	}
	return i
}

// csiEnd returns the end of a CSI sequence. Terminals act on most controls in the
// middle of one and go on; a line break or another ESC ends it here.
func csiEnd(s string, i int) int {
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 0x40 && c <= 0x7e:
			return finalEnd(s, i)
		case c >= 0x80, c == 0x1b, c == '\n', c == '\r':
			return i
		}
	}
	return i
}

// finalEnd returns the position behind the final byte at i, or i if that byte may
// as well begin the label or the prefix of a secret. A sequence that was cut short
// ("ESC [ password=x") would otherwise eat the letter by which the secret is known;
// without its introducer the rest of a sequence is harmless.
func finalEnd(s string, i int) int {
	ahead := unseenRE.ReplaceAllString(s[i:min(len(s), i+2*maxKey)], "")
	key := keyAt(ahead, 0)
	switch {
	case key == "":
	case levelOf(key) != harmless && levelOf(key[1:]) == harmless,
		strings.EqualFold(key, "bearer"), strings.EqualFold(key, "basic"),
		issuedStartRE.MatchString(ahead):
		return i
	}
	return i + 1
}

// keyAt returns the key that begins at i.
func keyAt(s string, i int) string {
	j := i
	for j < len(s) && j-i < maxKey && isKeyByte(s[j]) {
		j++
	}
	return s[i:j]
}

// stringEnd returns the end of a control string whose text begins at i: after BEL
// or ST. A string that is broken off by another control or by the end loses only
// its ESC or C1 control, before from, so that an unfinished sequence cannot hide
// the reason.
func stringEnd(s string, from, i int) int {
	at := strings.IndexFunc(s[i:], isControl)
	if at < 0 {
		return from
	}
	at += i
	for _, st := range []string{"\a", "\x1b\\", "\u009c"} {
		if strings.HasPrefix(s[at:], st) {
			return at + len(st)
		}
	}
	return from
}
