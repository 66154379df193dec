package redisbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

func TestP9AnAnswerIsDeletedAfterItsCommit(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, at(s.Addr()))
	b.subscribed(t)
	k := Key(ticket)
	if k != "settle:answer:video-7.a1b2c3" {
		t.Errorf("the key is %q", k)
	}
	ended := make(chan wait, 1)
	go func() { d, err := b.Await(t.Context(), k, mine); ended <- wait{k, d, err} }()
	b.waiting(t, 1)
	put(s, k, done(`{"frames":240}`))
	w := <-ended
	if w.err != nil || string(w.d.Output) != `{"frames":240}` || w.d.Node != "gpu-3" {
		t.Fatalf("%+v", w)
	}
	if n := s.Int("EXISTS", k); n != 1 {
		t.Error("deleted before Ack")
	}
	if err := w.d.Ack(t.Context()); err != nil || s.Int("EXISTS", k) != 0 {
		t.Errorf("Ack: %v", err)
	}
	put(s, k, done("1"))
	d, err := b.Await(t.Context(), k, mine)
	put(s, k, done("2"))
	if ackErr := d.Ack(t.Context()); err != nil || ackErr != nil || s.Text("GET", k) != done("2") {
		t.Errorf("a second answer: %v, %v, there is %q", err, ackErr, s.Text("GET", k))
	}
}

// What lies there is read no further than it may be long, and is deleted all
// the same.
func TestP9DocumentsOfEverySizeAndTypeCanBeJudgedAndDeleted(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, at(s.Addr()))
	for name, c := range map[string]struct {
		doc    string
		reason mailbox.Reason
	}{
		"empty":           {"", mailbox.ReasonEmpty},
		"binary":          {"\x00\xff\r\n", mailbox.ReasonNotUTF8},
		"as long as may":  {done(`"` + strings.Repeat("x", mailbox.MaxDocument-len(done(`""`))) + `"`), ""},
		"one too long":    {strings.Repeat("x", mailbox.MaxDocument+1), mailbox.ReasonTooLarge},
		"20 MiB":          {strings.Repeat("x", 20<<20), mailbox.ReasonTooLarge},
		"white space":     {"  \n", mailbox.ReasonEmpty},
		"half a document": {done("1")[:40], mailbox.ReasonNotJSON},
	} {
		s.Do("SET", "k", c.doc)
		d, err := b.Await(t.Context(), "k", mine)
		e, _ := is[*mailbox.ProtocolError](err)
		if (c.reason == "") != (err == nil) || e != nil && e.Reason != c.reason {
			t.Errorf("%s: %v", name, err)
		}
		if ackErr := d.Ack(t.Context()); ackErr != nil || s.Int("EXISTS", "k") != 0 {
			t.Errorf("%s: Ack: %v", name, ackErr)
		}
	}
	s.Do("SET", "k", strings.Repeat("x", mailbox.MaxDocument+9))
	d, _ := b.Await(t.Context(), "k", mine)
	for _, other := range []string{strings.Repeat("x", mailbox.MaxDocument) + "y", strings.Repeat("x", mailbox.MaxDocument), done("1"), ""} {
		s.Do("SET", "k", other)
		if err := d.Ack(t.Context()); err != nil || s.Int("EXISTS", "k") != 1 {
			t.Errorf("Ack deletes another document of %d bytes: %v", len(other), err)
		}
	}
	s.Do("DEL", "k")
	s.Do("RPUSH", "k", "a list")
	d, err := b.Await(t.Context(), "k", mine)
	if e, ok := is[*mailbox.ProtocolError](err); !ok || e.Reason != mailbox.ReasonEmpty {
		t.Errorf("a list: %v", err)
	}
	if err := d.Ack(t.Context()); err != nil || s.Int("EXISTS", "k") != 1 {
		t.Errorf("a list: Ack: %v", err)
	}
}

// Many waits are asked for together, and each gets its own.
func TestManyAnswersAtOnce(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, quick(s.Addr()))
	ended := b.await(t.Context(), 300, mailbox.AwaitOpts{})
	b.waiting(t, 300)
	for i := range 300 {
		s.Do("SET", key(i), done(`"`+key(i)+`"`))
	}
	for range 300 {
		if w := <-ended; w.err != nil || string(w.d.Output) != `"`+w.key+`"` {
			t.Errorf("%s: %q, %v", w.key, w.d.Output, w.err)
		}
	}
	if n := s.Calls("get") + s.Calls("getdel"); n != 0 {
		t.Errorf("%d commands that read more than they may", n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	c := Config{Timeout: time.Hour, Heartbeat: 1}
	c.Redis.AlwaysRESP2, c.Redis.ReplicaOnly, c.Destructive, c.Redis.ConnLifetime = true, true, true, time.Hour
	c.Wait.Poll = time.Hour
	_, err := New(c)
	for _, want := range []string{"InitAddress is empty", "AlwaysRESP2", "replicas", "ConnLifetime", "Timeout is 1h0m0s", "Heartbeat is 1ns", "Poll is 1h0m0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: lacks %q", err, want)
		}
	}
}

// New asks nobody; what comes after Close fails.
func TestTheServerMayComeLater(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	b := open(t, quick(s.Addr()))
	ended := b.await(t.Context(), 1, mine)
	redistest.Eventually(t, "the box has looked in vain", func() bool { return b.Stats().LookErrors > 1 })
	if st := b.Stats(); !st.Blind || st.Subscribed || st.LastError == "" || !strings.Contains(st.Note, "not known") {
		t.Errorf("%+v", st)
	}
	s.Launch()
	s.Do("SET", key(0), done("1"))
	w := <-ended
	if w.err != nil {
		t.Error(w.err)
	}
	_ = b.quit()
	if err := w.d.Ack(t.Context()); err != nil || s.Int("EXISTS", key(0)) != 0 {
		t.Errorf("Ack after Run: %v", err)
	}
	b.Close()
	b.Close()
	if err := w.d.Ack(t.Context()); err == nil {
		t.Error("Ack works after Close")
	}
	redistest.Eventually(t, "no connection is left", func() bool { all, _ := clients(s); return all == 0 })
}

func TestAServerThatHangsEndsNoWaitLate(t *testing.T) {
	s := redistest.Start(t)
	c := quick(s.Addr())
	c.Wait.LastLook = 300 * time.Millisecond
	b := open(t, c)
	b.subscribed(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := b.await(ctx, 10, mine)
	b.waiting(t, 10)
	s.Pause()
	defer s.Resume()
	cancel()
	dt := took(func() {
		for range 10 {
			if w := <-ended; !errors.Is(w.err, context.Canceled) {
				t.Error(w.err)
			}
		}
	})
	if most := c.Timeout + 2*c.Wait.LastLook + time.Second/2; dt > most {
		t.Errorf("cancelled waits ended after %s, want %s", dt, most)
	}
}

// A read that is repeated after its reply was lost is harmless, but whoever
// repeats reads today repeats GETDEL tomorrow.
func TestTheClientNeverRepeats(t *testing.T) {
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	b := open(t, quick(p.Addr()))
	b.subscribed(t)
	s.Do("CONFIG", "RESETSTAT")
	p.CutReply("EVAL", 1)
	var before int
	b.source.Read(t.Context(), []string{"k"})
	if before = s.Calls("eval"); before != 1 {
		t.Errorf("EVAL ran %d times", before)
	}
	p.CutReply("EXISTS", 1)
	if found := b.source.Read(t.Context(), make([]string, 20)); found[0].Err == nil {
		t.Error("no error: somebody has asked again")
	}
}
