package redact

import (
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"testing"
)

// golden cases: what goes in, what comes out of Text and Tail, and the secrets that
// no function may let through.
var golden = []struct{ in, want, secrets string }{
	// Addresses.
	{"dial scheme://user:p%40ss@host/db: refused", "dial scheme://host: refused", "p%40ss p@ss"},
	{`cannot parse "postgres://u:p%S@h": invalid URL escape "%S@"`, `cannot parse "postgres://h": invalid URL escape`, "p%S %S"},
	{`parse "postgres://u:pa/ss9@h:5432/db": invalid port ":pa" after host`, `parse "postgres://h:5432": invalid port after host`, "pa/ ss9 :pa"},
	{"redis://:p@s5/w0rd@host:6379/0: EOF", "redis://[redacted]: EOF", "p@s5 s5/ w0rd"},
	{`open postgres://u:p"s5@h/db failed`, "open postgres://h failed", `p"s5 s5`},
	{"open postgres://u:p s5@h/db failed", "open postgres://h failed", "s5"},
	{"clone https://x-access-token:ghs_a1b2@github.com/o/r.git: 403", "clone https://github.com: 403", "ghs_a1b2"},
	{"mongodb://u:pw9@h1:27017,h2:27017/db?x=1 down", "mongodb://h1:27017,h2:27017 down", "pw9"},
	{"bob:hunter2@tcp(10.0.0.1:3306)/db: refused", "bob:[redacted]@tcp(10.0.0.1:3306)/db: refused", "hunter2"},
	{`{"u":"https:\/\/bob:pw9@h\/x"}`, `{"u":"https://h"}`, "pw9"},
	{"redirect=https%3A%2F%2Fbob%3Apw9%40h%2Fx", "redirect=https://[redacted]", "pw9"},
	{"dial tcp: lookup pw9@host: no such host", "dial tcp: lookup host: no such host", "pw9"},
	{"get https://h/a, http://[::1]:80/b (see https://h2/c).", "get https://h, http://[::1]:80 (see https://h2).", "/a /b /c"},
	{"https://medium.example/@user/post gone", "https://medium.example gone", "post"},
	{"file:///etc/app/conf.yml missing", "file://conf.yml missing", "/etc"},
	// Queries.
	{"GET https://h/p?token=t0k&api_key=k3y: 401", "GET https://h: 401", "t0k k3y"},
	{"GET /v1/users?token=t0k&api_key=k3y: 401", "GET users: 401", "t0k k3y"},
	{"?token=t0k&page=2&api_key=k3y", "?token=[redacted]&page=2&api_key=[redacted]", "t0k k3y"},
	// Headers.
	{"Authorization: Bearer abc.d3f-ghi rejected", "Authorization: Bearer [redacted] rejected", "abc.d3f"},
	{"sent Authorization: Basic dXNlcjpwYXNz, got 401", "sent Authorization: Basic [redacted], got 401", "dXNlcjpwYXNz"},
	{"authorization: s3same open", "authorization: [redacted] open", "s3same"},
	{"map[Authorization:[Bearer ab9] Host:[h]]", "map[Authorization:[redacted] Host:[h]]", "ab9"},
	{`{"Authorization":["Bearer ab9"],"n":1}`, `{"Authorization":[redacted],"n":1}`, "ab9"},
	{`Authorization: Digest username="b", response="d9e8", x=1 end`, "Authorization: Digest [redacted] end", "d9e8"},
	{"with bearer a1b2c3: 403", "with bearer [redacted]: 403", "a1b2c3"},
	{`WWW-Authenticate: Bearer realm="api"`, `WWW-Authenticate: Bearer realm="api"`, ""},
	{"Cookie: sid=a1; theme=d4 end", "Cookie: [redacted] end", "a1 d4"},
	{"X-Api-Key: k3y", "X-Api-Key: [redacted]", "k3y"},
	// Labels.
	{"host=db password=hunter2 user=bob", "host=db password=[redacted] user=bob", "hunter2"},
	{"host=db password='hun ter2' user=bob", "host=db password='[redacted]' user=bob", "hun ter2"},
	{"passwd: hunter2, user: bob", "passwd: [redacted], user: bob", "hunter2"},
	{"PGPASSWORD=hunter2;X=1", "PGPASSWORD=[redacted];X=1", "hunter2"},
	{"Server=h;Pwd=a;b&c;Database=d", "Server=h;Pwd=[redacted];Database=d", "a;b b&c"},
	{"{User:bob Password:hunter2 Host:h}", "{User:bob Password:[redacted] Host:h}", "hunter2"},
	{"client_secret = s3c and apiToken => t0k", "client_secret = [redacted] and apiToken => [redacted]", "s3c t0k"},
	{"secret:s3c api key: k3y", "secret:[redacted] api key: [redacted]", "s3c k3y"},
	{"db_pass=p9 smtppass='p8' \"auth\":\"dTpw\"", `db_pass=[redacted] smtppass='[redacted]' "auth":"[redacted]"`, "p9 p8 dTpw"},
	{"run --password hunter2 --api-key=k3y -u bob:pw9 x", "run --password [redacted] --api-key=[redacted] -u bob:[redacted] x", "hunter2 k3y pw9"},
	{`invalid password "hunter2" for bob`, `invalid password "[redacted]" for bob`, "hunter2"},
	{"<password>hun ter2</password><host>h</host>", "<password>[redacted]</password><host>h</host>", "hun ter2"},
	{"password%3Dhunter2 password\\u003dhunter3", "password%3D[redacted] password\\u003d[redacted]", "hunter2 hunter3"},
	{"the password is: 'it's me' ok", "the password is: '[redacted]' ok", "me'"},
	{"user[password]=hunter2&x=1", "user[password]=[redacted]&x=1", "hunter2"},
	{"b'token': b'a1b2'", "b'token': b'[redacted]'", "a1b2"},
	{"AccountKey=ab1+/==;EndpointSuffix=core", "AccountKey=[redacted];EndpointSuffix=core", "ab1"},
	// JSON.
	{`400: {"password":"hun\"ter2","user":"bob"}`, `400: {"password":"[redacted]","user":"bob"}`, "ter2"},
	{`body "{\"password\":\"hun\\\"ter2\",\"user\":\"bob\"}"`, `body "{\"password\":\"[redacted]\",\"user\":\"bob\"}"`, "ter2"},
	{`{"password": "cut hunter2`, `{"password": "[redacted]`, "hunter2 cut"},
	{`{"token":12345,"tokens":["t0k","t1k"],"n":1}`, `{"token":[redacted],"tokens":[redacted],"n":1}`, "12345 t0k t1k"},
	{`{"credentials":{"user":"b","k":"v9"},"n":1}`, `{"credentials":[redacted],"n":1}`, "v9"},
	{"{&quot;password&quot;:&quot;hunter2&quot;}", "{&quot;password&quot;:[redacted];}", "hunter2"},
	// Keys and tokens.
	{"AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY denied", "[redacted] [redacted] denied", "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI bPxRfi"},
	{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY region=eu", "aws_secret_access_key = [redacted] region=eu", "wJalrXUtnFEMI bPxRfi"},
	{"bad ghp_abcdefghijklmnopqrstuvwxyz0123456789", "bad [redacted]", "ghp_"},
	{"bad xoxb-1234567890-abcdefghij", "bad [redacted]", "xoxb"},
	{"bad sk_live_abcdefgh12345678", "bad [redacted]", "sk_live"},
	{"bad AIzaSyA1234567890abcdefghijklmnopqrstuv", "bad [redacted]", "AIza"},
	{"bad eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmN", "bad [redacted]", "eyJ dozjg"},
	{"-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nd3f=\n-----END RSA PRIVATE KEY-----\nbad", "[redacted] bad", "MIIE d3f"},
	{`{"k":"-----BEGIN PRIVATE KEY-----\nMIIEabc\n-----END PRIVATE KEY-----\n"}`, `{"k":"[redacted]\n"}`, "MIIE"},
	{"-----BEGIN OPENSSH PRIVATE KEY-----\nMIIEabc", "[redacted]", "MIIE"},
	{"error: MIIEabc\nd3f=\n-----END PRIVATE KEY----- bad", "error: [redacted] bad", "MIIE d3f"},
	// Behind a sequence that was cut short.
	{"\x1b[password=hunter2 \x1b[31", "password=[redacted]", "hunter2"},
	{"\x1bPassword=hunter2 \x1b \"api_key\":\"k3y\"", "Password=[redacted] \"api_key\":\"[redacted]\"", "hunter2 k3y"},
	{"\x1b[ghp_abcdefghijklmnopqrstuvwxyz01 \u009bBearer a1b2", "[redacted] Bearer [redacted]", "ghp_ a1b2"},
	// Split by what a screen does not show.
	{"password=hun\u202eter2", "password=[redacted]", "hun ter2"},
	{"pass\u200bword=hun\xffter2", "password=[redacted]", "hun ter2"},
	{"gh\u200bp_abcdefghij\x1b[31mklmnopqrstuv\x00wxyz\ufffd0123", "[redacted]", "abcdefghij klmnop"},
}

func TestP12AndB056SecretsNeverSurvive(t *testing.T) {
	for _, c := range golden {
		if got := Text(c.in); got != c.want {
			t.Errorf("Text(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
		if got := Tail([]byte(c.in)); got != c.want {
			t.Errorf("Tail(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
		for _, secret := range strings.Fields(c.secrets) {
			if strings.HasPrefix(secret, "/") || secret == "post" {
				continue // a name keeps paths
			}
			if got := Name(c.in); strings.Contains(got, secret) {
				t.Errorf("Name(%q) = %q shows %q", c.in, got, secret)
			}
		}
		for _, secret := range strings.Fields(c.secrets) {
			if got := Error(errors.New(c.in)); strings.Contains(got, secret) {
				t.Errorf("Error(%q) = %q shows %q", c.in, got, secret)
			}
		}
	}
}

// unlabelled tokens have a shape and nothing else.
func TestB056TokenShapesAreRedacted(t *testing.T) {
	for _, secret := range []string{
		"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"Zm9vYmFyMTIzNDU2Nzg5MEFCQ0RFRkdISUpLTE1OT1A=",
		"q1W2e3R4t5Y6u7I8o9P0a1S2",
		"5f4dcc3b5aa765d61d8327deb882cf99",                 // 32 hex without a label: API keys
		"0123456789abcdef0123456789abcdef0123456789abcdef", // 48 hex
		"5F4DCC3B5AA765D61D8327DEB882CF995F4DCC3B",         // upper-case 40 hex
		"k7x2m9q4w1z8c3v6b5n0a2s4d6f8g1h3",
	} {
		for _, format := range []string{"rejected %s by host", "(%s)", "x:%s", "/%s"} {
			if got := Text(fmt.Sprintf(format, secret)); strings.Contains(got, secret) {
				t.Errorf("%q shows the secret", got)
			}
		}
	}
}

func TestP12HarmlessTextStays(t *testing.T) {
	for _, s := range []string{
		"job 550e8400-e29b-41d4-a716-446655440000 on Node-550E8400-E29B-41D4-A716-446655440000",
		"sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 mismatch",
		"md5:d41d8cd98f00b204e9800998ecf8427e differs", "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
		"pull repo:tag@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"pod web-7d9f8b6c5d-x2x4z: TestVeryLongCamelCaseNameWith123NumbersAndMore.func1",
		`FATAL: password authentication failed for user "app" (SQLSTATE 28P01)`,
		"invalid token: unexpected EOF", "desc = invalid token: token is expired by 3m", "JSON: unexpected token: expected a comma", "password: incorrect",
		"total_tokens: 4096, max_tokens=8192", "token_type=x secretName: y", `secret "db-credentials" not found`,
		"--- PASS: TestX (0.00s)", "pass: 3, fail: 1", "Basic authentication failed", "bearer token missing",
		"dial tcp [::1]:5432: connect: connection refused", "lookup db.internal: no such host",
		"read tcp 10.0.0.1:443->10.0.0.2:5151: i/o timeout", "application/json and/or 2026/07/01 // x",
		"exit status 137: out of memory", "</div> expected", "std::vector secret::Key token::Parser",
		"render at frame 12 failed (attempt 3/10)", "scale=0.5; width=1920, height=1080", "ratio 16:9 at 12:30:45",
	} {
		if got := Text(s); got != s {
			t.Errorf("Text(%q)\n   = %q", s, got)
		}
	}
}

func TestP12PathsAreCutToTheirLastElement(t *testing.T) {
	for in, want := range map[string]string{
		"open /var/lib/app/data.db: permission denied": "open data.db: permission denied",
		"/a/b.go:12:3: undefined: x":                   "b.go:12:3: undefined: x",
		"in=/a/b,out=/c/d (see /e/f).":                 "in=b,out=d (see f).",
		`open C:\Users\bob\x.txt: denied`:              "open x.txt: denied",
		`open "C:\\Users\\John Doe\\x y.txt": denied`:  `open "x y.txt": denied`,
		"open C:/Users/bob/x.txt":                      "open x.txt",
		`\\server\share\f.txt not found`:               "f.txt not found",
		"'/home/John Doe/x' missing":                   "'x' missing",
		"~/.ssh/id_rsa /var/log/ /":                    "id_rsa log /",
		"PATH=/usr/bin:/usr/local/bin":                 "PATH=bin:bin",
		"./rel/path ../up a/b":                         "./rel/path ../up a/b",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q)\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestB056NoStackInStoredText(t *testing.T) {
	deep := "panic: boom\n\n" + strings.Repeat(string(debug.Stack())+"\n", 12) + "exit status 2"
	if n := strings.Count(deep, "\n"); n < 100 {
		t.Fatalf("only %d lines", n)
	}
	flat := strings.ReplaceAll(deep, "\n", " ")
	escaped := strings.Trim(fmt.Sprintf("%q", deep), `"`)
	for name, c := range map[string]struct{ in, want string }{
		"Go":      {deep, "panic: boom exit status 2"},
		"flat":    {flat, "panic: boom exit status 2"},
		"escaped": {escaped, `panic: boom\n\n \n\n \n\n \n\n \n\n \n\n \n\n \n\n \n\n \n\n \n\n \n\n \n\nexit status 2`},
		"+v":      {"boom\nexample.com/x.(*T).Run\n\t/src/x.go:12\nruntime.goexit\n\t/go/asm.s.go:1650", "boom"},
		"created": {"goroutine 7 [select, 3 minutes]:\nmain.f({0x1, 0x2}, 0x3)\n\t/x.go:1 +0x1d\ncreated by main.g in goroutine 1\n\t/x.go:2 +0x2d\nend", "end"},
		"cut":     {"main.f(0x1)\n\t/x.go:1 +0x1d\nrax    0x0\nend", "end"},
		"Java":    {"java.io.IOException: full\n\tat a.B.c(B.java:1)\n\tat a.B.d(Native Method)\n\t... 23 more", "java.io.IOException: full"},
		"inline":  {"IOException: full at a.B.c(B.java:1) at a.B.d(B.java:2) end", "IOException: full end"},
		"Node":    {"TypeError: x\n    at f (/a/b.js:1:2)\n    at /a/c.js:3:4", "TypeError: x"},
		"Python":  {"Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n    g()\n    ^^^\nValueError: bad", "ValueError: bad"},
		"Ruby":    {"x.rb:1:in 'f': bad\n\tfrom y.rb:2:in 'g'", "x.rb:1:in 'f': bad"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Text(c.in)
			if name == "escaped" {
				got = strings.Join(strings.FieldsFunc(got, func(r rune) bool { return r == '\\' || r == ' ' }), " ")
				if strings.Contains(got, ".go:") || strings.Contains(got, "goroutine") {
					t.Errorf("stack left: %q", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestB056MalformedAddressOfNetURL(t *testing.T) {
	for _, raw := range []string{"postgres://u:p%S9x@h", "postgres://u:p9x/y9z@h/db", "postgres://u:p9x y9z@h", "postgres://u:p9x[y9z@h", "post gres://u:p9x@h", "postgres://u:p9x\x7fy9z@h"} {
		_, err := url.Parse(raw)
		if err == nil {
			continue
		}
		got := Error(fmt.Errorf("connect: %w", err))
		for _, secret := range []string{"S9x", "p9x", "y9z"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q: %q shows %q", raw, got, secret)
			}
		}
		if !strings.Contains(got, "://h") {
			t.Errorf("%q: %q hides the host", raw, got)
		}
	}
}
