package mailbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// FuzzJudge: whatever lies there and whoever asks, each judge comes to one
// verdict, always the same, that keeps what checkLook asks.
func FuzzJudge(f *testing.F) {
	for _, set := range []string{"contract", "status"} {
		for _, d := range documents(f, set) {
			f.Add(d.bytes, ticket.Job, ticket.Step, ticket.Attempt, ticket.Node)
			f.Add(d.bytes, "", "", "", "")
		}
	}
	f.Add([]byte(nested(maxDepth+1)), "\x1b[2J", "password=x", "\xff", "\u202e")
	f.Fuzz(func(t *testing.T, doc []byte, job, step, attempt, node string) {
		tk := Ticket{job, step, attempt, node}
		for name, judge := range map[string]Judge{"contract": ContractJudge, "status": StatusJudge} {
			given := bytes.Clone(doc)
			a, err := judge(tk, given)
			got := checkLook(t, tk, doc, a, err)
			if !slices.Contains(verdicts, got) {
				t.Fatalf("%s: %v is no verdict on a document", name, err)
			}
			if !bytes.Equal(given, doc) {
				t.Fatalf("%s: the document was changed", name)
			}
			looked := func(t Ticket, doc []byte) (Answer, error) { return judge.Look(t, doc, true) }
			for _, again := range []Judge{judge, looked} {
				b, err2 := again(tk, doc)
				if !bytes.Equal(a.Output, b.Output) || a.Node != b.Node || fmt.Sprint(err) != fmt.Sprint(err2) {
					t.Fatalf("%s: judged twice differently: %v, %v", name, err, err2)
				}
			}
			checkAgainstDecoder(t, name, tk, doc, got, a)
		}
	})
}

// checkAgainstDecoder reads the document once more in another way.
func checkAgainstDecoder(t *testing.T, judge string, tk Ticket, doc []byte, verdict string, a Answer) {
	t.Helper()
	if verdict == "protocol" {
		return
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		t.Fatalf("%s: %s, and no decoder reads it: %v", judge, verdict, err)
	}
	text := func(field string) (s string) {
		if json.Unmarshal(fields[field], &s) != nil {
			return "(no string)"
		}
		return s
	}
	if judge == "contract" {
		if ours := tk.Attempt == "" || text("attempt") == tk.Attempt; ours == (verdict == "stale") {
			t.Fatalf("%s answers attempt %q; the ticket's is %q", verdict, text("attempt"), tk.Attempt)
		}
	}
	if verdict == "stale" {
		return
	}
	if text("status") != verdict {
		t.Fatalf("%s: %s, and the status is %s", judge, verdict, fields["status"])
	}
	if judge == "status" {
		if verdict == "done" && !bytes.Equal(a.Output, doc) {
			t.Fatal("the output is not the document")
		}
		return
	}
	if verdict == "done" && !bytes.Equal(a.Output, fields["output"]) {
		t.Fatalf("output %q of %q", a.Output, fields["output"])
	}
	if tk.Job != "" && text("job") != tk.Job || tk.Step != "" && text("step") != tk.Step {
		t.Fatalf("%s for job %s and step %s; the ticket is %+v", verdict, fields["job"], fields["step"], tk)
	}
	late := tk
	late.Attempt = text("attempt") + "x"
	if _, err := ContractJudge(late, doc); err != ErrStale {
		t.Fatalf("%s, and to another attempt %v", verdict, err)
	}
}
