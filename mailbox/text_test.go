package mailbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/settle-go/settle/internal/redact"
)

// inJSON writes s as a JSON string in which nothing but ASCII stands.
func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// told is every text that a failure with these words shows, by the two judges
// that hear it, to a ticket that names step and node and to one that does not.
func told(t *testing.T, words string) map[string]string {
	t.Helper()
	w := inJSON(words)
	doc := []byte(`{"v":1,"job":"j","step":` + w + `,"attempt":"a","node":` + w + `,"status":"error","error":{"reason":` + w + `,"message":` + w + `}}`)
	plain := []byte(`{"status":"error","message":` + w + `}`)
	all := map[string]string{}
	for name, look := range map[string]func() (Answer, error){
		"contract":            func() (Answer, error) { return ContractJudge(Ticket{}, doc) },
		"contract and ticket": func() (Answer, error) { return ContractJudge(Ticket{Step: words, Node: words}, doc) },
		"status":              func() (Answer, error) { return StatusJudge(Ticket{}, plain) },
	} {
		_, err := look()
		e, ok := err.(*StepError)
		if !ok {
			t.Fatalf("%s: %v", name, err)
		}
		for way, s := range printed(e) {
			if way != "%#v" && way != "json" || name != "contract and ticket" { // which shows the ticket's own words
				all[name+" "+way] = s
			}
		}
		all[name+" message"] = e.Message
		if e.Reason != "" { // a plain status has none
			all[name+" reason"] = e.Reason
		}
		checkText(t, e.Reason, redact.MaxName)
		checkText(t, e.Message, redact.Max)
		checkText(t, e.Error(), redact.Max)
	}
	a, err := ContractJudge(Ticket{}, []byte(`{"v":1,"job":"j","step":"s","attempt":"a","node":`+w+`,"status":"done","output":1}`))
	if err != nil {
		t.Fatal(err)
	}
	all["node of an answer"] = a.Node
	checkText(t, a.Node, redact.MaxName)
	return all
}

func TestB055WordsOfANodeCannotWriteOnTheScreen(t *testing.T) {
	hostile := "boom\x1b[2J \x1b]0;x\a \x1b]8;;http://e.example\x1b\\link \x1b]52;c;aGk=\a \u009b31m \u202eabc \u2066def \u2028 \r\nlevel=INFO msg=fine \b\b\b \u200b\ufeff"
	for way, s := range told(t, hostile) {
		t.Run("B-055 no control or direction character: "+way, func(t *testing.T) {
			s := strings.TrimSuffix(s, "\n") // the end of a log line
			if strings.ContainsAny(s, "\x1b\a\b\r\n\u009b\u202e\u2066\u2028\u200b\ufeff") {
				t.Errorf("%q", s)
			}
		})
	}
	t.Run("B-055 other alphabets stay readable", func(t *testing.T) {
		const words = "الذاكرة ממתין память 内存 🎬"
		for way, s := range told(t, words) {
			if !strings.HasSuffix(way, "%x") && !strings.Contains(s, words) {
				t.Errorf("%s: %q", way, s)
			}
		}
	})
}

func TestB056WordsOfANodeShowNoSecret(t *testing.T) {
	for _, words := range []string{
		"dial postgres://u:p%40ss-hunter2@db.example/x", "GET https://api.example/x?token=hunter2&api_key=hunter2",
		"Authorization: Bearer hunter2hunter2hunter2", "password=hunter2", "AKIAIOSFODNN7EXAMPLE aws_secret_access_key=hunter2/K7MDENG/bPxRfiCYEXAMPLEKEY",
		`the server said {"user":"u","password":"hunter2"}`, `parse "postgres://u:hunter2%S@h": invalid URL escape "%S@"`,
	} {
		for way, s := range told(t, words) {
			if strings.Contains(s, "hunter2") || strings.Contains(s, "AKIAIOSFODNN7EXAMPLE") || strings.Contains(s, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s: %q", way, s)
			}
		}
	}
	stack := told(t, "boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:7 +0x1d\n")
	if s := stack["contract message"] + stack["contract reason"] + stack["status message"]; strings.Contains(s, "goroutine") {
		t.Errorf("a stack is shown: %q", s)
	}
	if s := told(t, "dial postgres://u:hunter2@db.example/x: connection refused"); !strings.Contains(s["contract message"], "db.example") || !strings.Contains(s["contract message"], "connection refused") {
		t.Errorf("host and kind of the error are gone: %q", s["contract message"])
	}
}

// TestP12NothingOfAMalformedDocumentIsShown: whatever it says, and however its
// error is printed, it is printed as one that never saw a document.
func TestP12NothingOfAMalformedDocumentIsShown(t *testing.T) {
	shown := 0
	for set, judge := range map[string]Judge{"contract": ContractJudge, "status": StatusJudge} {
		for _, d := range documents(t, set) {
			_, err := judge(ticket, d.bytes)
			p, ok := err.(*ProtocolError)
			if !ok {
				continue
			}
			shown++
			wrapped := func(err error) error { return fmt.Errorf("job video-7: %w", err) }
			want := printed(wrapped(&ProtocolError{Step: "render", Node: "gpu-3", Reason: p.Reason, Field: p.Field, Size: p.Size}))
			for way, s := range printed(wrapped(p)) {
				if way != "%#v" && s != want[way] { // which prints addresses
					t.Errorf("%s: %s shows %q", d.name, way, s)
				}
			}
			if s := fmt.Sprintf("%#v", p); strings.Contains(s, "canary") || strings.Contains(s, "0x63, 0x61, 0x6e") {
				t.Errorf("%s: shows %s", d.name, s)
			}
		}
	}
	if shown < 100 {
		t.Errorf("only %d malformed documents", shown)
	}
}
