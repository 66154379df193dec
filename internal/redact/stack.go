package redact

import (
	"regexp"
	"strings"
)

var (
	goroutineRE = regexp.MustCompile(`^goroutine \d+ .*\[.*\]:$`)
	positionRE  = regexp.MustCompile(`^\s+\S.*\.go:\d+(?: \+0x[0-9a-f]+)?$`)
	callRE      = regexp.MustCompile(`^(?:created by )?[^\s()]+(?:\(\*?[^\s()]*\)[^\s()]*)*(?:\(.*\))?(?: in goroutine \d+)?$`)
	registerRE  = regexp.MustCompile(`^(?:r[a-z0-9]{1,2}|rflags|[cfg]s)\s+0x[0-9a-f]+$`)
	frameRE     = regexp.MustCompile(`^\s+at .*(?:\(.*\)|:\d+)$|^\s*\.\.\. \d+ (?:more|common frames omitted)$|^\s+from \S+:\d+:in `)
	traceRE     = regexp.MustCompile(`^\s*Traceback \(most recent call last\):$`)
	fileRE      = regexp.MustCompile(`^\s+File ".*", line \d+`)
	// Stacks that were put on one line by somebody else.
	inlineRE     = regexp.MustCompile(`goroutine \d+ [^\[\]]{0,80}\[[^\]]{0,80}\]:`)
	inlinePosRE  = regexp.MustCompile(`\.go:\d+ \+0x[0-9a-f]+`)
	inlineJavaRE = regexp.MustCompile(`(?:\s|\\[nt])*\bat [\w$.<>/]+\([\w$]+\.(?:java|kt|scala):\d+\)`)
)

// inlineGap is the longest distance, in bytes, between two positions of one stack
// on one line: a function name and its arguments.
const inlineGap = 400

// stacks drops stack traces of Go, the JVM, JavaScript, Python and Ruby. The
// message that came with them stays.
func stacks(s string) string {
	if strings.Contains(s, "\n") {
		s = stackLines(s)
	}
	if strings.Contains(s, "goroutine ") {
		s = inlineStacks(s)
	}
	if hasAny(s, []string{".java:", ".kt:", ".scala:"}, strings.Contains) {
		s = inlineJavaRE.ReplaceAllString(s, " ")
	}
	return s
}

// stackLines drops the lines of stack traces.
func stackLines(s string) string {
	lines := strings.Split(s, "\n")
	kept := lines[:0:0]
	inGo, inPython := false, false
	for _, line := range lines {
		line = strings.TrimRight(line, " \t")
		code := inPython && strings.HasPrefix(line, "    ")
		inPython = fileRE.MatchString(line) || code
		switch {
		case inPython || traceRE.MatchString(line) || frameRE.MatchString(line):
		case goroutineRE.MatchString(line):
			inGo = true
		case positionRE.MatchString(line):
			if n := len(kept); n > 0 && isCall(kept[n-1]) {
				kept = kept[:n-1]
			}
		case inGo && (line == "" || isCall(line) || strings.HasPrefix(line, "...")):
		case registerRE.MatchString(line):
		default:
			inGo = false
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// isCall reports whether line may be the function above a position.
func isCall(line string) bool {
	return strings.ContainsAny(line, ".(") && callRE.MatchString(line)
}

// inlineStacks drops goroutine dumps whose line breaks were lost or escaped.
func inlineStacks(s string) string {
	var b strings.Builder
	for {
		at := inlineRE.FindStringIndex(s)
		if at == nil {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at[0]])
		b.WriteByte(' ')
		s = s[at[1]:]
		for {
			pos := inlinePosRE.FindStringIndex(s[:min(len(s), inlineGap)])
			if pos == nil {
				break
			}
			s = s[pos[1]:]
		}
	}
}
