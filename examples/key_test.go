package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
	"github.com/settle-go/settle/mailbox/redisbox"
)

// eachKey runs a test with each producer of the key form.
func eachKey(t *testing.T, test func(t *testing.T, leave func(t *testing.T, redis string, task map[string]any))) {
	t.Parallel()
	for name, words := range map[string]func(*testing.T) []string{
		"go":     func(t *testing.T) []string { return []string{program(t, "key")} },
		"python": func(*testing.T) []string { return []string{python, "key/key.py"} },
		"shell":  func(t *testing.T) []string { return shell(t, "key/key.sh") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(t *testing.T, redis string, task map[string]any) {
				t.Helper()
				in, err := json.Marshal(task)
				if err != nil {
					t.Fatal(err)
				}
				p := start(t, words(t), []string{"REDIS_URL=redis://" + redis}, func(cmd *exec.Cmd) { cmd.Stdin = bytes.NewReader(in) })
				if code := p.ended(t); code != 0 {
					t.Errorf("exit code %d", code)
				}
			})
		})
	}
}

var keyTicket = mailbox.Ticket{Job: "video-7", Step: step, Attempt: "a1b2c3", Node: "gpu-3"}

var key = redisbox.Key(keyTicket)

func task(text any) map[string]any {
	return map[string]any{"key": key, "lifetime_s": 7200, "job": keyTicket.Job, "step": step, "attempt": keyTicket.Attempt, "text": text}
}

func TestAKeyIsWrittenFirstAndNudgedThen(t *testing.T) {
	eachKey(t, func(t *testing.T, leave func(*testing.T, string, map[string]any)) {
		s := redistest.Start(t)
		nudges := subscribe(t, s.Addr())
		leave(t, s.Addr(), task(text))
		nudged := <-nudges
		doc := s.Text("GET", nudged)
		if nudged != key || doc == "" {
			t.Fatalf("nudged is %q, and under it lies %q", nudged, doc)
		}
		if ttl := s.Int("TTL", key); ttl <= 7100 || ttl > 7200 {
			t.Errorf("it lives %d s", ttl)
		}
		got, err := mailbox.ContractJudge(keyTicket, []byte(doc))
		if err != nil || words(got.Output) != len(strings.Fields(text)) {
			t.Errorf("the contract's judge: %s, %v", got.Output, err)
		}
		if _, err := mailbox.StatusJudge(keyTicket, []byte(doc)); err != nil {
			t.Errorf("the judge of plain statuses: %v", err)
		}
		if err := answerSchema(t).Validate(decoded(t, []byte(doc))); err != nil {
			t.Error(err)
		}
	})
}

func words(output []byte) int {
	var out struct{ Words int }
	_ = json.Unmarshal(output, &out) // else 0
	return out.Words
}

// subscribe yields the keys that are nudged, at the moment they are.
func subscribe(t *testing.T, addr string) <-chan string {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	nudges, ready := make(chan string, 10), make(chan struct{})
	ctx := rueidis.WithOnSubscriptionHook(context.Background(), func(rueidis.PubSubSubscription) { close(ready) })
	go func() {
		_ = c.Receive(ctx, c.B().Subscribe().Channel("settle:nudge").Build(), func(m rueidis.PubSubMessage) { nudges <- m.Message })
	}()
	<-ready
	return nudges
}

func TestAKeyIsWrittenAgainUntilItIsConfirmed(t *testing.T) {
	eachKey(t, func(t *testing.T, leave func(*testing.T, string, map[string]any)) {
		s := redistest.Start(t)
		f := redistest.NewFront(t, s.Addr())
		f.Answer(1, "OOM command not allowed when used memory > 'maxmemory'.", "SET", "SETEX")
		nudges := subscribe(t, s.Addr())
		leave(t, f.Addr(), task(text))
		if _, err := mailbox.ContractJudge(keyTicket, []byte(s.Text("GET", key))); err != nil {
			t.Error(err)
		}
		if n := f.Seen("SET") + f.Seen("SETEX"); n != 2 {
			t.Errorf("written %d times", n)
		}
		if <-nudges; f.Seen("PUBLISH") != 1 {
			t.Errorf("nudged %d times", f.Seen("PUBLISH"))
		}
	})
}

// box is the real consumer, subscribed.
func box(t *testing.T, s *redistest.Server, c mailbox.Config) *redisbox.Box {
	t.Helper()
	b, err := redisbox.New(redisbox.Config{Redis: rueidis.ClientOption{InitAddress: []string{s.Addr()}}, Wait: c})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	go func() { ran <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("the box: %v", err)
		}
		b.Close()
	})
	until(t, "the box is subscribed", func() bool { return b.Stats().Subscribed })
	return b
}

func TestAKeyIsAwaited(t *testing.T) {
	eachKey(t, func(t *testing.T, leave func(*testing.T, string, map[string]any)) {
		s := redistest.Start(t)
		f := redistest.NewFront(t, s.Addr())
		for _, one := range []struct {
			name  string
			judge mailbox.Judge
			poll  time.Duration
			lost  int // nudges
		}{
			{"by its nudge", nil, time.Minute, 0},
			{"by a poll, its nudge is lost", nil, 100 * time.Millisecond, 1},
			{"by a judge of plain statuses", mailbox.StatusJudge, time.Minute, 0},
		} {
			f.Answer(one.lost, "ERR lost", "PUBLISH")
			b := box(t, s, mailbox.Config{Judge: one.judge, Poll: one.poll, Lifetime: 2 * time.Hour})
			ended := make(chan struct{})
			var d mailbox.Delivery
			var err error
			go func() {
				defer close(ended)
				d, err = b.Await(t.Context(), key, mailbox.AwaitOpts{Ticket: keyTicket, Ceiling: patience})
			}()
			until(t, "it waits", func() bool { return b.Stats().Waits == 1 })
			leave(t, f.Addr(), task(text))
			<-ended
			if err != nil {
				t.Fatalf("%s: %v", one.name, err)
			}
			if heard := b.Stats().Nudges; int(heard) != 1-one.lost {
				t.Errorf("%s: %d nudges were heard", one.name, heard)
			}
			var said struct{ Output json.RawMessage }
			if one.judge != nil { // whose output is the whole document
				if err := json.Unmarshal(d.Output, &said); err != nil {
					t.Fatal(err)
				}
				d.Output = said.Output
			}
			if words(d.Output) != len(strings.Fields(text)) {
				t.Errorf("%s: the output is %s", one.name, d.Output)
			}
			if err := d.Ack(t.Context()); err != nil || s.Int("EXISTS", key) != 0 {
				t.Errorf("%s: acknowledged, and still there: %v", one.name, err)
			}
		}
	})
}

func TestAFailureUnderAKeyEndsItsWait(t *testing.T) {
	eachKey(t, func(t *testing.T, leave func(*testing.T, string, map[string]any)) {
		s := redistest.Start(t)
		b := box(t, s, mailbox.Config{})
		leave(t, s.Addr(), task(nil)) // before anybody waits
		var failed *mailbox.StepError
		if _, err := mailbox.StatusJudge(keyTicket, []byte(s.Text("GET", key))); !errors.As(err, &failed) {
			t.Errorf("the judge of plain statuses: %v", err)
		}
		d, err := b.Await(t.Context(), key, mailbox.AwaitOpts{Ticket: keyTicket, Ceiling: patience})
		if !errors.As(err, &failed) || failed.Reason != "bad_input" || failed.Retry != mailbox.RetryUseless {
			t.Errorf("the wait ended with %v", err)
		}
		if err := d.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
