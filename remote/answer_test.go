package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/remote"
)

// A node that always says the same: what becomes of the first answer, and of the
// job in the end.
func TestEveryAnswerEndsItsWait(t *testing.T) {
	for _, one := range []struct {
		name, says string
		status     int
		fate       remote.Fate
		reason     settle.AttemptReason // of each attempt; "" = it succeeded
		words      string               // of each attempt
		attempts   int                  // until the end
		end        settle.EndReason
		failures   int // of the node's breaker, by one answer
	}{
		{"done", done, 200, remote.Applied, "", "", 1, settle.EndOK, 0},
		{"error, retryable unsaid", failed, 200, remote.Applied, settle.AttemptStepError, "gpu_oom: CUDA out of memory", 2, settle.EndExhausted, 0},
		{"error, retryable null", `"status":"error","error":{"reason":"gpu_oom","message":"CUDA out of memory","retryable":null}`, 200, remote.Applied,
			settle.AttemptStepError, "gpu_oom: CUDA out of memory", 2, settle.EndExhausted, 0},
		{"error, retryable", helps, 200, remote.Applied, settle.AttemptStepError, "gpu_oom: CUDA out of memory", 5, settle.EndExhausted, 0},
		{"error, not retryable", useless, 200, remote.Applied, settle.AttemptStepError, "bad_input: no video stream", 1, settle.EndTerminal, 0},
		{"error without text", `"status":"error","error":{"reason":"segfault","message":""}`, 200, remote.Applied,
			settle.AttemptStepError, "segfault: (no message)", 2, settle.EndExhausted, 0},
		{"malformed", `"status":"done"`, 422, remote.Malformed, settle.AttemptProtocol,
			"malformed answer to step render from node %s: output: missing field", 2, settle.EndExhausted, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				before := r.breaker(s.Node).Failures
				is(r, "HTTP status", r.answer(s, one.says), one.status)
				is(r, "fate", r.fates(one.fate), 1)
				is(r, "failures in a row at the node's breaker", r.breaker(s.Node).Failures-before, one.failures)
				for n := 1; n < one.attempts; n++ {
					is(r, "state while the budget lasts", r.job(id).State, settle.Pending)
					r.answer(r.again(id), one.says)
				}
				j := r.job(id)
				want := settle.Dead
				if one.end == settle.EndOK {
					want = settle.Succeeded
				}
				r.ended("after so many answers", j, want, one.end)
				is(r, "submissions", len(r.net.all(id)), one.attempts)
				if one.reason == "" {
					is(r, "output", string(j.Output), `{"frames":240}`)
					is(r, "recorded attempts", len(j.Attempts), 0)
					return
				}
				is(r, "P10 recorded attempts", len(j.Attempts), one.attempts)
				for n, s := range r.net.all(id) {
					a := attempt(r, j, n)
					is(r, "reason", a.Reason, one.reason)
					is(r, "P12 the node's own words", trimSize(a.Error), fill(one.words, s.Node))
					is(r, "the attempt names its node", a.Node, s.Node)
					is(r, "the attempt names its step", a.Step, "render")
					is(r, "the attempt names its ticket", a.Ticket, s.Attempt)
				}
			})
		})
	}
}

func fill(words, node string) string {
	return string(bytes.ReplaceAll([]byte(words), []byte("%s"), []byte(node)))
}

// trimSize cuts the " (123 bytes)" of a malformed answer.
func trimSize(text string) string {
	if i := bytes.LastIndex([]byte(text), []byte(" (")); i > 0 && bytes.HasSuffix([]byte(text), []byte(" bytes)")) {
		return text[:i]
	}
	return text
}

func TestP10TheLatestAnswerDecidesTheBudget(t *testing.T) {
	for _, one := range []struct {
		name   string
		says   []string
		budget int
	}{
		{"retryable, then unsaid", []string{helps, failed}, 2},
		{"retryable thrice, then unsaid", []string{helps, helps, helps, failed}, 4},
		{"unsaid, then retryable", []string{failed, helps, helps, helps, helps}, 5},
		{"retryable, then malformed", []string{helps, `"status":"failed"`}, 2},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				for n, says := range one.says {
					if n > 0 {
						r.nap(backoff)
					}
					if r.job(id).State.Ended() {
						break
					}
					r.answer(r.parked(id), says)
				}
				r.ended("in the end", r.job(id), settle.Dead, settle.EndExhausted)
				is(r, "submissions", len(r.net.all(id)), one.budget)
			})
		})
	}
}

func TestANodeCanAskForAPause(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		id := r.enqueue()
		r.answer(r.parked(id), `"status":"error","error":{"reason":"warming_up","message":"","retry_after_ms":90000}`)
		r.nap(89 * time.Second)
		is(r, "state before the pause is over", r.job(id).State, settle.Pending)
		r.nap(2 * time.Second)
		is(r, "state after it", r.job(id).State, settle.Awaiting)
	})
}

// What comes for a submission that is not waited for any more touches nothing.
func TestP3AnswersThatComeTooLateTouchNothing(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name   string
		before func(r *rig, id settle.ID, s sub)
		says   string
		status int
		fate   remote.Fate
	}{
		{"again, unchanged, while the job is retried", func(r *rig, id settle.ID, s sub) { r.answer(s, failed) }, failed, 200, remote.Duplicate},
		{"again, changed", func(r *rig, id settle.ID, s sub) { r.answer(s, failed) }, done, 200, remote.Duplicate},
		{"again, malformed", func(r *rig, id settle.ID, s sub) { r.answer(s, failed) }, `"status":1`, 200, remote.Duplicate},
		{"again, after the job succeeded", func(r *rig, id settle.ID, s sub) { r.answer(s, done) }, done, 200, remote.Duplicate},
		{"again, after the job died of it", func(r *rig, id settle.ID, s sub) { r.answer(s, useless) }, useless, 200, remote.Duplicate},
		{"progress, after the answer", func(r *rig, id settle.ID, s sub) { r.answer(s, failed) }, progress, 200, remote.Duplicate},
		{"after the ceiling, while the job is retried", func(r *rig, id settle.ID, s sub) { r.nap(10*time.Minute + 10*time.Second) }, done, 409, remote.Stale},
		{"malformed, after the ceiling", func(r *rig, id settle.ID, s sub) { r.nap(10*time.Minute + 10*time.Second) }, `"status":"failed"`, 409, remote.Stale},
		{"progress, after the ceiling", func(r *rig, id settle.ID, s sub) { r.nap(10*time.Minute + 10*time.Second) }, progress, 409, remote.Stale},
		{"after the job was cancelled", func(r *rig, id settle.ID, s sub) { r.cancel(id) }, done, 410, remote.Ended},
		{"after the job was removed", func(r *rig, id settle.ID, s sub) { r.cancel(id); r.remove(id) }, done, 410, remote.Unknown},
		{"for another attempt", func(*rig, settle.ID, sub) {}, `"status":"done"`, 409, remote.Stale},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				one.before(r, id, s)
				doc := s.doc(one.says)
				if one.name == "for another attempt" {
					other := s
					other.Attempt = settle.NewID()
					doc = other.doc(done)
				}
				before, nodes := r.shown(id), r.pool.Nodes()
				said := r.post(s, doc)
				is(r, "HTTP status", said.Code, one.status)
				is(r, "fate", r.fates(one.fate), 1)
				is(r, "the job", r.shown(id), before)
				is(r, "the breakers", fmt.Sprint(r.pool.Nodes()), fmt.Sprint(nodes))
				odd := r.hub.Stats().Odd
				if len(odd) != 1 || odd[0].Job != id || odd[0].Attempt != s.Attempt || odd[0].Fate != one.fate {
					r.Errorf("the odd answer is remembered: got %+v", odd)
				}
			})
		})
	}
}

func (r *rig) cancel(id settle.ID) {
	r.Helper()
	if _, err := r.Cancel(r.Context(), id, "enough"); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) remove(id settle.ID) {
	r.Helper()
	if n, err := r.st.Remove(r.Context(), []settle.ID{id}); err != nil || n != 1 {
		r.Fatal(n, err)
	}
}

// shown is all that a person can see of a job, but for the moment of the reading.
func (r *rig) shown(id settle.ID) string {
	r.Helper()
	synctest.Wait()
	j, err := r.Get(r.Context(), id)
	if err != nil {
		return err.Error()
	}
	b, err := json.Marshal(j)
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

// B-023, first scenario: a result of nothing is a result.
func TestB023NothingIsAResult(t *testing.T) {
	for _, output := range []string{`null`, `{}`, `""`, `0`, `false`, `[]`} {
		t.Run(output, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				is(r, "HTTP status", r.answer(r.parked(id), `"status":"done","output":`+output), 200)
				j := r.job(id)
				r.ended("B-023 the job succeeded", j, settle.Succeeded, settle.EndOK)
				is(r, "B-023 the stored result is the same value", string(j.Output), output)
				is(r, "the step's result, byte for byte", string(j.Steps[0].Output), output)
				got, err := render.Await(r.Context(), r.Client, id)
				is(r, "what Await gives", string(got), output)
				is(r, "and its error", err, nil)
			})
		})
	}
}

// Statuses that the contract does not know end the wait at once, whatever they
// meant to say.
func TestB020UnknownStatusesAreProtocolErrors(t *testing.T) {
	for _, says := range []string{"failed", "cancelled", "rejected", "completed", "DONE", "ok", ""} {
		t.Run(says, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				id := r.enqueue()
				s := r.parked(id)
				r.nap(time.Second)
				is(r, "HTTP status", r.answer(s, `"status":"`+says+`","output":{"frames":240}`), http.StatusUnprocessableEntity)
				j := r.job(id)
				is(r, "B-020 the wait ends at once", j.State, settle.Pending)
				is(r, "B-020 as a protocol error", attempt(r, j, 0).Reason, settle.AttemptProtocol)
				is(r, "B-020 the slot is free", r.work.Stats().Running, 0)
				next := r.again(id)
				holds(r, "it is tried on the other node", next.Node != s.Node)
			})
		})
	}
	t.Run("B-020 error ends as a step error, as the node says", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			id := r.enqueue()
			r.nap(time.Second)
			r.answer(r.parked(id), useless)
			j := r.job(id)
			r.ended("terminal", j, settle.Dead, settle.EndTerminal)
			is(r, "reason", attempt(r, j, 0).Reason, settle.AttemptStepError)
		})
	})
}

// A judge of the user's own that fails says nothing of the node.
func TestP11AJudgeThatFailsIsNoFaultOfTheNode(t *testing.T) {
	judge := func(mailbox.Ticket, []byte) (mailbox.Answer, error) { panic("judge") }
	bubble(t, setup{pool: remote.PoolConfig{Judge: judge, Breaker: breaker.Config{Failures: 1}}}, func(r *rig) {
		id := r.enqueue()
		s := r.parked(id)
		is(r, "HTTP status", r.answer(s, done), 422)
		is(r, "reason", attempt(r, r.job(id), 0).Reason, settle.AttemptProtocol)
		is(r, "the breaker", r.breaker(s.Node).State, breaker.Closed)
	})
}
