package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/settle-go/settle/internal/redact"
)

// checkLook holds a verdict against what must be true of each, and names it.
func checkLook(t *testing.T, tk Ticket, doc []byte, a Answer, err error) string {
	t.Helper()
	if err != nil && !reflect.ValueOf(a).IsZero() {
		t.Errorf("%v, and an answer: %+v", err, a)
	}
	if final := errors.As(err, new(*StepError)) || errors.As(err, new(*ProtocolError)); IsFinal(err) != final {
		t.Errorf("IsFinal(%v) is %v", err, !final)
	}
	switch e := err.(type) {
	case nil:
		checkAnswer(t, tk, doc, a)
	case *StepError:
		checkStepError(t, tk, e)
	case *ProtocolError:
		checkProtocolError(t, tk, doc, e)
	}
	return kind(err)
}

func checkAnswer(t *testing.T, tk Ticket, doc []byte, a Answer) {
	t.Helper()
	if !json.Valid(a.Output) || !bytes.Contains(doc, a.Output) {
		t.Errorf("the output is no JSON, or not what was written: %q", a.Output)
	}
	if tk.Node != "" && a.Node != tk.Node {
		t.Errorf("node %q, the work was given to %q", a.Node, tk.Node)
	}
	if tk.Node == "" {
		checkText(t, a.Node, redact.MaxName)
	}
}

func checkStepError(t *testing.T, tk Ticket, e *StepError) {
	t.Helper()
	if tk.Node != "" && e.Node != tk.Node || tk.Step != "" && e.Step != tk.Step {
		t.Errorf("of step %q on node %q; the ticket is %+v", e.Step, e.Node, tk)
	}
	if !slices.Contains([]Retry{RetryUnsaid, RetryHelps, RetryUseless}, e.Retry) || e.RetryAfter < 0 || e.RetryAfter > MaxRetryAfter {
		t.Errorf("retry %q after %s", e.Retry, e.RetryAfter)
	}
	if e.Message == "" {
		t.Error("no message")
	}
	checkText(t, e.Reason, redact.MaxName)
	checkText(t, e.Message, redact.Max)
	checkText(t, e.Error(), redact.Max)
}

// checkProtocolError: every text is made of the ticket and of closed lists, so
// that nothing of the document can be in it.
func checkProtocolError(t *testing.T, tk Ticket, doc []byte, e *ProtocolError) {
	t.Helper()
	fields := append([]string{""}, documentFields...)
	for _, f := range errorFields {
		fields = append(fields, "error."+f)
	}
	if !slices.Contains(Reasons, e.Reason) || !slices.Contains(fields, e.Field) {
		t.Errorf("reason %q, field %q", e.Reason, e.Field)
	}
	if e.Step != tk.Step || e.Node != tk.Node || e.Size != len(doc) {
		t.Errorf("%+v; the ticket is %+v, the size %d", *e, tk, len(doc))
	}
	same := &ProtocolError{Step: tk.Step, Node: tk.Node, Reason: e.Reason, Field: e.Field, Size: len(doc)}
	if e.Error() != same.Error() {
		t.Errorf("says %q, want %q", e, same)
	}
	checkText(t, e.Error(), redact.Max)
	if raw := e.Raw(); !bytes.Equal(raw, doc[:min(len(doc), MaxRaw)]) {
		t.Errorf("%d raw bytes of %d", len(raw), len(doc))
	}
}

// checkText: bounded, valid, and harmless on a screen.
func checkText(t *testing.T, s string, most int) {
	t.Helper()
	bad := func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	}
	if len(s) > most || !utf8.ValidString(s) || strings.ContainsFunc(s, bad) {
		t.Errorf("unsafe text of %d bytes: %.300q", len(s), s)
	}
}

// printed is an error in every form in which programs show one.
func printed(err error) map[string]string {
	all := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%s", "%q", "%x", "%#v"} {
		all[verb] = fmt.Sprintf(verb, err)
	}
	b, _ := json.Marshal(err)
	all["json"] = string(b)
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, quiet) },
		"slog json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, quiet) },
	} {
		var out bytes.Buffer
		slog.New(handler(&out)).Error("judged", "error", err)
		all[name] = out.String()
	}
	return all
}

// quiet leaves out the time, which differs from line to line.
var quiet = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}
