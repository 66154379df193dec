package storetest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

var textClauses = []clause{
	{"B-052 a payload comes back byte for byte through its whole life", payloadBytes},
	{"B-052 outputs and step results come back byte for byte", outputBytes},
	{"B-053 every error text that was made safe is stored the first time", safeTexts},
	{"B-053 a text that nobody made safe does not stop its job or its neighbours", unsafeTexts},
	{"P12 readable text of any language is stored as it is", readableTexts},
	{"names of any language are stored and compared as they are", readableNames},
}

// bytePayloads are inputs that a decoder on the way would change.
var bytePayloads = []string{
	`{"n":3889108265204450030}`, `{"n":9007199254740993}`, `1e400`, `-0`, `1.0`, `0.1`,
	`{"z":1,"a":2,"m":3}`, `{"a":1,"a":2}`, "  { \"a\" :\t1 }\n", `"grüße \u2028 ` + "\u2028" + `"`,
	"", "null", "not JSON at all", "\x00\x01\xff\xfe", "\xe8re", strings.Repeat("\x00", 5000), "\xef\xbb\xbf{}",
}

func payloadBytes(r *rig) {
	want := map[settle.ID]string{}
	for _, p := range bytePayloads {
		n := withPolicy(settle.Policy{Attempts: 2})
		n.Input = []byte(p)
		want[r.add(n)] = p
	}
	sameBytes := func(when string) []settle.ClaimedJob {
		got := r.claim()
		is(r, "claimed "+when, len(got), len(bytePayloads))
		for _, c := range got {
			check(r, string(c.Input) == want[c.ID], "%s the claim has %q: got %q", when, clip(want[c.ID]), clip(string(c.Input)))
			check(r, string(r.job(c.ID).Input) == want[c.ID], "%s the view has %q", when, clip(want[c.ID]))
		}
		return got
	}
	r.settleAll(sameBytes("at first"), failedFor(tick))
	r.advance(2 * tick)
	r.settleAll(sameBytes("after a retry"), failed("again"))
	for n, p := range want {
		is(r, "state", r.job(n).State, settle.Dead)
		check(r, bytes.Equal(r.job(n).Input, []byte(p)), "the dead letter has %q: got %q", clip(p), clip(string(r.job(n).Input)))
		r.redrive(n)
	}
	sameBytes("after a redrive")
}

func clip(s string) string { return s[:min(len(s), 40)] }

func (r *rig) settleAll(jobs []settle.ClaimedJob, ev settle.Event) {
	r.Helper()
	var ts []settle.Transition
	for _, c := range jobs {
		ts = append(ts, on(c, ev))
	}
	for _, said := range r.apply(ts...) {
		is(r, "answer", said, settle.Done)
	}
}

func outputBytes(r *rig) {
	for _, p := range bytePayloads {
		c := r.started(task(settle.EnqueueOpts{}))
		r.moves(on(c, parked("s", "t")))
		r.moves(r.seen(c.ID, answered("t", p)))
		c = r.claimOne()
		r.isStep(c.Steps, settle.StepResult{Step: "s", Ticket: id("t"), Node: "node-a", Output: []byte(p)})
		r.moves(on(c, succeeded(p)))
		check(r, string(r.job(c.ID).Output) == p, "the output is %q: got %q", clip(p), clip(string(r.job(c.ID).Output)))
	}
}

// rawTexts are error texts as they come from handlers and nodes.
var rawTexts = []string{
	"\xe8re", "caf\xe9", strings.Repeat("ü", 3000) + "\xf0\x9f\x98", strings.Repeat("A", 1<<17), "", "   ", "a\x00b",
	"\x1b[2Jgone", "line\r\nfake line", "\u202eevil", "postgres://u:p%40ss@host/db", "50 KB " + strings.Repeat("x ", 25_000),
}

func safeTexts(r *rig) {
	for _, raw := range rawTexts {
		safe := redact.Text(raw)
		c := r.started(withPolicy(settle.Policy{Attempts: 1}))
		r.moves(on(c, failed(safe)))
		j := r.job(c.ID)
		is(r, "state", j.State, settle.Dead)
		is(r, "attempts recorded", len(j.Attempts), 1)
		is(r, "text", r.attempt(j, 0).Error, safe)
	}
}

func unsafeTexts(r *rig) {
	for _, raw := range rawTexts {
		c, neighbour := r.started(task(settle.EnqueueOpts{})), r.started(task(settle.EnqueueOpts{}))
		same(r, "answers", r.apply(on(c, hopeless(raw)), on(neighbour, succeeded("1"))), []settle.Applied{settle.Done, settle.Done})
		is(r, "state", r.job(c.ID).State, settle.Dead)
		for _, a := range r.job(c.ID).Attempts {
			check(r, utf8.ValidString(a.Error) && !strings.Contains(a.Error, "\x00"), "the text that is shown is valid UTF-8 without NUL: got %q", clip(a.Error))
		}
	}
}

var languages = []string{"кончилось место", "الذاكرة ممتلئة", "אין מקום", "メモリ不足", "😀 voilà", `quote ' " \ % _ ;--`, "a\u0301 is not á"}

func readableTexts(r *rig) {
	for _, text := range languages {
		c := r.started(task(settle.EnqueueOpts{}))
		r.moves(on(c, hopeless(text)))
		same(r, "errors", errorsOf(r.job(c.ID)), []string{text})
		r.hold(settle.Hold{Queue: queue, Tenant: text, For: 1, Text: text})
	}
}

func readableNames(r *rig) {
	for i, name := range languages {
		n := r.add(of(name, settle.EnqueueOpts{Queue: name, Tenant: name, Key: name}))
		same(r, "listed", ids(r.list(settle.Filter{Queue: name, Kind: name, Tenant: name, Key: name})), []settle.ID{n})
		c := r.first(r.ask(settle.ClaimReq{Queue: name, Kinds: []string{name}}).Jobs)
		is(r, "tenant", c.Tenant, name)
		is(r, "jobs so far", r.count(settle.Filter{}), i+1)
	}
	upper, lower := r.insert(keyed("Key"))[0], r.insert(keyed("key"))[0]
	check(r, !upper.Existing && !lower.Existing, "two keys that differ in case are two keys")
	check(r, r.insert(tenant("T"))[0].Lane != r.insert(tenant("t"))[0].Lane, "two tenants that differ in case are two lanes")
}
