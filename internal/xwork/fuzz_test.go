package xwork

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// FuzzURL: an address that is accepted can be asked, one that is not is refused
// without showing it: it may hold a password.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://a/b?c=d", "https://user:secret@a:8443/", "http://[::1]:80", "http://a:", "http://a:0", "http://a:65536",
		"ftp://a", "http://", "http:///x", "//a", "a", "http://a b", "http://a\x7f", "HTTP://a", "http://%zz", "http://a/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := CheckURL(s); err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Fatalf("the error shows what it was given: %q", err.Error())
			}
			return
		}
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			t.Fatalf("accepted %q: %+v, %v", s, u, err)
		}
		if n, _ := strconv.Atoi(u.Port()); u.Port() != "" && (n < 1 || n > 65535) {
			t.Fatalf("accepted %q with port %s", s, u.Port())
		}
		if _, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s, nil); err != nil {
			t.Fatalf("accepted %q, and no request can be made: %v", s, err)
		}
	})
}
