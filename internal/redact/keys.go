package redact

import "strings"

// level says how surely a key labels a secret.
type level int

const (
	harmless level = iota
	weak           // only before "=" or in quotes: "pass: 3, fail: 1" is no secret
	strong         // in every form
)

// strongWords mark a key wherever they stand in it. Keys are compared in lower
// case and without "_", "-" and ".".
var strongWords = []string{
	"passw", "passphrase", "passcode", "kennwort", "pwd", "secret", "token", "credential",
	"authorization", "apikey", "accesskey", "privatekey", "encryptionkey", "encryptkey",
	"signingkey", "authkey", "accountkey", "sharedkey", "masterkey", "sessionkey",
	"servicekey", "storagekey", "deploykey", "sshkey", "hmackey", "licensekey",
	"sessionid", "sessid", "jwt", "connectionstring", "cookie",
}

// quotableWords, at the end of a key, mark a quoted value that follows without any
// separator: invalid password "x". A secret "x" or token "x" is often only a name.
var quotableWords = []string{"password", "passwort", "passwd", "passphrase", "pwd", "apikey", "accesskey"}

// weakWords mark a key if they are its last part.
var weakWords = []string{"pass", "pw", "auth", "sig", "signature", "session", "sid", "otp", "bearer"}

// harmlessEnds make a key harmless that only speaks about a secret.
var harmlessEnds = []string{
	"name", "type", "count", "length", "size", "limit", "ttl", "expiry", "expires",
	"expiresin", "expiresat", "policy", "file", "path",
}

// harmlessWords hold a strong word by accident.
var harmlessWords = []string{"tokeniz", "tokenis", "secretar", "passwordless"}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// levelOf classifies a key.
func levelOf(key string) level {
	if key == "" {
		return harmless
	}
	flat := separators.Replace(strings.ToLower(key))
	for _, w := range strongWords {
		if strings.Contains(flat, w) {
			if hasAny(flat, harmlessEnds, strings.HasSuffix) || hasAny(flat, harmlessWords, strings.Contains) {
				return harmless
			}
			return strong
		}
	}
	if hasAny(lastPart(key), weakWords, equal) {
		return weak
	}
	if strings.HasSuffix(flat, "pass") && !hasAny(flat, []string{"bypass", "compass", "trespass", "surpass"}, strings.HasSuffix) {
		return weak
	}
	return harmless
}

// lastPart returns the last word of a snake, kebab, dotted or camel key, in lower
// case.
func lastPart(key string) string {
	key = key[strings.LastIndexAny(key, "_-. ")+1:]
	for i := len(key) - 1; i > 0; i-- {
		if isUpper(key[i]) && isLower(key[i-1]) {
			key = key[i:]
			break
		}
	}
	return strings.ToLower(key)
}

// plainWords stand behind "token: " or "password: " in an error message and are
// no secrets. They tell the kind of the error.
var plainWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
		a an and any are as at authentication authorization bad be been but by can cannot
		connect connection contains context could denied did does empty error exceeds
		expected expired failed failure false for forbidden found from got has have if in
		incorrect invalid is it its lookup malformed mismatch missing must nil no none not
		null of on or parse parsing permission rejected required revoked should signature
		the this timeout to token too true unable unauthenticated unauthorized undefined
		unexpected unknown unsupported verification was were while will with without wrong`) {
		m[w] = true
	}
	return m
}()

// isPlain reports whether the unquoted value v only belongs to a sentence.
func isPlain(v string) bool { return plainWords[strings.ToLower(v)] }

// isCounter reports whether "key: v" counts tokens, as language models do.
func isCounter(key, v string) bool {
	return strings.Contains(strings.ToLower(key), "tokens") && strings.Trim(v, "0123456789.,_") == ""
}

// isLowerName reports whether v is made of lower-case words only ("refresh",
// "rotate-all"), as the parts of a kind are.
func isLowerName(v string) bool {
	return strings.Trim(v, "abcdefghijklmnopqrstuvwxyz-_.:") == ""
}

// hasAny reports whether is(s, w) holds for one of the words.
func hasAny(s string, words []string, is func(s, w string) bool) bool {
	for _, w := range words {
		if is(s, w) {
			return true
		}
	}
	return false
}

func equal(s, w string) bool { return s == w }
func isUpper(c byte) bool    { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool    { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isSpace(c byte) bool    { return c == ' ' || c == '\t' || c == '\n' }
func isQuote(c byte) bool    { return c == '"' || c == '\'' || c == '`' }

// isWord reports whether c is an ASCII letter or digit.
func isWord(c byte) bool { return isUpper(c) || isLower(c) || isDigit(c) }

// isKeyByte reports whether c may stand in a key.
func isKeyByte(c byte) bool { return isWord(c) || c == '_' || c == '.' || c == '-' }
