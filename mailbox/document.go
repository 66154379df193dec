package mailbox

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep a document may be nested, itself included. Whoever
// decodes an output later has a limit too, often without knowing.
//
// Source: the defaults of Jackson (StreamReadConstraints) and Python (its
// recursion limit); Go's own is 10 000, some are far lower.
const maxDepth = 1000

// white is what JSON calls white space.
const white = " \t\r\n"

// object is a JSON object whose fields are taken out one by one. It keeps the
// first fault; a field that cannot be taken is the zero value.
type object struct {
	name   string // of the field that holds it; "" = the document
	fields map[string]json.RawMessage
	fault  fault
}

// blame keeps a fault of one of its fields, or with "" of itself, if it is the
// first one.
func (o *object) blame(field string, r Reason) {
	if !o.sound() {
		return
	}
	if o.name != "" && field != "" {
		field = "." + field
	}
	o.fault = fault{r, o.name + field}
}

// sound reports whether no fault has been found yet.
func (o *object) sound() bool { return o.fault == fault{} }

// parse reads a document that must be one JSON object.
func parse(doc []byte) object {
	var o object
	switch {
	case len(doc) > MaxDocument:
		o.blame("", ReasonTooLarge)
	case len(bytes.Trim(doc, white)) == 0:
		o.blame("", ReasonEmpty)
	case !utf8.Valid(doc): // decoders put U+FFFD there and say nothing
		o.blame("", ReasonNotUTF8)
	case deeper(doc, maxDepth):
		o.blame("", ReasonTooDeep)
	default:
		var value json.RawMessage
		dec := json.NewDecoder(bytes.NewReader(doc))
		switch {
		case dec.Decode(&value) != nil:
			o.blame("", ReasonNotJSON)
		case len(bytes.Trim(doc[dec.InputOffset():], white)) > 0:
			o.blame("", ReasonTrailing)
		case value[0] != '{':
			o.blame("", ReasonNotObject)
		default:
			o.take(value)
		}
	}
	return o
}

// take takes a valid JSON object apart; at a fault nothing is taken. Values stay
// as they are written. Decoding into a struct would take "Status" for "status",
// and the last of two equal names for both.
func (o *object) take(value []byte) {
	fields := map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(value))
	_, _ = dec.Token() // the brace
	for dec.More() {
		name, _ := dec.Token()
		key, ok := name.(string)
		var v json.RawMessage
		if !ok || dec.Decode(&v) != nil {
			o.blame("", ReasonNotJSON) // it was valid: cannot be
			return
		}
		if _, twice := fields[key]; twice {
			o.blame(o.known(key), ReasonDuplicate)
			return
		}
		fields[key] = v
	}
	o.fields = fields
}

// known is the field's name if it is one of the contract's, and none of a node's
// own words.
func (o *object) known(field string) string {
	names := documentFields
	if o.name != "" {
		names = errorFields
	}
	if slices.Contains(names, field) {
		return field
	}
	return ""
}

// given is a field's value. Null is the same as absent: serializers write it for
// what is not there.
func (o *object) given(field string) (json.RawMessage, bool) {
	v, ok := o.fields[field]
	return v, ok && string(v) != "null"
}

// must is given for a field that must be there.
func (o *object) must(field string) (json.RawMessage, bool) {
	v, ok := o.given(field)
	if !ok {
		o.blame(field, ReasonMissing)
	}
	return v, ok
}

// text is a string that must be there and say something.
func (o *object) text(field string) string {
	v, ok := o.must(field)
	if !ok {
		return ""
	}
	s, ok := asString(v)
	switch {
	case !ok:
		o.blame(field, ReasonWrongType)
	case strings.TrimSpace(s) == "":
		o.blame(field, ReasonMissing)
	}
	return s
}

// asString decodes a valid JSON value if it is a string.
func asString(v json.RawMessage) (s string, ok bool) {
	return s, len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s) == nil
}

// isNumber reports whether a valid JSON value is a number.
func isNumber(v json.RawMessage) bool {
	return v[0] == '-' || v[0] >= '0' && v[0] <= '9'
}

// deeper reports whether brackets outside of strings are nested deeper than
// limit. It understands enough of any bytes to be asked before a decoder is.
func deeper(doc []byte, limit int) bool {
	depth, quoted, escaped := 0, false, false
	for _, c := range doc {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}
