package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// unseen are the faults that a schema cannot see: what it says then is decided
// by the decoder before it, or by what the document asks for otherwise.
var unseen = []Reason{ReasonTooLarge, ReasonNotUTF8, ReasonTooDeep, ReasonDuplicate, ReasonMismatch}

// TestTheSchemaSaysWhatTheJudgeSays: of every golden document that a JSON
// decoder reads at all, except the stale ones, which only their attempt decides.
func TestTheSchemaSaysWhatTheJudgeSays(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(read(t, "../docs/contract.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, d := range append(documents(t, "contract"), large...) {
		instance, ok := decoded(d.bytes)
		_, verdict := ContractJudge(ticket, d.bytes)
		var protocol *ProtocolError
		malformed := errors.As(verdict, &protocol)
		if !ok || d.verdict == "stale" || malformed && slices.Contains(unseen, protocol.Reason) {
			continue
		}
		compared++
		if err := resolved.Validate(instance); (err == nil) == malformed {
			t.Errorf("%s %s: the judge says %v, the schema %v", d.verdict, d.name, verdict, err)
		}
	}
	if compared < 80 {
		t.Errorf("only %d documents were compared", compared)
	}
}

// decoded is a document as a validator gets it. Go's decoder would read numbers
// beyond doubles as faults of the document: they become 0, which no field takes
// for something else than another number.
func decoded(doc []byte) (instance any, ok bool) {
	doc = bytes.ReplaceAll(doc, []byte("1e400"), []byte("0"))
	return instance, json.Unmarshal(doc, &instance) == nil
}
