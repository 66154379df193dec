package verdict

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

var update = flag.Bool("update", false, "write the golden files anew")

func html() http.Header { return http.Header{"Content-Type": {"text/html; charset=utf-8"}} }

// TestEveryStatusHasTheVerdictOfTheTable holds the table of DESIGN §7 as a
// golden file: runs of statuses with the same answer stand on one line.
func TestEveryStatusHasTheVerdictOfTheTable(t *testing.T) {
	var got strings.Builder
	for _, way := range []struct {
		name   string
		answer HTTPAnswer
	}{
		{"plain", HTTPAnswer{}},
		{"with a list", HTTPAnswer{Listed: true}},
		{"list wanted, none given", HTTPAnswer{NeedList: true}},
		{"HTML page", HTTPAnswer{Header: html(), Body: []byte("<p>log in")}},
	} {
		fmt.Fprintf(&got, "# %s\n", way.name)
		first, last := 0, ""
		for s := 0; s <= 1000; s++ {
			a := way.answer
			a.Status = s
			j := HTTP(a)
			line := fmt.Sprintf("%-15s %-8s halve=%-5v job=%s", j.Verdict, j.Reason, j.Halve, j.Verdict.Job())
			if line == last {
				continue
			}
			if last != "" {
				fmt.Fprintf(&got, "%4d-%-4d %s\n", first, s-1, last)
			}
			first, last = s, line
		}
		fmt.Fprintf(&got, "%4d-%-4d %s\n", first, 1000, last)
	}
	golden(t, "testdata/http.golden", got.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", file, got)
	}
}

// TestP5OnlyTheAllowListIsSuccess: of all statuses four are successes.
func TestP5OnlyTheAllowListIsSuccess(t *testing.T) {
	for s := -1; s < 2000; s++ {
		want := s == 200 || s == 201 || s == 202 || s == 204
		if got := HTTP(HTTPAnswer{Status: s}).Verdict.Job() == settle.VerdictOK; got != want {
			t.Errorf("status %d is a success: %v", s, got)
		}
	}
	if HTTPVerdict("").Job() != settle.VerdictRetry || HTTPVerdict("fine").Job() != settle.VerdictRetry {
		t.Error("an unknown verdict is not RETRY")
	}
}

// TestASuccessWithAPageIsNone: portals answer 200 with a page, whatever type
// they give it.
func TestASuccessWithAPageIsNone(t *testing.T) {
	for _, body := range []string{"<!DOCTYPE html><html>", "\ufeff \n<HTML lang=en>", "<html>"} {
		if j := HTTP(HTTPAnswer{Status: 200, Body: []byte(body)}); j.Verdict != HTTPRetry || j.Reason != settle.AttemptProtocol {
			t.Errorf("%q: %+v", body, j)
		}
	}
	if j := HTTP(HTTPAnswer{Status: 200, Body: []byte(`{"page":"<html>"}`)}); j.Verdict != HTTPOK {
		t.Errorf("JSON that speaks of HTML: %+v", j)
	}
}

// TestB056TheTextOfAnAnswerShowsNoSecret: what a network error or a body
// carries is redacted where it is captured.
func TestB056TheTextOfAnAnswerShowsNoSecret(t *testing.T) {
	for name, a := range map[string]HTTPAnswer{
		"url.Error": {Err: &url.Error{Op: "Post", URL: "https://u:hunter2@host.example/x?token=hunter2", Err: errors.New("refused")}},
		"body":      {Status: 500, Body: []byte(`{"error":"no","password":"hunter2"}`)},
		"timeout":   {Err: fmt.Errorf("authorization: Bearer hunter2: %w", context.DeadlineExceeded)},
	} {
		j := HTTP(a)
		if strings.Contains(j.Text, "hunter2") || j.Text == "" {
			t.Errorf("%s: %q", name, j.Text)
		}
		if j.Verdict != HTTPRetry {
			t.Errorf("%s: %s", name, j.Verdict)
		}
	}
}

// TestB055TheTextOfAnAnswerCannotWriteOnTheScreen.
func TestB055TheTextOfAnAnswerCannotWriteOnTheScreen(t *testing.T) {
	j := HTTP(HTTPAnswer{Status: 500, Body: []byte("\x1b[2Jboom\r\nlevel=INFO \u202eforged \u009b2J")})
	if strings.ContainsAny(j.Text, "\x1b\r\n\u202e\u009b") || !strings.Contains(j.Text, "boom") {
		t.Errorf("%q", j.Text)
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func date(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }

// TestB031RetryAfterSecondsDatePastNegativeGarbage.
func TestB031RetryAfterSecondsDatePastNegativeGarbage(t *testing.T) {
	skewed := date(-5 * time.Minute) // the far end's clock; ours is 5 min ahead
	for _, c := range []struct {
		name   string
		header []string
		date   string
		want   time.Duration
	}{
		{"seconds", []string{"10"}, "", 10 * time.Second},
		{"seconds with spaces", []string{" 10 "}, "", 10 * time.Second},
		{"a date 10 s ahead", []string{date(10 * time.Second)}, "", 10 * time.Second},
		{"a date of RFC 850", []string{noon.Add(10 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT")}, "", 10 * time.Second},
		{"a date of asctime", []string{noon.Add(10 * time.Second).Format(time.ANSIC)}, "", 10 * time.Second},
		{"a date in the past", []string{date(-time.Hour)}, "", 0},
		{"negative", []string{"-5"}, "", 0},
		{"zero", []string{"0"}, "", 0},
		{"fraction", []string{"1.5"}, "", 0},
		{"plus", []string{"+5"}, "", 0},
		{"word", []string{"soon"}, "", 0},
		{"unit", []string{"10s"}, "", 0},
		{"other digits", []string{"١٠"}, "", 0},
		{"empty", []string{""}, "", 0},
		{"none", nil, "", 0},
		{"two headers: the longer", []string{"3", "10"}, "", 10 * time.Second},
		{"two headers, one garbage", []string{"soon", "10"}, "", 10 * time.Second},
		{"our clock is wrong, Date says so", []string{date(-5*time.Minute + 10*time.Second)}, skewed, 10 * time.Second},
		{"our clock is wrong, no Date", []string{date(-5*time.Minute + 10*time.Second)}, "", 0},
		{"Date is garbage", []string{date(10 * time.Second)}, "yesterday", 10 * time.Second},
		{"seconds do not look at Date", []string{"10"}, skewed, 10 * time.Second},
	} {
		h := http.Header{"Retry-After": c.header}
		if c.date != "" {
			h.Set("Date", c.date)
		}
		for _, status := range []int{429, 503, 408, 425, 500} {
			j := HTTP(HTTPAnswer{Status: status, Header: h, Received: noon})
			if j.Verdict != HTTPRetry || j.RetryAfter != c.want {
				t.Errorf("%s, %d: wait %s, want %s (%s)", c.name, status, j.RetryAfter, c.want, j.Verdict)
			}
		}
	}
}

// TestB032RetryAfterAbsurdlyLarge: never an overflow, never an immediate retry.
func TestB032RetryAfterAbsurdlyLarge(t *testing.T) {
	for _, v := range []string{"999999", "9223372037", "9223372036854775807", "9223372036854775808", "99999999999999999999",
		strings.Repeat("9", 1000), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		h := http.Header{"Retry-After": {v}}
		for most, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: time.Minute, 1500 * time.Millisecond: 1500 * time.Millisecond} {
			if got := RetryAfter(h, noon, most); got != want {
				t.Errorf("%.30s with cap %s: %s, want %s", v, most, got, want)
			}
		}
	}
	if got := RetryAfter(http.Header{"Retry-After": {"3599"}}, noon, 0); got != 3599*time.Second {
		t.Errorf("a value below the cap: %s", got)
	}
}

// TestRetryAfterIsOnlyReadWhereItSpeaksOfThisRequest: a refusal for good, or a
// page of a portal, sets no pace.
func TestRetryAfterIsOnlyReadWhereItSpeaksOfThisRequest(t *testing.T) {
	for _, a := range []HTTPAnswer{{Status: 401}, {Status: 413}, {Status: 422}, {Status: 407}, {Status: 200}, {Status: 206}} {
		a.Header = http.Header{"Retry-After": {"10"}}
		if j := HTTP(a); j.RetryAfter != 0 {
			t.Errorf("%d: waits %s", a.Status, j.RetryAfter)
		}
	}
}

// FuzzRetryAfterStaysInBounds: whatever the header says.
func FuzzRetryAfterStaysInBounds(f *testing.F) {
	for _, s := range []string{"10", "-5", "1.5", "99999999999999999999", date(0), ""} {
		f.Add(s, s, int64(0))
	}
	f.Fuzz(func(t *testing.T, v, d string, most int64) {
		h := http.Header{"Retry-After": {v}, "Date": {d}}
		limit := time.Duration(most)
		if limit <= 0 {
			limit = DefaultMaxRetryAfter
		}
		if got := RetryAfter(h, noon, time.Duration(most)); got < 0 || got > limit {
			t.Errorf("%q at %q: %s is outside 0 to %s", v, d, got, limit)
		}
	})
}
