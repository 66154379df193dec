// Package verdict reads what a command or a far end says as one of the outcomes
// of settle. Every function is pure: codes, headers and bytes in, a verdict out.
package verdict

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// HTTPVerdict is what an HTTP answer means for what was sent: one job, or a
// batch of events. The zero value is read as HTTPRetry.
type HTTPVerdict string

// The HTTP verdicts. There is no other.
const (
	// HTTPOK: everything that was sent is done.
	HTTPOK HTTPVerdict = "ok"
	// HTTPListed: the answer judges item by item; items that it does not name
	// are to be tried again.
	HTTPListed HTTPVerdict = "listed"
	// HTTPRetry: nothing is known to be done; try again later. Of a batch it is
	// charged to the lane, not to its events.
	HTTPRetry HTTPVerdict = "retry"
	// HTTPSplit: something that was sent cannot be accepted as it is. A batch is
	// split to find it; one item alone is TERMINAL.
	HTTPSplit HTTPVerdict = "split"
	// HTTPChannelRefused: the far end refuses whoever asks, or the address, not
	// what was sent: a lane is held and probed; for one job it is TERMINAL.
	HTTPChannelRefused HTTPVerdict = "channel_refused"
	// HTTPProxyRefused: something between here and the far end refuses; the far
	// end has judged nothing. A lane is held, and nothing ever ends by it.
	HTTPProxyRefused HTTPVerdict = "proxy_refused"
)

// HTTPVerdicts lists every HTTP verdict.
var HTTPVerdicts = []HTTPVerdict{HTTPOK, HTTPListed, HTTPRetry, HTTPSplit, HTTPChannelRefused, HTTPProxyRefused}

// HTTPAnswer is what came back for one request, as plain data.
type HTTPAnswer struct {
	// Err is why there is no answer, or no whole one: a network error or a
	// timeout. The rest is then ignored.
	Err    error
	Status int
	Header http.Header
	Body   []byte // or its beginning
	// Listed: the caller has found a well-formed list of items in the body.
	Listed bool
	// NeedList: the destination always answers with a list. False = "simple":
	// a success without a list is a success of all.
	NeedList bool
	// Received is when the answer arrived, by the local clock: what a
	// Retry-After date is compared with where the answer has no Date.
	Received time.Time
	// MaxRetryAfter is the longest Retry-After that is believed. 0 = 1 h.
	MaxRetryAfter time.Duration
}

// HTTPJudged is an answer that has been judged.
type HTTPJudged struct {
	Verdict HTTPVerdict
	// Reason is how the attempt ended, for the attempt's record.
	Reason settle.AttemptReason
	// Halve: with HTTPSplit, the batch as a whole is too large; the halves may
	// well be accepted.
	Halve bool
	// RetryAfter is how long the far end asks to wait, clamped; 0 = it does not
	// say, and the usual backoff holds. A caller adds jitter, never subtracts.
	RetryAfter time.Duration
	// Text says it for people; safe text, "" when HTTPOK.
	Text string
}

// HTTP judges an answer. It is pure and total: the table of DESIGN §7, for jobs
// with an HTTP target and for the outbox. What is not on the list of successes
// is never one.
func HTTP(a HTTPAnswer) HTTPJudged {
	if a.Err != nil {
		return HTTPJudged{Verdict: HTTPRetry, Reason: settle.AttemptError, Text: redact.Error(a.Err)}
	}
	j := judgeStatus(a)
	if j.Verdict == HTTPRetry && j.Reason != settle.AttemptProtocol {
		j.RetryAfter = RetryAfter(a.Header, a.Received, a.MaxRetryAfter)
	}
	if j.Verdict != HTTPOK && j.Verdict != HTTPListed {
		j.Text = redact.Text(statusText(a.Status) + j.Text + snippet(a))
	}
	return j
}

var (
	successes = []int{200, 201, 202, 204}
	busyCodes = []int{408, 425, 429}
	// channelCodes speak of whoever asks, of the address or of the method; 3xx
	// as well: redirects are not followed.
	channelCodes = []int{401, 403, 404, 405, 410, 415, 451, 501}
	// proxyCodes are the words of a proxy or of a captive network.
	proxyCodes = []int{407, 511}
)

func judgeStatus(a HTTPAnswer) HTTPJudged {
	is := func(codes []int) bool { return slices.Contains(codes, a.Status) }
	switch s := a.Status; {
	case is(successes):
		return judgeSuccess(a)
	case is(proxyCodes):
		return HTTPJudged{Verdict: HTTPProxyRefused, Reason: settle.AttemptError, Text: " (a proxy or network on the way refuses)"}
	case is(channelCodes) || s >= 300 && s < 400:
		return HTTPJudged{Verdict: HTTPChannelRefused, Reason: settle.AttemptRefused}
	case is(busyCodes) || s >= 500 && s < 600:
		return HTTPJudged{Verdict: HTTPRetry, Reason: settle.AttemptError}
	case s == http.StatusRequestEntityTooLarge:
		return HTTPJudged{Verdict: HTTPSplit, Reason: settle.AttemptRefused, Halve: true}
	case s >= 400 && s < 500 && a.Listed:
		return HTTPJudged{Verdict: HTTPListed, Reason: settle.AttemptError}
	case s >= 400 && s < 500:
		return HTTPJudged{Verdict: HTTPSplit, Reason: settle.AttemptRefused}
	default: // another 2xx, 1xx, or no status at all
		return protocol(" is no success that is known here")
	}
}

// judgeSuccess believes a success only if its body may be the far end's.
func judgeSuccess(a HTTPAnswer) HTTPJudged {
	switch {
	case isHTML(a):
		return protocol(" with an HTML page: a login page or a captive network, not the far end")
	case a.Listed:
		return HTTPJudged{Verdict: HTTPListed, Reason: settle.AttemptOK}
	case a.NeedList:
		return protocol(" without the list of items that this destination answers with")
	default:
		return HTTPJudged{Verdict: HTTPOK, Reason: settle.AttemptOK}
	}
}

func protocol(text string) HTTPJudged {
	return HTTPJudged{Verdict: HTTPRetry, Reason: settle.AttemptProtocol, Text: text}
}

// isHTML asks the header, and the body too, as portals lie about their type.
func isHTML(a HTTPAnswer) bool {
	if t, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); t == "text/html" || t == "application/xhtml+xml" {
		return true
	}
	b := bytes.TrimPrefix(a.Body[:min(len(a.Body), 512)], []byte("\ufeff"))
	b = bytes.ToLower(bytes.TrimSpace(b))
	return bytes.HasPrefix(b, []byte("<!doctype html")) || bytes.HasPrefix(b, []byte("<html"))
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// maxSnippet is how much of a failure's body is shown.
const maxSnippet = 300

// snippet is the beginning of a failure's body, if it is text for people.
func snippet(a HTTPAnswer) string {
	body := bytes.TrimSpace(a.Body)
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	readable := kind == "" || kind == "text/plain" || kind == "application/json" || kind == "application/problem+json"
	if len(body) == 0 || !readable || isHTML(a) {
		return ""
	}
	text := []rune(redact.Text(string(body[:min(len(body), 16<<10)])))
	return ": " + string(text[:min(len(text), maxSnippet)])
}

// Job maps the verdict to that of a job whose whole input was sent: there is
// nothing to split and no lane to hold, so both are TERMINAL. What only a proxy
// refused is tried again: the far end has judged nothing.
func (v HTTPVerdict) Job() settle.Verdict {
	switch v {
	case HTTPOK, HTTPListed:
		return settle.VerdictOK
	case HTTPSplit, HTTPChannelRefused:
		return settle.VerdictTerminal
	default:
		return settle.VerdictRetry
	}
}
