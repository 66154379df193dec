package remote

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/settle-go/settle"
)

// seal is a secret from which the address and the key of each submission are
// made, so that nothing has to be stored to know them again.
type seal []byte

func (s seal) sum(what string, job, attempt settle.ID) []byte {
	m := hmac.New(sha256.New, s)
	m.Write([]byte("settle answer " + what + " v1\x00"))
	m.Write(job[:])
	m.Write(attempt[:])
	return m.Sum(nil)
}

// token is the part of an address that nobody can guess.
func (s seal) token(job, attempt settle.ID) string {
	return base64.RawURLEncoding.EncodeToString(s.sum("token", job, attempt)[:18])
}

// key is what the node signs its answer with. Its text is the key.
func (s seal) key(job, attempt settle.ID) string {
	return hex.EncodeToString(s.sum("key", job, attempt))
}

// Sign returns the value of the header Settle-Signature for an answer: what a node
// in Go sends with its callback.
func Sign(key string, doc []byte) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write(doc)
	return "v1=" + hex.EncodeToString(m.Sum(nil))
}

// SignatureHeader is the header in which a callback is signed.
const SignatureHeader = "Settle-Signature"

// signed reports whether one of the signatures of a header is right. A list, by
// spaces or commas, is taken too: whoever changes keys sends both.
func signed(header, key string, doc []byte) bool {
	want := []byte(Sign(key, doc))
	ok := false
	for _, s := range strings.FieldsFunc(header, func(r rune) bool { return r == ' ' || r == ',' }) {
		ok = hmac.Equal([]byte(strings.ToLower(s)), want) || ok
	}
	return ok
}
