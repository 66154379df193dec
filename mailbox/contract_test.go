package mailbox

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

var judges = map[string]Judge{"contract": ContractJudge, "status": StatusJudge, "nil": nil}

// status is an answer with a status, which is given as JSON, and more fields.
func status(s, more string) []byte {
	return []byte(`{"v":1,"job":"video-7","step":"render","attempt":"a1b2c3","node":"gpu-3","status":` + s + more + `}`)
}

// failing is an answer that says that the step failed; more goes into error.
func failing(more string) []byte {
	return status(`"error"`, `,"error":{"reason":"gpu_oom","message":"CUDA out of memory"`+more+`}`)
}

// malformed is the protocol error that the contract finds.
func malformed(t *testing.T, doc []byte) *ProtocolError {
	t.Helper()
	_, err := ContractJudge(ticket, doc)
	p, ok := err.(*ProtocolError)
	if !ok {
		t.Fatalf("%.200q is %v, want a protocol error", doc, err)
	}
	return p
}

// failed is the step error that the contract finds.
func failed(t *testing.T, tk Ticket, doc []byte) *StepError {
	t.Helper()
	_, err := ContractJudge(tk, doc)
	e, ok := err.(*StepError)
	if !ok {
		t.Fatalf("%.200q is %v, want a step error", doc, err)
	}
	checkStepError(t, tk, e)
	return e
}

func TestP9NothingThereIsNotReadyAndAnEmptyDocumentIsThere(t *testing.T) {
	for name, j := range judges {
		if _, err := j.Look(ticket, nil, false); err != ErrNotReady || IsFinal(err) {
			t.Errorf("%s: nothing there is %v", name, err)
		}
		if _, err := j.Look(ticket, []byte("leftover"), false); err != ErrNotReady {
			t.Errorf("%s: nothing there is %v", name, err)
		}
		for _, doc := range [][]byte{nil, {}, []byte(" \n")} {
			_, err := j.Look(ticket, doc, true)
			if p, ok := err.(*ProtocolError); !ok || p.Reason != ReasonEmpty || !IsFinal(err) {
				t.Errorf("%s: the empty document %q is %v", name, doc, err)
			}
		}
	}
}

func TestP3AnAnswerToAnotherAttemptTouchesNothing(t *testing.T) {
	other := ticket
	other.Attempt = "d4e5f6"
	for _, d := range documents(t, "contract") {
		if d.verdict == "protocol" {
			continue
		}
		if _, err := ContractJudge(other, d.bytes); err != ErrStale || IsFinal(err) {
			t.Errorf("%s %s is %v to another attempt", d.verdict, d.name, err)
		}
	}
}

func TestATicketThatNamesNothingTakesEveryAnswer(t *testing.T) {
	a, err := ContractJudge(Ticket{}, answer("240"))
	if err != nil || string(a.Output) != "240" || a.Node != "gpu-3" {
		t.Errorf("%+v, %v", a, err)
	}
	e := failed(t, Ticket{}, failing(""))
	if e.Step != "render" || e.Node != "gpu-3" {
		t.Errorf("%+v", e)
	}
	if p := malformed(t, status(`"failed"`, "")); p.Step != "render" {
		t.Errorf("%+v", p)
	}
	_, err = ContractJudge(Ticket{}, status(`"failed"`, ""))
	if p, ok := err.(*ProtocolError); !ok || p.Step != "" || p.Node != "" {
		t.Errorf("%v names what only the document says", err)
	}
}

// TestP5WhatIsNotOnTheListIsNeverSuccess: of everything that a status may be,
// three words are taken, and one of them is success.
func TestP5WhatIsNotOnTheListIsNeverSuccess(t *testing.T) {
	words := []string{"", "don", "donee", "DONE", "Done", "d\u00f6ne", "done\u200b", " done", "done ", "done\n", "\ufeffdone", "ok", "success",
		"completed", "failed", "failure", "cancelled", "rejected", "running", "queued", "null", "true", "1", "unknown", "d\u043ene"}
	for _, w := range words {
		for _, j := range []Judge{ContractJudge, StatusJudge} {
			if a, err := j(ticket, status(fmt.Sprintf("%q", w), `,"output":1`)); kind(err) != "protocol" {
				t.Errorf("status %q is %v, %+v", w, err, a)
			}
		}
	}
	for _, raw := range []string{"1", "0", "-1", "1e3", "true", "false", "null", "[]", `["done"]`, "{}", `{"done":"done"}`} {
		for _, j := range []Judge{ContractJudge, StatusJudge} {
			if a, err := j(ticket, status(raw, `,"output":1`)); kind(err) != "protocol" {
				t.Errorf("status %s is %v, %+v", raw, err, a)
			}
		}
	}
}

func TestTheOutputIsNotTheCallersMemory(t *testing.T) {
	for _, j := range []Judge{ContractJudge, StatusJudge} {
		doc := answer(`"240"`)
		a, err := j(ticket, doc)
		was := string(a.Output)
		for i := range doc {
			doc[i] = 'x'
		}
		if err != nil || string(a.Output) != was {
			t.Errorf("%q became %q", was, a.Output)
		}
	}
	doc := []byte("not JSON")
	p := malformed(t, doc)
	doc[0] = 'x'
	p.Raw()[1] = 'x'
	if string(p.Raw()) != "not JSON" {
		t.Errorf("the raw bytes became %q", p.Raw())
	}
}

func TestB020EveryFailureEndsTheWait(t *testing.T) {
	for said, want := range map[string]Retry{"": RetryUnsaid, `,"retryable":true`: RetryHelps, `,"retryable":false`: RetryUseless} {
		t.Run("B-020 error is a step error, retryable as the node says"+said, func(t *testing.T) {
			_, err := Judge(ContractJudge).Look(ticket, failing(said), true)
			e, ok := err.(*StepError)
			if !ok || !IsFinal(err) || e.Retry != want || e.Reason != "gpu_oom" || e.Message != "CUDA out of memory" || e.Node != "gpu-3" || e.Step != "render" {
				t.Errorf("%+v", err)
			}
		})
	}
	for _, s := range []string{"failed", "cancelled", "rejected"} {
		t.Run("B-020 a status that the contract does not know is a protocol error: "+s, func(t *testing.T) {
			for name, j := range judges {
				_, err := j.Look(ticket, status(`"`+s+`"`, ""), true)
				p, ok := err.(*ProtocolError)
				if !ok || !IsFinal(err) || p.Reason != ReasonUnknown || p.Field != "status" {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestB023NothingHasSeveralMeanings(t *testing.T) {
	for _, output := range []string{`null`, `{}`, `""`, `0`, `false`} {
		t.Run("B-023 the output is the same value: "+output, func(t *testing.T) {
			a, err := ContractJudge(ticket, answer(output))
			if err != nil || string(a.Output) != output {
				t.Errorf("%q, %v", a.Output, err)
			}
		})
	}
	for doc, want := range map[string]Reason{
		"": ReasonEmpty, "null": ReasonNotObject, "[]": ReasonNotObject, "{": ReasonNotJSON, "\xff": ReasonNotUTF8,
		"\ufeff" + string(answer("1")):                ReasonNotJSON,
		string(answer("1")) + string(answer("1")):     ReasonTrailing,
		"<html><body>502 Bad Gateway</body></html>\n": ReasonNotJSON,
	} {
		t.Run("B-023 unreadable, and final: "+string(want), func(t *testing.T) {
			for name, j := range judges {
				_, err := j.Look(ticket, []byte(doc), true)
				if p, ok := err.(*ProtocolError); !ok || p.Reason != want || !IsFinal(err) {
					t.Errorf("%s: %q is %v, want %s", name, doc, err, want)
				}
			}
		})
	}
}

func TestB052AnOutputComesBackByteForByte(t *testing.T) {
	for _, output := range []string{"3889108265204450030", "9007199254740993", "1e400", "-0", "1.0", "0.1", `{"b":1,"a":2,"b":3}`,
		"[ 1 ,\t2\r\n]", `"é 🎬 \u00e9 \/ <&>"`, "\"\u2028 \\u2028\"", `"\ud800 \u0000"`} {
		for _, doc := range []string{string(answer(output)), strings.Replace(string(answer(output)), `"output":`, "\"output\" :\n\t ", 1) + " \n"} {
			if a, err := ContractJudge(ticket, []byte(doc)); err != nil || string(a.Output) != output {
				t.Errorf("%q became %q, %v", output, a.Output, err)
			}
		}
		if a, err := StatusJudge(ticket, answer(output)); err != nil || !bytes.Equal(a.Output, answer(output)) {
			t.Errorf("%q became %q, %v", answer(output), a.Output, err)
		}
	}
}

func TestB054ResultsAtTheLimitAndAbove(t *testing.T) {
	t.Run("B-054 at the limit it works", func(t *testing.T) {
		doc := filled(MaxDocument)
		if a, err := Judge(nil).Look(ticket, doc, true); err != nil || len(a.Output) != len(doc)-len(answer("")) {
			t.Errorf("%d bytes of output, %v", len(a.Output), err)
		}
	})
	for name, size := range map[string]int{"one byte": MaxDocument + 1, "64 times": 64 * MaxDocument} {
		doc := filled(size)
		t.Run("B-054 above it the error can be recognised: "+name, func(t *testing.T) {
			for which, j := range judges {
				if _, err := j.Look(ticket, doc, true); kind(err) != "protocol" || err.(*ProtocolError).Reason != ReasonTooLarge {
					t.Errorf("%s: %v", which, err)
				}
			}
			if p := malformed(t, doc); p.Reason != ReasonTooLarge || p.Size != size || len(p.Raw()) != MaxRaw {
				t.Errorf("%v", p)
			}
		})
		t.Run("B-054 no memory is spent on it: "+name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Judge(nil).Look(ticket, doc, true)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
				t.Errorf("%d bytes were allocated for %v", n, err)
			}
		})
	}
}

func TestAPauseIsAWishWithinBounds(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"0": 0, "-0": 0, "-1": 0, "-1e400": 0, "0.9": 0, "1": time.Millisecond, "1500": 1500 * time.Millisecond, "1.5e3": 1500 * time.Millisecond,
		"3600000": MaxRetryAfter, "3600001": MaxRetryAfter, "9223372036854775808": MaxRetryAfter, "1e19": MaxRetryAfter, "1e400": MaxRetryAfter, "null": 0,
	} {
		if e := failed(t, ticket, failing(`,"retry_after_ms":`+said)); e.RetryAfter != want {
			t.Errorf("%s is %s, want %s", said, e.RetryAfter, want)
		}
	}
}

// TestTheFirstFaultIsNamed: with several, the order is the one that is written
// down.
func TestTheFirstFaultIsNamed(t *testing.T) {
	fields := []string{`"status":1`, `"at":1`, `"node":1`, `"step":1`, `"job":1`, `"attempt":1`, `"v":"1"`}
	doc := ""
	for _, f := range fields { // each one more stands before all others
		doc += f + ","
		p := malformed(t, []byte("{"+complete(doc)+"}"))
		if name := strings.Trim(strings.Split(f, ":")[0], `"`); p.Field != name || p.Reason != ReasonWrongType {
			t.Errorf("%s of %s, want %s", p.Reason, p.Field, name)
		}
	}
}

// complete adds the fields that are missing.
func complete(doc string) string {
	for _, f := range []string{`"v":1`, `"attempt":"a1b2c3"`, `"job":"video-7"`, `"step":"render"`, `"node":"gpu-3"`, `"status":"done"`} {
		if name, _, _ := strings.Cut(f, ":"); !strings.Contains(doc, name) {
			doc += f + ","
		}
	}
	return doc + `"output":1`
}

// TestErrorsSayWhereAndWhat: the texts that people see.
func TestErrorsSayWhereAndWhat(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{failed(t, ticket, failing("")), "step render failed on node gpu-3: gpu_oom: CUDA out of memory"},
		{&StepError{}, "the step failed"},
		{&StepError{Message: "\x1b[2Jno\x00 memory"}, "the step failed: no memory"},
		{malformed(t, status(`"failed"`, "")), "malformed answer to step render from node gpu-3: status: unknown value (91 bytes)"},
		{malformed(t, nil), "malformed answer to step render from node gpu-3: empty (0 bytes)"},
		{&ProtocolError{}, "malformed answer (0 bytes)"},
		{&ProtocolError{Node: "a\x1b[2J\u202eb", Reason: ReasonEmpty}, "malformed answer from node ab: empty (0 bytes)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
	if e := (&ProtocolError{}); e.Raw() != nil || e.Unwrap() != nil {
		t.Error("an error that nobody judged has something to hide")
	}
}
