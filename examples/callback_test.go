package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/mailbox"
)

type input = map[string]any

func TestAnswersByCallback(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		n, c := start(t, ""), newConsumer(t)
		t.Run("done", func(t *testing.T) {
			a := c.ask(input{"text": text}, always(200)).set("field", "that nobody knows")
			accepted(t, n, a)
			a.done(t)
			n.idle(t)
			a.is(t, 1)
		})
		for name, want := range map[string]struct {
			input  any
			reason string
			retry  mailbox.Retry
		}{
			"a failure that a retry may mend": {input{"text": text, "fail": "gpu_oom", "retryable": true}, "gpu_oom", mailbox.RetryHelps},
			"one that none mends":             {input{"text": text, "fail": "too_dark", "retryable": false}, "too_dark", mailbox.RetryUseless},
			"one of which nobody knows":       {input{"text": text, "fail": "strange"}, "strange", mailbox.RetryUnsaid},
			"input without a text":            {input{}, "bad_input", mailbox.RetryUseless},
			"a text that is none":             {input{"text": 7}, "bad_input", mailbox.RetryUseless},
			"what the work cannot do":         {input{"text": text, "seconds": "soon"}, "", mailbox.RetryUnsaid},
			"what would run in a shell":       {input{"text": text, "seconds": "PPID[$(touch ran)]"}, "", mailbox.RetryUnsaid},
			"what cannot be said":             {input{"text": text, "fail": []int{7}, "retryable": "no"}, "", mailbox.RetryUnsaid},
			"too much to say":                 {input{"text": text, "fail": strings.Repeat("x", 1<<20)}, "too_large", mailbox.RetryUseless},
			"input that is no object":         {[]int{1}, "bad_input", mailbox.RetryUseless},
			"no input":                        {nil, "bad_input", mailbox.RetryUseless},
		} {
			t.Run(name, func(t *testing.T) {
				a := c.ask(want.input, always(200))
				accepted(t, n, a)
				p := a.next(t)
				var failed *mailbox.StepError
				switch ok := errors.As(p.verdict, &failed); {
				case ok && want.reason == "": // whatever it says
				case !ok || failed.Reason != want.reason || failed.Retry != want.retry || failed.Message == "":
					t.Errorf("the verdict is %#v: %s", p.verdict, p.doc)
				}
				if _, err := os.Stat("ran"); err == nil {
					t.Error("the input was run")
				}
				n.idle(t)
			})
		}
	})
}

func TestTheSameBytesAgainUntilTheyAreRecorded(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		for _, status := range []int{404, 500, 503, 429, 302, 0} { // 404: of a proxy; 302: not followed; 0: hung up
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				t.Parallel()
				n, a := start(t, ""), newConsumer(t).ask(input{"text": text}, in(status, 200))
				accepted(t, n, a)
				a.done(t).same(t, a.done(t))
				n.idle(t)
				a.is(t, 2)
			})
		}
	})
}

func TestPausesGrow(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		n, a := start(t, ""), newConsumer(t).ask(input{"text": text}, in(500, 500, 500, 200))
		accepted(t, n, a)
		before := a.done(t)
		for _, least := range []time.Duration{500, 1000, 2000} {
			p := a.done(t)
			p.same(t, before)
			if pause := p.at.Sub(before.at); pause < (least-20)*time.Millisecond {
				t.Errorf("a pause of %v, want at least %v ms", pause, int(least))
			}
			before = p
		}
	})
}

func TestWhatNobodyTakesIsNotSentAgain(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		for _, status := range []int{409, 410, 422} {
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				t.Parallel()
				n, a := start(t, ""), newConsumer(t).ask(input{"text": text}, always(status))
				accepted(t, n, a)
				a.done(t)
				n.idle(t) // which it would not be if it waited to send it again
				a.is(t, 1)
			})
		}
	})
}

func TestAfterTheDeadlineNothingIsSent(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		t.Run("an answer that is never recorded", func(t *testing.T) {
			t.Parallel()
			n, a := start(t, ""), newConsumer(t).ask(input{"text": text}, always(500)).set("deadline_ms", 10_000)
			accepted(t, n, a)
			a.done(t)
			n.idle(t)
			if got := a.came(); got > 6 {
				t.Errorf("sent %d times within ten seconds", got)
			}
		})
		t.Run("work that lasts longer", func(t *testing.T) {
			t.Parallel()
			n, a := start(t, ""), newConsumer(t).ask(input{"text": text, "seconds": 600}, always(200)).set("deadline_ms", 1500)
			accepted(t, n, a)
			n.idle(t)
			a.is(t, 0)
		})
	})
}

func TestSlowWorkTellsThatItGoesOn(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		for _, status := range []int{200, 404, 500, 0} { // whatever becomes of it, it is only progress
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				t.Parallel()
				n, a := start(t, ""), newConsumer(t).ask(input{"text": text, "seconds": 3}, toProgress(status)).set("silence_ms", 3000)
				accepted(t, n, a)
				for range 2 {
					if p := a.next(t); !errors.Is(p.verdict, mailbox.ErrProgress) {
						t.Errorf("the verdict is %v: %s", p.verdict, p.doc)
					}
				}
				p := a.next(t)
				if errors.Is(p.verdict, mailbox.ErrProgress) { // the third second is not always over in time
					p = a.next(t)
				}
				p.isDone(t, text)
			})
		}
	})
}

func TestProgressThatNobodyTakesEndsTheWork(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		for _, status := range []int{409, 410, 422} {
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				t.Parallel()
				n, a := start(t, ""), newConsumer(t).ask(input{"text": text, "seconds": 600}, toProgress(status)).set("silence_ms", 3000)
				accepted(t, n, a)
				a.next(t)
				n.idle(t)
				a.is(t, 0)
			})
		}
	})
}

func TestACancelledAttemptEndsWithoutAnAnswer(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		for name, a := range map[string]*asked{
			"at work":                      newConsumer(t).ask(input{"text": text, "seconds": 600}, always(200)).set("silence_ms", 3000),
			"while its answer is not sent": newConsumer(t).ask(input{"text": text}, always(500)),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := start(t, "")
				accepted(t, n, a)
				a.next(t)
				before := a.came()
				if status := n.cancel(t, a); status != 204 {
					t.Errorf("cancelling is answered with %d", status)
				}
				n.idle(t)
				a.is(t, before)
			})
		}
	})
}

// servers runs a test with the nodes that are servers.
func servers(t *testing.T, test func(t *testing.T, s *server)) {
	each(t, func(t *testing.T, start starter) {
		if !strings.HasSuffix(t.Name(), "/shell") {
			test(t, start(t, "").(*server))
		}
	})
}

func TestABusyNodeSaysWhenToComeBack(t *testing.T) {
	servers(t, func(t *testing.T, s *server) {
		c := newConsumer(t)
		slow, second := c.ask(input{"text": text, "seconds": 600}, always(200)), c.ask(input{"text": text}, always(200))
		accepted(t, s, slow)
		resp := s.request(t, http.MethodPost, s.url, second.body())
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if resp.StatusCode != 429 || err != nil || after < 1 {
			t.Errorf("a second submission is answered with %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		if status := s.submit(t, slow); status != 202 {
			t.Errorf("the first, sent again, is answered with %d", status)
		}
		if status := s.cancel(t, second); status != 404 {
			t.Errorf("cancelling what is not there is answered with %d", status)
		}
		s.cancel(t, slow)
		s.idle(t)
		second.is(t, 0)
	})
}

func TestASubmissionThatCameTwiceIsAnsweredOnce(t *testing.T) {
	servers(t, func(t *testing.T, s *server) {
		a := newConsumer(t).ask(input{"text": text, "seconds": 1}, always(200))
		accepted(t, s, a)
		accepted(t, s, a)
		a.done(t)
		s.idle(t)
		a.is(t, 1)
	})
}

// refused are submissions that no node without a Redis can take.
func refused(t *testing.T) map[string]string {
	ask := func() *asked { return newConsumer(t).ask(input{"text": text}, always(200)) }
	return map[string]string{
		"nothing":            "",
		"half of one":        string(ask().body()[:50]),
		"a list":             "[]",
		"null":               "null",
		"another version":    string(ask().set("v", 2).body()),
		"no attempt":         string(ask().set("attempt", nil).body()),
		"no time":            string(ask().set("deadline_ms", 0).body()),
		"time as a text":     string(ask().set("deadline_ms", "1000").body()),
		"no way to answer":   string(ask().set("answer", input{}).body()),
		"no answer":          string(ask().set("answer", nil).body()),
		"an address of ours": string(ask().set("answer", input{"url": "file:///etc/passwd", "key": "k"}).body()),
		"no key":             string(ask().set("answer", input{"url": "http://127.0.0.1:1/"}).body()),
		"Redis alone":        string(ask().set("answer", ask().redis(0).submission["answer"].(input)["redis"]).body()),
	}
}

func TestWhatIsNoSubmissionIsRefusedForGood(t *testing.T) {
	servers(t, func(t *testing.T, s *server) {
		for name, body := range refused(t) {
			resp := s.request(t, http.MethodPost, s.url+"/render", []byte(body))
			var said struct {
				Error struct{ Reason, Message string }
			}
			err := json.NewDecoder(resp.Body).Decode(&said)
			if resp.StatusCode != 422 || err != nil || said.Error.Reason == "" || said.Error.Message == "" {
				t.Errorf("%s: answered with %d, %+v, %v", name, resp.StatusCode, said, err)
			}
		}
		s.idle(t)
	})
}

func TestTheShellRefusesWithAnExitCode(t *testing.T) {
	t.Parallel()
	for name, body := range refused(t) {
		p := start(t, shell(t, "node-shell/node.sh"), []string{"TMPDIR=" + t.TempDir()}, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader(body) })
		if code := p.ended(t); code != 65 || p.said.String() == "" {
			t.Errorf("%s: exit code %d, %q", name, code, p.said.String())
		}
	}
}

// accepted submits, and wants that to be taken.
func accepted(t *testing.T, n node, a *asked) {
	t.Helper()
	if err := submissionSchema(t).Validate(decoded(t, a.body())); err != nil {
		t.Errorf("the submission: %v", err)
	}
	status := 0
	until(t, "the node has time", func() bool {
		status = n.submit(t, a)
		return status != 429
	})
	if status != 202 && status != 204 {
		t.Fatalf("the submission is answered with %d", status)
	}
}

// is wants so many answers to have come.
func (a *asked) is(t *testing.T, want int) {
	t.Helper()
	if got := a.came(); got != want {
		t.Errorf("%d answers came, want %d", got, want)
	}
}
