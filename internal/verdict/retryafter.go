package verdict

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultMaxRetryAfter is the longest wait that a far end may ask for.
const DefaultMaxRetryAfter = time.Hour

// RetryAfter reads how long the far end asks to wait: seconds, or an HTTP date.
// A date is compared with the answer's own Date, so that a wrong clock on
// either side does not matter, and with received where there is none. The wait
// is clamped to most (0 = DefaultMaxRetryAfter). A value in the past, negative,
// fractional or otherwise malformed asks for nothing: 0, the usual backoff.
// Among several headers the longest wait counts.
//
// Source: RFC 9110, section 10.2.3 (delay-seconds = 1*DIGIT, or HTTP-date).
func RetryAfter(h http.Header, received time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		most = DefaultMaxRetryAfter
	}
	base := received
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		base = t
	}
	var wait time.Duration
	for _, v := range h.Values("Retry-After") {
		wait = max(wait, oneRetryAfter(strings.TrimSpace(v), base, most))
	}
	return wait
}

func oneRetryAfter(v string, base time.Time, most time.Duration) time.Duration {
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n > int64(most/time.Second) { // also beyond 64 bits
			return most
		}
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(base), 0), most) // Sub saturates
}
