package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/breaker"
	"github.com/settle-go/settle/remote"
)

// What a submission comes to: for the job, for the step's budget, for the breaker.
func TestSubmissionsThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	after := func(s string) http.Header { return http.Header{"Retry-After": {s}} }
	const (
		open = "open" // it may have begun: charged to the job and to the step
		not  = "not"  // it has not begun: charged to the job alone
		busy = "busy" // put off, free
		dead = "dead" // refused for good
	)
	for _, one := range []struct {
		name string
		reply
		what     string
		words    string
		failures int
	}{
		{"connection refused", reply{err: refused}, not, "connection refused", 1},
		{"connection cut", reply{err: errors.New("unexpected EOF")}, open, "unexpected EOF", 1},
		{"301", reply{status: 301, header: http.Header{"Location": {"http://a.example/elsewhere"}}}, not, "HTTP 301", 1},
		{"401", reply{status: 401}, not, "HTTP 401", 1},
		{"403", reply{status: 403}, not, "HTTP 403", 1},
		{"404", reply{status: 404}, not, "HTTP 404", 1},
		{"405", reply{status: 405}, not, "HTTP 405", 1},
		{"407", reply{status: 407}, not, "HTTP 407", 1},
		{"400", reply{status: 400, body: `{"error":{"reason":"bad_input","message":"no such video"}}`}, dead, "no such video", 0},
		{"413", reply{status: 413}, dead, "HTTP 413", 0},
		{"422", reply{status: 422, body: `{"error":{"reason":"bad_input","message":"no such video"}}`}, dead, "no such video", 0},
		{"409", reply{status: 409}, open, "HTTP 409", 1},
		{"418", reply{status: 418}, open, "HTTP 418", 1},
		{"429", reply{status: 429}, busy, "HTTP 429", 0},
		{"429 with Retry-After", reply{status: 429, header: after("7")}, busy, "HTTP 429", 0},
		{"503 with Retry-After", reply{status: 503, header: after("7")}, busy, "HTTP 503", 0},
		{"503 with Retry-After: 0", reply{status: 503, header: after("0")}, busy, "HTTP 503", 0},
		{"503", reply{status: 503}, open, "HTTP 503", 1},
		{"500", reply{status: 500, body: "trace: password=swordfish"}, open, "HTTP 500", 1},
		{"502 with a page", reply{status: 502, header: http.Header{"Content-Type": {"text/html"}}, body: "<html>Bad Gateway</html>"}, open, "HTTP 502", 1},
		{"206", reply{status: 206}, open, "HTTP 206", 1},
		{"200 with a login page", reply{status: 200, body: "<!DOCTYPE html><title>Log in"}, open, "HTML page", 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				r.every(replies(one.reply))
				id := r.enqueue()
				s := r.sub(id, 0)
				j := r.job(id)
				a := attempt(r, j, 0)
				holds(r, "P12 the text says what happened: "+a.Error, contains(a.Error, one.words) && !contains(a.Error, "swordfish") && !contains(a.Error, "<html>"))
				is(r, "the attempt names its node", a.Node, s.Node)
				is(r, "failures at the breaker", r.breaker(s.Node).Failures, one.failures)
				is(r, "it names its ticket, by which the step's budget counts", !a.Ticket.IsZero(), one.what == open)
				switch one.what {
				case dead:
					r.ended("at once", j, settle.Dead, settle.EndRefused)
					is(r, "reason", a.Reason, settle.AttemptRefused)
				case busy:
					is(r, "reason", a.Reason, settle.AttemptBusy)
					is(r, "charged", j.Charged(), 0)
					is(r, "deferrals", j.Deferred, 1)
				default:
					is(r, "reason", a.Reason, settle.AttemptSubmitFailed)
					is(r, "charged", j.Charged(), 1)
					r.nap(backoff)
					holds(r, "the other node is tried", r.sub(id, 1).Node != s.Node)
					is(r, "the step's budget is spent after two", r.job(id).State.Ended(), one.what == open)
				}
				r.nap(time.Second)
				is(r, "the node is told to stop what it may have begun", len(r.calledOff(s.Node)) > 0, one.what == open)
			})
		})
	}
}

func TestSubmissionsThatAreAccepted(t *testing.T) {
	for _, a := range []reply{{status: 200}, {status: 201}, {status: 202}, {status: 204}, {status: 200, body: "queued as 7"}, {status: 202, body: "{"}} {
		bubble(t, setup{}, func(r *rig) {
			r.every(replies(a))
			r.parked(r.enqueue())
		})
	}
}

// How long a busy node is left alone: as long as it says, else five seconds.
func TestABusyNodeSaysForHowLong(t *testing.T) {
	for wait, want := range map[string]time.Duration{"": 5 * time.Second, "30": 30 * time.Second, "0": 5 * time.Second, "soon": 5 * time.Second, "999999": time.Hour} {
		bubble(t, setup{nodes: []string{"a"}}, func(r *rig) {
			h := http.Header{}
			if wait != "" {
				h.Set("Retry-After", wait)
			}
			r.every(replies(reply{status: 429, header: h}))
			id := r.enqueue()
			is(r, "due in, by Retry-After "+strconv.Quote(wait), r.job(id).Due.Sub(r.job(id).Now), want)
		})
	}
}

// A silence that cannot be asked of a node is a mistake of the program: the job is
// tried again, and nothing is sent.
func TestASilenceThatIsNone(t *testing.T) {
	for _, silence := range []time.Duration{-time.Second, time.Microsecond} {
		bubble(t, setup{step: remote.Step{Silence: silence}}, func(r *rig) {
			id := r.enqueue()
			is(r, "submissions", len(r.net.all(id)), 0)
			j := r.job(id)
			is(r, "state", j.State, settle.Pending)
			holds(r, "the text says what is wanted: "+attempt(r, j, 0).Error, contains(attempt(r, j, 0).Error, "want at least 1ms"))
		})
	}
}

// Six bytes for each < would make a submission too large that is not.
func TestTheInputIsSentAsItIs(t *testing.T) {
	bubble(t, setup{step: remote.Step{Input: "<a & b>"}}, func(r *rig) {
		s := r.parked(r.enqueue())
		holds(r, "the submission: "+s.raw, contains(s.raw, `"input":"<a & b>"`))
	})
}

// What a submission says, on the wire.
func TestTheSubmission(t *testing.T) {
	bubble(t, setup{step: remote.Step{Silence: time.Minute}}, func(r *rig) {
		s := r.parked(r.enqueue())
		var m map[string]any
		is(r, "error", json.Unmarshal([]byte(s.raw), &m), nil)
		answer, _ := m["answer"].(map[string]any)
		for field, want := range map[string]any{"v": 1.0, "job": s.Job.String(), "step": "render", "attempt": s.Attempt.String(), "node": s.Node,
			"deadline_ms": 600_000.0, "silence_ms": 60_000.0} {
			is(r, field, m[field], want)
		}
		is(r, "input", fmt.Sprint(m["input"]), "map[Text:x]")
		is(r, "fields", len(m), 9)
		is(r, "ways to answer", len(answer), 2)
		is(r, "length of the key", len(fmt.Sprint(answer["key"])), 64)
		is(r, "address", fmt.Sprint(answer["url"])[:len("https://jobs.example/answers/v1/")], "https://jobs.example/answers/v1/")
		is(r, "Content-Type", s.header.Get("Content-Type"), "application/json")
		is(r, "Idempotency-Key", s.header.Get("Idempotency-Key"), s.Attempt.String())
		is(r, "the node's own header", s.header.Get("Authorization"), "Bearer key-of-"+s.Node)
		holds(r, "the key is not the job's business: "+r.shown(s.Job), !contains(r.shown(s.Job), s.key()))
	})
	t.Run("the deadline is the job's where that comes first", func(t *testing.T) {
		bubble(t, setup{}, func(r *rig) {
			s := r.parked(r.enqueue(settle.EnqueueOpts{Deadline: 5 * time.Minute}))
			is(r, "deadline_ms", s.DeadlineMS, 300_000)
			is(r, "silence_ms is absent", contains(s.raw, "silence_ms"), false)
		})
	})
}

// A node that takes the submission and does not reply.
func TestANodeThatDoesNotReply(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.every(func(ctx context.Context, _ sub) reply { <-ctx.Done(); return reply{err: ctx.Err()} })
		id := r.enqueue()
		s := r.sub(id, 0)
		r.nap(9 * time.Second)
		is(r, "state before the timeout", r.job(id).State, settle.Running)
		r.nap(time.Second + time.Millisecond)
		a := attempt(r, r.job(id), 0)
		is(r, "reason", a.Reason, settle.AttemptSubmitFailed)
		is(r, "it may have begun: it counts against the step", a.Ticket, s.Attempt)
		is(r, "failures at the breaker", r.breaker(s.Node).Failures, 1)
	})
}

// A submission whose reply was lost, and that was answered all the same.
func TestP9AnAnswerIsWorthMoreThanAReply(t *testing.T) {
	for name, lost := range map[string]reply{"cut": {err: errors.New("unexpected EOF")}, "500": {status: 500}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, setup{}, func(r *rig) {
				r.every(func(_ context.Context, s sub) reply {
					is(r, "HTTP status", r.answer(s, done), 200)
					return lost
				})
				j := r.job(r.enqueue())
				r.ended("P9 the answer was recorded, so it counts", j, settle.Succeeded, settle.EndOK)
				is(r, "submissions", len(r.net.all(j.ID)), 1)
				is(r, "failures at the breaker", r.breaker(r.sub(j.ID, 0).Node).Failures, 0)
			})
		})
	}
	t.Run("the worker stops meanwhile", func(t *testing.T) {
		bubble(t, setup{pool: remote.PoolConfig{SubmitTimeout: time.Hour}}, func(r *rig) {
			r.every(func(ctx context.Context, s sub) reply {
				r.answer(s, done)
				<-ctx.Done()
				return reply{err: ctx.Err()}
			})
			id := r.enqueue()
			is(r, "error of Run", r.stop(), nil)
			r.start()
			r.ended("P9 the answer was recorded, so it counts", r.job(id), settle.Succeeded, settle.EndOK)
			is(r, "submissions", len(r.net.all(id)), 1)
		})
	})
}

// A submit function of the user's own.
func TestSubmitFunctions(t *testing.T) {
	for _, one := range []struct {
		name     string
		submit   func(context.Context, remote.Submission) error
		reason   settle.AttemptReason
		state    settle.State
		step     bool // charged to the step
		failures int
	}{
		{"accepts", func(context.Context, remote.Submission) error { return nil }, "", settle.Awaiting, false, 0},
		{"panics", func(context.Context, remote.Submission) error { panic("in Submit") }, settle.AttemptPanic, settle.Pending, true, 0},
		{"ends its goroutine", func(context.Context, remote.Submission) error { runtime.Goexit(); return nil }, settle.AttemptGoexit, settle.Pending, true, 0},
		{"fails", func(context.Context, remote.Submission) error { return errors.New("lost") }, settle.AttemptSubmitFailed, settle.Pending, true, 1},
		{"has not begun", func(context.Context, remote.Submission) error {
			return fmt.Errorf("queue: %w", remote.NotBegun(errors.New("closed")))
		}, settle.AttemptSubmitFailed, settle.Pending, false, 1},
		{"is busy", func(context.Context, remote.Submission) error {
			return fmt.Errorf("queue: %w", remote.Busy(time.Minute))
		},
			settle.AttemptBusy, settle.Pending, false, 0},
		{"refuses for good", func(context.Context, remote.Submission) error {
			return fmt.Errorf("queue: %w", settle.Terminal(errors.New("too long")))
		}, settle.AttemptRefused, settle.Dead, false, 0},
	} {
		t.Run(one.name, func(t *testing.T) {
			var got []remote.Submission
			submit := func(ctx context.Context, s remote.Submission) error { got = append(got, s); return one.submit(ctx, s) }
			for _, where := range []setup{{pool: remote.PoolConfig{Submit: submit}}, {step: remote.Step{Submit: submit}}} {
				got = nil
				bubble(t, where, func(r *rig) {
					j := r.job(r.enqueue())
					is(r, "state", j.State, one.state)
					is(r, "submissions over the network", len(r.net.all(j.ID)), 0)
					s := got[0]
					is(r, "it is told whom to give it", s.To.URL, "http://"+s.Node+".example/run")
					is(r, "failures at the breaker", r.breaker(s.Node).Failures, one.failures)
					is(r, "probes and calls in flight", r.breaker(s.Node).Probes, 0)
					if one.reason == "" {
						return
					}
					a := attempt(r, j, 0)
					is(r, "reason", a.Reason, one.reason)
					is(r, "it counts against the step", !a.Ticket.IsZero(), one.step)
					is(r, "node", a.Node, s.Node)
				})
			}
		})
	}
}

// A delay that the submit function asks for is kept to.
func TestSubmitAsksForADelay(t *testing.T) {
	submit := func(context.Context, remote.Submission) error {
		return settle.RetryAfter(time.Minute, errors.New("maintenance"))
	}
	bubble(t, setup{pool: remote.PoolConfig{Submit: submit}}, func(r *rig) {
		j := r.job(r.enqueue())
		is(r, "due in", j.Due.Sub(j.Now), time.Minute)
	})
}

// A worker that stops during a submission learns nothing of the node.
func TestShutdownDuringASubmission(t *testing.T) {
	bubble(t, setup{pool: remote.PoolConfig{SubmitTimeout: time.Hour, Breaker: breaker.Config{Failures: 1}}}, func(r *rig) {
		r.every(func(ctx context.Context, _ sub) reply { <-ctx.Done(); return reply{err: ctx.Err()} })
		id := r.enqueue()
		s := r.sub(id, 0)
		is(r, "error of Run", r.stop(), nil)
		j := r.job(id)
		is(r, "state", j.State, settle.Pending)
		is(r, "charged", j.Charged(), 0)
		is(r, "reason", attempt(r, j, 0).Reason, settle.AttemptShutdown)
		is(r, "P11 the breaker", r.breaker(s.Node).State, breaker.Closed)
		r.every(nil)
		r.start()
		r.answer(r.parked(id), failed)
		is(r, "P10 its step's budget is whole", r.job(id).State, settle.Pending)
		is(r, "the node is told to stop what it may have begun", strings.Join(r.calledOff(s.Node), " "), s.Attempt.String())
	})
}
