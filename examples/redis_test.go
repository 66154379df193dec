package examples

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

// redis offers the streams of a shard besides.
func (a *asked) redis(shard int) *asked {
	a.submission["answer"].(map[string]any)["redis"] = map[string]any{
		"stream":   fmt.Sprintf("settle:{%d}:inbox", shard),
		"progress": fmt.Sprintf("settle:{%d}:progress", shard),
		"ticket":   a.ticket.Job + "." + a.attempt,
	}
	return a
}

// stream reads the answers to a from a stream.
func (a *asked) stream(t *testing.T, s *redistest.Server, key string) (list []post) {
	t.Helper()
	for _, e := range s.Do("XRANGE", key, "-", "+").([]any) {
		fields := e.([]any)[1].([]any)
		if fields[1] != a.ticket.Job+"."+a.attempt {
			continue
		}
		if len(fields) != 4 || fields[0] != "ticket" || fields[2] != "doc" {
			t.Fatalf("the entry has %q", fields)
		}
		a.take(t, []byte(fields[3].(string)))
		list = append(list, <-a.answers)
	}
	return list
}

func TestAnswersByRedis(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		s := redistest.Start(t)
		n, c := start(t, s.Addr()), newConsumer(t)
		const many = 20_000 // what nobody has read yet must stay, but for progress
		for _, key := range []string{"settle:{7}:inbox", "settle:{7}:progress"} {
			s.Do("EVAL", "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'ticket', 'another', 'doc', '{}') end", "1", key, fmt.Sprint(many))
		}

		a := c.ask(input{"text": text, "seconds": 2}, always(200)).set("silence_ms", 3000).redis(7)
		accepted(t, n, a)
		n.idle(t)
		a.is(t, 0) // by callback, which was offered too
		got := a.stream(t, s, "settle:{7}:inbox")
		if len(got) != 1 {
			t.Fatalf("%d answers", len(got))
		}
		got[0].isDone(t, text)
		if kept := s.Int("XLEN", "settle:{7}:inbox"); kept != many+1 {
			t.Errorf("of %d answers %d are left", many+1, kept)
		}

		notes := a.stream(t, s, "settle:{7}:progress")
		if len(notes) == 0 || !errors.Is(notes[0].verdict, mailbox.ErrProgress) {
			t.Errorf("progress: %v", notes)
		}
		if kept := s.Int("XLEN", "settle:{7}:progress"); kept > many/2+1000 {
			t.Errorf("of %d notes of progress %d are left", many, kept)
		}

		// Redis alone is enough.
		b := c.ask(input{"text": text, "fail": "gpu_oom", "retryable": true}, always(200)).redis(3)
		delete(b.submission["answer"].(map[string]any), "url")
		delete(b.submission["answer"].(map[string]any), "key")
		accepted(t, n, b)
		n.idle(t)
		var failed *mailbox.StepError
		if got := b.stream(t, s, "settle:{3}:inbox"); len(got) != 1 || !errors.As(got[0].verdict, &failed) || failed.Retry != mailbox.RetryHelps {
			t.Errorf("the failure: %v", got)
		}
	})
}

func TestARedisThatRefusesIsAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		s := redistest.Start(t)
		f := redistest.NewFront(t, s.Addr())
		n, a := start(t, f.Addr()), newConsumer(t).ask(input{"text": text}, always(200)).redis(7)
		f.Answer(1, "OOM command not allowed when used memory > 'maxmemory'.", "XADD")
		f.Answer(1, "LOADING Redis is loading the dataset in memory", "XADD")
		accepted(t, n, a)
		n.idle(t)
		got := a.stream(t, s, "settle:{7}:inbox")
		if len(got) != 1 || f.Seen("XADD") != 3 {
			t.Fatalf("%d answers after %d commands", len(got), f.Seen("XADD"))
		}
		got[0].isDone(t, text)
	})
}

func TestANodeThatHasARedisStillAnswersByCallback(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		s := redistest.Start(t)
		n, a := start(t, s.Addr()), newConsumer(t).ask(input{"text": text}, always(200))
		accepted(t, n, a)
		a.done(t)
		n.idle(t)
		if n := s.Calls("xadd"); n != 0 {
			t.Errorf("%d XADD", n)
		}
	})
}

func TestARedisThatIsAwayIsWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		s := redistest.Start(t)
		n, a := start(t, s.Addr()), newConsumer(t).ask(input{"text": strings.Repeat("a long text ", 50_000)}, always(200)).redis(7)
		s.Kill()
		accepted(t, n, a)
		s.Launch()
		n.idle(t)
		if got := a.stream(t, s, "settle:{7}:inbox"); len(got) != 1 {
			t.Errorf("%d answers", len(got))
		}
	})
}
