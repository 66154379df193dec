// Package redact makes text from handlers, nodes and servers safe to store and
// to show. It is the one place where such text is captured, so that every later
// reader (store, logs, command line, HTTP views, metrics) is safe: promise P12.
//
// Four functions, one for each source of text:
//
//   - [Error] for an error value of a handler;
//   - [Text] for error text that arrived as a string;
//   - [Tail] for the standard error of a command;
//   - [Name] for names, kinds, keys, tenants and titles.
//
// # The order of the steps
//
// Every function runs the same steps, and their order matters:
//
//  1. Read at most a fixed number of bytes and drop the word cut by that limit:
//     cost is bounded, and half a secret no longer has the shape of a secret.
//  2. Drop invalid UTF-8. Replacing it by U+FFFD would split a token in two, so
//     U+FFFD itself is dropped as well.
//  3. Strip invisible characters (Cf: bidi, zero-width, tags), ANSI sequences,
//     controls (Cc) and line separators (Zl, Zp). Redacting first would let
//     through a token split by U+202E or U+200B. Line breaks become spaces.
//  4. Drop stack traces, while lines are still lines.
//  5. Redact private keys, URLs with their userinfo, labelled credentials,
//     paths, and the shapes of tokens. URLs come before labels, so that
//     "https://x-access-token:…@host" keeps its host.
//  6. Collapse spaces.
//  7. Cut on a rune boundary. Cutting earlier would leave a usable prefix of a
//     secret.
//
// Steps 2 to 7 run again on their own result until nothing changes, which makes
// each function idempotent by construction: f(f(x)) == f(x). A text that does
// not settle within a few rounds is withheld as a whole.
//
// # What is kept
//
// Scheme and host of URLs, methods, error kinds, key names, UUIDs, and lower-case
// hex of exactly 40 or 64 digits or behind a label such as "sha256:": commits and
// digests are common in errors and harmless, and a secret of that shape is still
// caught by its label (token=…). Other bare hex of 32 digits or more is redacted.
//
// ZWJ and ZWNJ go with the rest of Cf: Arabic, Hebrew, Persian and Indic text
// stays readable, a joined emoji shows as its parts. Variation selectors stay
// behind a non-ASCII rune only.
//
// # Limits
//
// Redaction works by label and by shape. It cannot know a secret that has
// neither ("the answer was hunter2"), nor where an unquoted passphrase of several
// words ends: behind "password: " the first word goes.
//
// All functions are pure and safe for concurrent use.
package redact

import (
	"fmt"
	"strings"
)

const (
	// Max is the longest text that [Text], [Error] and [Tail] return, in bytes.
	Max = 2048
	// MaxName is the longest text that [Name] returns, in bytes.
	MaxName = 200
	// TailRead is how many bytes of its argument [Tail] looks at. A caller that
	// keeps only the end of a stream keeps at least TailRead+1 bytes, so that
	// Tail can tell that the first line is not whole.
	TailRead = 8 << 10
)

const (
	maxRead   = 64 << 10 // bytes of input read by Text and Name
	maxWord   = 4 << 10  // most that is dropped as "the word cut by the limit"
	rounds    = 12       // rounds before a text is withheld
	mark      = "[redacted]"
	ellipsis  = "…"
	noMessage = "(no message)"
	noError   = "(no error)"
	noName    = "(unprintable)"
	withheld  = "(text withheld)"
)

// form says how one kind of text is treated.
type form struct {
	max   int    // longest result, in bytes
	tail  bool   // cut the beginning, not the end
	name  bool   // keep URLs, paths and unlabelled token shapes
	blank string // what stands for nothing
}

// Text returns s made safe as error text: at most [Max] bytes of valid UTF-8 on
// one line, without controls, ANSI sequences, invisible characters, stack traces
// and secrets, URLs cut to scheme and host, absolute paths to their last element.
// A cut end is marked by "…". Blank text becomes "(no message)"; the result is
// never empty. It reads at most 64 KiB of s. Idempotent.
func Text(s string) string {
	return form{max: Max, blank: noMessage}.settle(head(s))
}

// Error returns the text of err, made safe as by [Text]. A nil err gives
// "(no error)". An Error method that panics, as on a nil pointer inside a non-nil
// interface, gives a text that names the type of err. Stack traces printed by the
// error are dropped.
func Error(err error) string {
	if err == nil {
		return noError
	}
	return Text(message(err))
}

// message calls err.Error and survives its panic.
func message(err error) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("(no message: the Error method of %T panicked)", err)
		}
	}()
	return err.Error()
}

// Name returns s as a short form for display on one line of a terminal, log or
// JSON document: at most [MaxName] bytes of valid UTF-8 without controls, ANSI
// sequences and invisible characters. URLs and paths stay whole, but credentials
// inside are redacted: userinfo, labelled values (password=…), private keys and
// tokens with a known prefix. Token shapes without label or prefix stay, as keys
// are often hashes, and so do plain lower-case words behind a colon, as in a kind
// "token:refresh". An empty s stays empty; one of which nothing is left becomes
// "(unprintable)". Names that differ may show alike: never compare or store the
// result as an identity. Idempotent.
func Name(s string) string {
	if s == "" {
		return ""
	}
	return form{max: MaxName, name: true, blank: noName}.settle(head(s))
}

// Tail returns the end of a command's standard error, made safe as by [Text],
// except that the beginning is cut: the last lines hold the reason. It reads the
// last [TailRead] bytes of b; when b is longer, the first line of those is taken
// to be incomplete and dropped (the first word, if that line is very long).
// Idempotent.
func Tail(b []byte) string {
	return form{max: Max, tail: true, blank: noMessage}.settle(end(b))
}

// settle runs the steps until the text no longer changes.
func (f form) settle(s string) string {
	for range rounds {
		t := f.once(s)
		if t == s {
			if s == "" {
				return f.blank
			}
			return s
		}
		s = t
	}
	return withheld
}

// once runs each step once.
func (f form) once(s string) string {
	s = strip(s)
	if !f.name {
		s = stacks(s)
	}
	s = privateKeys(s)
	s = urls(s, f.name)
	s = credentials(s, f.name)
	s = userinfo(s)
	if !f.name {
		s = paths(s)
	}
	s = shapes(s, f.name)
	return f.cut(collapse(s))
}

// collapse makes one space of each run of white space and trims the ends.
func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }
