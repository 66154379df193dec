package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

var invalidClauses = []clause{
	{"P6 names that no store and no screen can carry are refused", invalidNames},
	{"P6 names at their limit are accepted and come back", longestNames},
	{"B-054 a payload at the limit is accepted and one byte more is refused", payloadLimit},
	{"B-061 a due time beyond the horizon is refused", beyondHorizon},
	{"B-061 a due time that the language itself can not order is refused", beyondTime},
	{"B-061 the horizon itself is stored exactly and listed", atHorizon},
	{"P1 numbers without a bound are refused", invalidNumbers},
	{"P5 a stored policy that can not be read is refused", invalidPolicy},
}

func cancelled(r *rig) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(r.ctx)
	stop()
	return ctx, stop
}

// refused reports a call that stored something, or did not say what is wrong.
func (r *rig) refused(what string, n settle.New) {
	r.Helper()
	_, err := r.store.Insert(r.ctx, task(settle.EnqueueOpts{}), n)
	var invalid *settle.InvalidError
	check(r, errors.As(err, &invalid), "%s is refused with an InvalidError: got %v", what, err)
	if stored := r.count(settle.Filter{}); stored != 0 {
		r.Fatalf("%s: got %d jobs stored, want none", what, stored)
	}
}

// badTexts are values that no text field may have.
func badTexts(limit int) map[string]string {
	return map[string]string{
		"too long":         strings.Repeat("x", limit+1),
		"too long in UTF8": strings.Repeat("ü", limit/2+1),
		"NUL":              "a\x00b",
		"newline":          "a\nb",
		"escape":           "a\x1b[2J",
		"C1 control":       "a\u009bb",
		"bidi override":    "a\u202eb",
		"line separator":   "a\u2028b",
		"invalid UTF-8":    "a\xe8b",
		"cut UTF-8":        "a\xf0\x9f\x98",
		"surrogate":        "a\xed\xa0\x80b",
	}
}

func invalidNames(r *rig) {
	for what, s := range badTexts(settle.MaxName) {
		r.refused("kind "+what, settle.New{Kind: s})
		r.refused("queue "+what, task(settle.EnqueueOpts{Queue: s}))
		r.refused("tenant "+what, task(settle.EnqueueOpts{Tenant: s}))
	}
	for what, s := range badTexts(settle.MaxKey) {
		r.refused("key "+what, task(settle.EnqueueOpts{Key: s}))
	}
	r.refused("kind empty", settle.New{})
}

func longestNames(r *rig) {
	long := strings.Repeat("ü", settle.MaxName/2)
	key := strings.Repeat("k", settle.MaxKey)
	n := r.add(of(long, settle.EnqueueOpts{Queue: long, Tenant: long, Key: key}))
	j := r.job(n)
	is(r, "kind", j.Kind, long)
	is(r, "queue", j.Queue, long)
	is(r, "tenant", j.Tenant, long)
	is(r, "key", j.Key, key)
	got := r.ask(settle.ClaimReq{Queue: long, Kinds: []string{long}}).Jobs
	is(r, "claimed", len(got), 1)
}

func payloadLimit(r *rig) {
	over := task(settle.EnqueueOpts{})
	over.Input = make([]byte, settle.MaxPayload+1)
	r.refused("one byte above the limit", over)
	full := bytes.Repeat([]byte{0, 0xff, 'x', '\n'}, settle.MaxPayload/4)
	limit := task(settle.EnqueueOpts{})
	limit.Input = full
	c := r.started(limit)
	check(r, bytes.Equal(c.Input, full), "a payload at the limit is claimed byte for byte")
	r.moves(on(c, settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK, Output: full}}))
	check(r, bytes.Equal(r.job(c.ID).Output, full), "an output at the limit is stored byte for byte")
	check(r, bytes.Equal(r.job(c.ID).Input, full), "the payload of an ended job is there")
}

func beyondHorizon(r *rig) {
	dates := []time.Time{
		time.Date(4000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(1<<63-62135596801, 999_999_999), // the largest time of the language
		Start.Add(settle.MaxAhead + time.Second),
	}
	for _, due := range dates {
		r.refused("due "+due.String(), task(settle.EnqueueOpts{Due: due}))
	}
	r.refused("the largest delay", task(settle.EnqueueOpts{Delay: 1<<63 - 1}))
	r.refused("a delay one second beyond", task(settle.EnqueueOpts{Delay: settle.MaxAhead + time.Second}))
	r.refused("a negative delay", task(settle.EnqueueOpts{Delay: -time.Second}))
	r.refused("the smallest delay", task(settle.EnqueueOpts{Delay: -1 << 63}))
}

// beyondTime: Before calls such a time the past, so that it would be due now.
func beyondTime(r *rig) {
	r.refused("the largest Unix time", task(settle.EnqueueOpts{Due: time.Unix(1<<63-1, 0)}))
}

func atHorizon(r *rig) {
	last := r.add(task(settle.EnqueueOpts{Due: Start.Add(settle.MaxAhead)}))
	r.add(task(settle.EnqueueOpts{Delay: settle.MaxAhead}))
	near(r, "due", r.job(last).Due, Start.Add(settle.MaxAhead))
	is(r, "jobs listed", r.count(settle.Filter{}), 2)
	is(r, "claimed now", len(r.claim()), 0)
	r.clock.Set(Start.Add(settle.MaxAhead - time.Microsecond))
	is(r, "claimed a microsecond early", len(r.claim()), 0)
	r.clock.Set(Start.Add(settle.MaxAhead))
	is(r, "claimed when due", len(r.claim()), 2)
}

func invalidNumbers(r *rig) {
	r.refused("a negative head start", task(settle.EnqueueOpts{HeadStart: -1}))
	r.refused("a head start above its bound", task(settle.EnqueueOpts{HeadStart: settle.MaxHead + 1}))
	r.refused("a negative deadline", task(settle.EnqueueOpts{Deadline: -1}))
	r.refused("the largest deadline", task(settle.EnqueueOpts{Deadline: 1<<63 - 1}))
	r.refused("negative attempts", withPolicy(settle.Policy{Attempts: -1}))
	r.refused("attempts without end", withPolicy(settle.Policy{Attempts: 1 << 30}))
	r.refused("a deadline policy without end", withPolicy(settle.Policy{Deadline: 1<<63 - 1}))
	r.refused("an OnEnd that is no name", withPolicy(settle.Policy{OnEnd: "a\x00"}))
}

func invalidPolicy(r *rig) {
	for what, raw := range map[string][]byte{"of no format": {99}, "cut short": {1, 2}, "empty": {}} {
		_, err := r.store.Insert(r.ctx, settle.New{Kind: work, RawPolicy: raw})
		check(r, err != nil, "a stored policy %s is refused", what)
	}
	is(r, "jobs", r.count(settle.Filter{}), 0)
}

var _ testing.TB = (*rig)(nil)
