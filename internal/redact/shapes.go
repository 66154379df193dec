package redact

import (
	"regexp"
	"strings"
)

const (
	minRun    = 16 // shortest run of token characters that is looked at
	minMixed  = 24 // shortest unlabelled token of mixed case with digits
	minSingle = 32 // shortest unlabelled token of one case with digits, or of hex
)

// issuedRE matches tokens that carry the mark of who issued them.
//
// Source: the issuers' documentation of their formats; the list follows the rules
// of common secret scanners.
var issuedRE = regexp.MustCompile(issued)

// issuedStartRE matches them at the start of a text only.
var issuedStartRE = regexp.MustCompile(`^` + issued)

var issued = `(?:` + strings.Join([]string{
	`(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}`, // AWS
	`gh[pousr]_[A-Za-z0-9]{16,}`, `github_pat_[A-Za-z0-9_]{16,}`, // GitHub
	`gl(?:pat|ptt|dt|rt|soat|cbt|imt|ft|agent)-[A-Za-z0-9_-]{16,}`,                         // GitLab
	`xox[a-z]-[A-Za-z0-9-]{8,}`, `xapp-[A-Za-z0-9-]{8,}`, `xoxe\.xox[bp]-[A-Za-z0-9-]{8,}`, // Slack
	`[rsp]k_(?:live|test)_[A-Za-z0-9]{8,}`, `whsec_[A-Za-z0-9+/=]{8,}`, // Stripe
	`AIza[A-Za-z0-9_-]{30,}`, `ya29\.[A-Za-z0-9_.-]{8,}`, `GOCSPX-[A-Za-z0-9_-]{16,}`, // Google
	`\bsk-[A-Za-z0-9_-]*[A-Z0-9][A-Za-z0-9_-]{14,}`, // OpenAI, Anthropic
	`(?:npm|hf|dckr_pat|dop_v1|doo_v1|lin_api|shp(?:at|ca|pa|ss)|rubygems|nfp|glc|glsa|pat|ATATT3x?[A-Za-z0-9]*)_[A-Za-z0-9_=-]{20,}`,
	`pypi-[A-Za-z0-9_-]{16,}`, `PMAK-[A-Za-z0-9-]{16,}`, `hv[sbr]\.[A-Za-z0-9_-]{16,}`, // PyPI, Postman, Vault
	`SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}`, `key-[0-9a-f]{32}`, // SendGrid, Mailgun
	`AGE-SECRET-KEY-1[A-Z0-9]{16,}`,
	`ey[JK][A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*`, `eyJ[A-Za-z0-9_-]{16,}`, // JWT, JWE
}, "|") + `)`

var (
	uuidRE   = regexp.MustCompile(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`)
	digestRE = regexp.MustCompile(`(?i)(?:sha-?(?:1|224|256|384|512)|md5|blake[23][bs]?|etag|digest|checksum|trace_?id)["']?[ :=@-]{1,2}["']?$`)
	// An AWS secret stands next to its key id more often than behind a label.
	pairRE = regexp.MustCompile(`((?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9+/]{1,6}|(?:AKIA|ASIA)[A-Z0-9]{16}/)[A-Za-z0-9+/]{40}`)
)

// shapes redacts tokens that show themselves by their form. In a name only those
// with an issuer's prefix go.
func shapes(s string, name bool) string {
	s = pairRE.ReplaceAllString(s, "${1}"+mark)
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); {
		if !inRun(s[i]) {
			i++
			continue
		}
		j := i
		for j < len(s) && inRun(s[j]) {
			j++
		}
		if run := s[i:j]; len(run) >= minRun {
			b.WriteString(s[last:i])
			b.WriteString(shapeless(run, s[max(0, i-16):i], name))
			last = j
		}
		i = j
	}
	return b.String() + s[last:]
}

// inRun reports whether c may stand in a token.
func inRun(c byte) bool { return isWord(c) || strings.IndexByte("+/=_-.", c) >= 0 }

// shapeless redacts the tokens of one run of token characters, which follows
// before.
func shapeless(run, before string, name bool) string {
	run = issuedRE.ReplaceAllString(run, mark)
	if name || strings.Contains(run, mark) && len(run) < minMixed+len(mark) {
		return run
	}
	parts := strings.Split(run, ".")
	for i, p := range parts {
		if i > 0 {
			before = parts[i-1] + "."
		}
		if !strings.Contains(p, mark) && isToken(p, before) {
			parts[i] = mark
		}
	}
	return strings.Join(parts, ".")
}

// isToken reports whether p, without a known prefix, has the shape of a secret:
// random letters and digits. UUIDs and digests do not count.
func isToken(p, before string) bool {
	if len(p) < minMixed {
		return false
	}
	p = uuidRE.ReplaceAllString(p, "-")
	for i := 0; i < len(p); {
		j := i
		for j < len(p) && isWord(p[j]) {
			j++
		}
		if word := p[i:j]; len(word) >= minSingle && isSingle(word) && !isDigest(word, before+p[max(0, i-16):i]) {
			return true
		}
		i = j + 1
	}
	return isMixed(p)
}

// isDigest reports whether the hex word is a commit, a sha256 sum, or labelled as
// a digest by what stands before it.
func isDigest(word, before string) bool {
	if strings.Trim(word, "0123456789abcdef") != "" {
		return false
	}
	return len(word) == 40 || len(word) == 64 || digestRE.MatchString(before)
}

// isSingle reports whether word mixes letters and digits as random hex does or, in
// at least four groups of digits, as base32 and base36 do.
func isSingle(word string) bool {
	groups, letters, digits := 0, 0, 0
	for i := range len(word) {
		if !isDigit(word[i]) {
			letters++
			continue
		}
		digits++
		if i == 0 || !isDigit(word[i-1]) {
			groups++
		}
	}
	if strings.Trim(word, "0123456789abcdefABCDEF") == "" {
		return digits >= 4 && letters >= 4
	}
	return groups >= 4 && letters >= 4
}

// isMixed reports whether p looks like base64 or base62: upper and lower case and
// digits, and few runs of three or more lower-case letters. Such runs make up
// 15 % of random base64 and well over half of a name in camel case. Hex words
// count for nothing, they are parts of identifiers.
func isMixed(p string) bool {
	var n, upper, digits, lower, run, wordy int
	for word := range strings.FieldsFuncSeq(p, func(r rune) bool { return !isWord(byte(r)) }) {
		if len(word) >= 8 && strings.Trim(word, "0123456789abcdef") == "" {
			continue
		}
		n += len(word)
		for i := range len(word) {
			switch c := word[i]; {
			case isUpper(c):
				upper++
			case isDigit(c):
				digits++
			default:
				lower++
				if run++; run == 3 {
					wordy += 3
				} else if run > 3 {
					wordy++
				}
				continue
			}
			run = 0
		}
		run = 0
	}
	return n >= minMixed && upper >= 4 && lower >= 4 && (digits >= 2 || digits == 1 && n >= minSingle) && wordy*10 < n*4
}
