package storetest

import (
	"strings"
	"testing"
	"unicode"
)

// TestClauseNames: a name leads to one clause, and reads as a sentence.
func TestClauseNames(t *testing.T) {
	seen := map[string]string{}
	for _, topic := range topics {
		for _, c := range topic.clauses {
			if where, twice := seen[c.name]; twice {
				t.Errorf("clause %q: got it in %s and %s, want one name for one clause", c.name, where, topic.name)
			}
			seen[c.name] = topic.name
			if len(strings.Fields(c.name)) < 4 || strings.IndexFunc(c.name, unicode.IsControl) >= 0 {
				t.Errorf("clause %q: want a sentence that must be true", c.name)
			}
		}
	}
}
