package examples

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var (
	answer, submission *jsonschema.Resolved
	load               sync.Once
)

func answerSchema(t *testing.T) *jsonschema.Resolved {
	load.Do(func() { loadSchemas(t) })
	return answer
}

func submissionSchema(t *testing.T) *jsonschema.Resolved {
	load.Do(func() { loadSchemas(t) })
	return submission
}

func loadSchemas(t *testing.T) {
	for file, to := range map[string]**jsonschema.Resolved{"contract": &answer, "submission": &submission} {
		b, err := os.ReadFile("../docs/" + file + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(b, &schema); err != nil {
			t.Fatal(err)
		}
		if *to, err = schema.Resolve(nil); err != nil {
			t.Fatal(err)
		}
	}
}

func decoded(t *testing.T, doc []byte) (instance any) {
	t.Helper()
	if err := json.Unmarshal(doc, &instance); err != nil {
		t.Errorf("%v: %s", err, doc)
	}
	return instance
}

// TestTheDocumentsOfThePageAreValid: each JSON document of docs/contract.md is
// an answer or a submission.
func TestTheDocumentsOfThePageAreValid(t *testing.T) {
	page, err := os.ReadFile("../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	answers, submissions := 0, 0
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		doc, ok := decoded(t, m[1]).(map[string]any)
		schema := answerSchema(t)
		switch {
		case !ok:
			t.Errorf("no object: %s", m[1])
			continue
		case doc["deadline_ms"] != nil:
			schema = submissionSchema(t)
			submissions++
		default:
			answers++
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%v: %s", err, m[1])
		}
	}
	if answers == 0 || submissions == 0 {
		t.Errorf("%d answers, %d submissions", answers, submissions)
	}
}

// TestTheSchemaOfASubmission knows what belongs into one.
func TestTheSchemaOfASubmission(t *testing.T) {
	c := newConsumer(t)
	whole := func() map[string]any { return c.ask(nil, nil).redis(0).set("silence_ms", 60_000).submission }
	valid := func(s map[string]any) error {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return submissionSchema(t).Validate(decoded(t, b))
	}
	for name, change := range map[string]map[string]any{
		"nothing":              {},
		"fields nobody knows":  {"priority": 7},
		"input that is a list": {"input": []int{1}},
		"callback alone":       {"answer": c.ask(nil, nil).submission["answer"]},
		"Redis alone":          {"answer": map[string]any{"redis": whole()["answer"].(map[string]any)["redis"]}},
	} {
		s := whole()
		maps.Copy(s, change)
		if err := valid(s); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
	for _, field := range []string{"v", "job", "step", "attempt", "node", "deadline_ms", "answer", "input"} {
		s := whole()
		delete(s, field)
		if valid(s) == nil {
			t.Errorf("valid without %s", field)
		}
	}
	for field, wrong := range map[string][]any{
		"v":           {0, 2, "1", true},
		"job":         {7, "", "video-7", nil},
		"step":        {7, "", " ", nil},
		"attempt":     {7, "", "a1b2c3", nil},
		"node":        {7, "", nil},
		"deadline_ms": {0, -1, 1.5, "1000", nil},
		"silence_ms":  {0, -1, 1.5, "1000", nil},
		"answer": {nil, "http://x", map[string]any{}, map[string]any{"url": "http://x/y"}, map[string]any{"url": "file:///x", "key": c.ask(nil, nil).key},
			map[string]any{"url": "http://x/y", "key": "secret"}, map[string]any{"redis": map[string]any{"stream": "s"}}},
	} {
		for _, value := range wrong {
			s := whole()
			s[field] = value
			if valid(s) == nil {
				t.Errorf("valid with the %s %v", field, value)
			}
		}
	}
}
