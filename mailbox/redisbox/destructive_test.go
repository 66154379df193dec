package redisbox

import (
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faultproxy"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/mailbox"
)

func destructive(addr string) Config {
	c := quick(addr)
	c.Destructive = true
	return c
}

func TestP9ADestructiveLookTakesTheAnswer(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, destructive(s.Addr()))
	b.subscribed(t)
	for what, final := range map[string]func(error) bool{
		done("1"):           func(err error) bool { return err == nil },
		document(failure):   func(err error) bool { _, ok := is[*mailbox.StepError](err); return ok },
		"":                  func(err error) bool { _, ok := is[*mailbox.ProtocolError](err); return ok },
		`{"attempt":"else"`: func(err error) bool { _, ok := is[*mailbox.ProtocolError](err); return ok },
		`{"attempt":"else"}`: func(err error) bool {
			e, ok := is[*mailbox.ConsumedError](err)
			return ok && e.Err == mailbox.ErrStale && mailbox.IsFinal(err)
		},
		document(`"progress"`): func(err error) bool {
			e, ok := is[*mailbox.ConsumedError](err)
			return ok && e.Err == mailbox.ErrProgress && mailbox.IsFinal(err)
		},
	} {
		put(s, "k", what)
		d, err := b.Await(t.Context(), "k", mine)
		if !final(err) || s.Int("EXISTS", "k") != 0 {
			t.Errorf("%q: %v", what, err)
		}
		if err := d.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if calls := s.Calls("getdel"); calls != 6 {
		t.Errorf("%d GETDEL for 6 answers", calls)
	}
	s.Do("RPUSH", "k", "a list")
	if _, err := b.Await(t.Context(), "k", mine); !mailbox.IsFinal(err) {
		t.Errorf("a list: %v", err)
	}
}

func TestP9AReplyThatIsLostIsFinal(t *testing.T) {
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	b := open(t, destructive(p.Addr()))
	b.subscribed(t)
	lost := func(name string, there int, fault func()) {
		t.Helper()
		s.Do("DEL", key(0))
		calls := s.Calls("getdel")
		ended := b.await(t.Context(), 1, mine)
		b.waiting(t, 1)
		fault()
		s.Do("SET", key(0), done("1"))
		w := <-ended
		if e, ok := is[*mailbox.ConsumedError](w.err); !ok || !mailbox.IsFinal(w.err) || e.Key != key(0) {
			t.Errorf("%s: %v", name, w.err)
		}
		p.Pass()
		if n := s.Int("EXISTS", key(0)); n != there {
			t.Errorf("%s: %d answers are there, want %d", name, n, there)
		}
		if n := s.Calls("getdel") - calls; n != 1-there {
			t.Errorf("%s: GETDEL ran %d times", name, n)
		}
	}
	lost("the reply was cut off", 0, func() { p.CutReply("GETDEL", 1) })
	lost("the request was cut off", 1, func() { p.CutRequest("GETDEL", 1) })
	if n := b.Stats().Consumed; n != 2 {
		t.Errorf("%d counted", n)
	}
}

func TestP9NothingIsLostWhereNothingWasSent(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	b := open(t, destructive(p.Addr()))
	b.subscribed(t)
	for name, fault := range map[string]func(){
		"the question whether it is there is lost": func() { p.CutReply("EXISTS", 1) },
		"no connection":   p.Refuse,
		"silence":         p.Silence,
		"the server dies": s.Restart,
	} {
		ended := b.await(t.Context(), 1, mine)
		b.waiting(t, 1)
		failed := b.Stats().LookErrors
		fault()
		redistest.Eventually(t, "a look has failed", func() bool { return b.Stats().LookErrors > failed || name == "the server dies" })
		s.Do("SET", key(0), done("1"))
		p.Pass()
		if w := <-ended; w.err != nil {
			t.Errorf("%s: %v", name, w.err)
		}
	}
}

// A connection that breaks costs the one answer that was on its way.
func TestP9ABrokenConnectionCostsOneAnswer(t *testing.T) {
	s := redistest.Start(t)
	p := faultproxy.New(t, s.Addr())
	b := open(t, destructive(p.Addr()))
	b.subscribed(t)
	const n = 50
	ended := b.await(t.Context(), n, mine)
	b.waiting(t, n)
	s.Pause()
	p.CutReply("GETDEL", 20)
	s.Resume()
	pipe(t, client(t, s.Addr()), n, func(int) bool { return true })
	consumed := 0
	for range n {
		if w := <-ended; w.err != nil {
			if _, ok := is[*mailbox.ConsumedError](w.err); !ok {
				t.Error(w.err)
			}
			consumed++
		}
	}
	if consumed != 1 {
		t.Errorf("%d answers are lost", consumed)
	}
}

func TestP9OneOfTwoGetsTheAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := open(t, destructive(s.Addr())), open(t, destructive(s.Addr()))
	a.subscribed(t)
	b.subscribed(t)
	const n = 50
	o := mailbox.AwaitOpts{Ticket: ticket, Ceiling: 2 * time.Second}
	ended := []<-chan wait{a.await(t.Context(), n, o), b.await(t.Context(), n, o)}
	a.waiting(t, n)
	b.waiting(t, n)
	for i := range n {
		put(s, key(i), done("1"))
	}
	got := map[string]int{}
	for _, c := range ended {
		for range n {
			w := <-c
			_, none := is[*mailbox.NoResultError](w.err)
			switch {
			case w.err == nil:
				got[w.key]++
			case !none:
				t.Error(w.err)
			}
		}
	}
	for i := range n {
		if got[key(i)] != 1 {
			t.Errorf("%s was delivered %d times", key(i), got[key(i)])
		}
	}
}
