package verdict

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// FuzzHTTP: every answer has a verdict of the list, and nothing is a success
// that is not on the list of successes (P5).
func FuzzHTTP(f *testing.F) {
	for _, status := range []int{0, 200, 204, 206, 302, 401, 407, 408, 413, 422, 429, 500, 599, 1000, -1} {
		f.Add(status, "application/json", "10", []byte(`{"error":"no"}`), uint8(0))
		f.Add(status, "text/plain; charset=\xff", "-1", []byte("\ufeff <!DOCTYPE html>"), uint8(3))
		f.Add(status, "", "", []byte("\x1b[31m password=hunter2 \xff"), uint8(4))
	}
	f.Fuzz(func(t *testing.T, status int, kind, after string, body []byte, bits uint8) {
		a := HTTPAnswer{Status: status, Header: http.Header{"Content-Type": {kind}, "Retry-After": {after}}, Body: bytes.Clone(body),
			Listed: bits&1 != 0, NeedList: bits&2 != 0, Received: noon}
		if bits&4 != 0 {
			a.Err = errors.New(kind + string(body))
		}
		got := HTTP(a)
		if again := HTTP(a); !reflect.DeepEqual(got, again) || !bytes.Equal(a.Body, body) {
			t.Fatalf("judged twice differently, or the body was changed: %+v %+v", got, again)
		}
		if !slices.Contains(HTTPVerdicts, got.Verdict) || !slices.Contains(settle.AttemptReasons, got.Reason) {
			t.Fatalf("%+v is not on the lists", got)
		}
		success := slices.Contains([]int{200, 201, 202, 204}, status) && !isHTML(a) && a.Err == nil
		switch {
		case got.Verdict == HTTPOK && (!success || a.NeedList && !a.Listed), got.Reason == settle.AttemptOK && !success:
			t.Fatalf("%d %q %q: %+v", status, kind, body, got)
		case got.Verdict == HTTPListed && (!a.Listed || a.Err != nil):
			t.Fatalf("%d: listed without a list", status)
		case (got.Verdict.Job() == settle.VerdictOK) != (got.Verdict == HTTPOK || got.Verdict == HTTPListed):
			t.Fatalf("%s is %s for a job", got.Verdict, got.Verdict.Job())
		}
		if got.RetryAfter < 0 || got.RetryAfter > DefaultMaxRetryAfter || got.RetryAfter > 0 && got.Verdict != HTTPRetry {
			t.Fatalf("%s asks to wait %s", got.Verdict, got.RetryAfter)
		}
		told := got.Verdict != HTTPOK && got.Verdict != HTTPListed
		if (got.Text != "") != told || len(got.Text) > redact.Max || !utf8.ValidString(got.Text) || strings.ContainsFunc(got.Text, unicode.IsControl) {
			t.Fatalf("%s is told as %q", got.Verdict, got.Text)
		}
	})
}
