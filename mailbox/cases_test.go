package mailbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestB019AResultThatIsGone(t *testing.T) {
	t.Run("B-019 a wait without a deadline ends at the default ceiling, counted", func(t *testing.T) {
		bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
			r.fake.deaf = errors.New("no nudges")
			r.fake.set("k", status(`"progress"`, ""))
			r.after(time.Minute, func() { r.fake.mu.Lock(); delete(r.fake.docs, "k"); r.fake.mu.Unlock() })
			var err error
			dt := took(func() { _, err = r.Await(t.Context(), "k", AwaitOpts{}) })
			if _, ok := is[*NoResultError](err); !ok || dt != time.Hour || r.Stats().NoResult != 1 {
				t.Errorf("after %s: %v; %+v", dt, err, r.Stats())
			}
		})
	})
	t.Run("B-019 a lifetime shorter than the wait is refused, both are named", func(t *testing.T) {
		_, err := New(newFake(), Config{Lifetime: 10 * time.Minute, Ceiling: 30 * time.Minute})
		if want := "mailbox: Lifetime (10m0s) is shorter than Ceiling (30m0s): an answer could expire while it is waited for"; fmt.Sprint(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := New(newFake(), Config{Lifetime: 30 * time.Minute, Ceiling: 30 * time.Minute}); err != nil {
			t.Error(err)
		}
	})
	t.Run("B-019 a wait that resumes has what is left of its ceiling, at each restart", func(t *testing.T) {
		until := time.Time{}
		for life := range 5 {
			bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
				if life == 0 {
					until = time.Now().Add(30 * time.Minute)
				}
				time.Sleep(time.Duration(life) * 11 * time.Minute) // bubbles begin at the same time
				left := max(time.Until(until), 0)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var err error
				dt := took(func() { _, err = r.Await(ctx, "k", AwaitOpts{Ticket: ticket, Until: until}) })
				switch _, none := is[*NoResultError](err); {
				case left > 10*time.Minute && err != context.DeadlineExceeded:
					t.Errorf("life %d: %v", life, err)
				case left < 10*time.Minute && (!none || dt != left):
					t.Errorf("life %d: after %s of %s: %v", life, dt, left, err)
				}
			})
		}
	})
}

func TestB020AFailureIsKnownWithinOnePoll(t *testing.T) {
	docs := map[string][]byte{
		"error": failing(""), "error, retryable": failing(`,"retryable":true`), "error, useless": failing(`,"retryable":false`),
	}
	for _, s := range []string{"failed", "cancelled", "rejected", "ERROR", "not_found", "timeout", "200"} {
		docs[s] = status(`"`+s+`"`, "")
	}
	for name, doc := range docs {
		t.Run("B-020 ends within one poll interval: "+name, func(t *testing.T) {
			bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
				r.after(time.Second, func() { r.fake.set("k", doc) }) // its nudge is lost
				var err error
				if dt := took(func() { _, err = r.Await(t.Context(), "k", mine) }); dt > time.Second+DefaultPoll {
					t.Errorf("ended after %s", dt)
				}
				if _, want := ContractJudge(ticket, doc); kind(err) != kind(want) || !IsFinal(err) {
					t.Errorf("%v, want %v", err, want)
				}
				if e, ok := is[*StepError](err); ok && e.Retry == RetryUseless != (name == "error, useless") {
					t.Errorf("the node's word on trying again is lost: %+v", e)
				}
				if s := r.Stats(); s.Waits != 0 || s.Failed+s.Malformed != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestB021ASubscriptionThatEnds(t *testing.T) {
	bubble(t, Config{Poll: time.Minute}, nil, func(t *testing.T, r *rig) {
		ended := make(chan time.Duration, 1)
		go func() { ended <- took(func() { _, _ = r.Await(t.Context(), "k", mine) }) }()
		for range 2 {
			time.Sleep(time.Second)
			r.fake.drop()
		}
		time.Sleep(3 * time.Second)
		if s := r.Stats(); !s.Subscribed || s.Reconnects != 2 || r.fake.subs != 1 || s.LastError != "EOF" {
			t.Errorf("%+v, %d subscriptions", s, r.fake.subs)
		}
		r.fake.put("k", answer("1"))
		if dt := <-ended; dt != 5*time.Second {
			t.Errorf("the nudge came after 5s, the answer after %s", dt)
		}
		if n := r.log.count("no subscription"); n != 1 {
			t.Errorf("%d lines: %q", n, r.log.all)
		}
	})
}

func TestB024AServerThatIsLoading(t *testing.T) {
	bubble(t, Config{LogEvery: time.Minute}, func(f *fake) { f.deaf, f.err = errDown, errDown }, func(t *testing.T, r *rig) {
		r.fake.set("k", answer("1"))
		r.after(10*time.Minute, func() { r.fake.mu.Lock(); r.fake.err, r.fake.deaf = nil, nil; r.fake.mu.Unlock() })
		var d Delivery
		var err error
		dt := took(func() { d, err = r.Await(t.Context(), "k", mine) })
		if err != nil || string(d.Output) != "1" || dt > 10*time.Minute+DefaultPoll {
			t.Errorf("after %s: %v", dt, err)
		}
		time.Sleep(5 * time.Second)
		if s := r.Stats(); s.LookErrors < 200 || s.Blind || !s.Subscribed || s.LastError != errDown.Error() || s.LastErrorAt.IsZero() {
			t.Errorf("%+v", s)
		}
		// One line a minute for looks, one for the subscription, and the ends.
		for part, most := range map[string]int{"cannot look": 11, "no subscription": 11, "looks for answers again": 1, "subscribed again": 1} {
			if n := r.log.count(part); n < 1 || n > most {
				t.Errorf("%d lines with %q in 10 minutes", n, part)
			}
		}
		if n := r.log.count(""); n > 24 {
			t.Errorf("%d lines in all", n)
		}
	})
	t.Run("B-024 silence while nobody could look says nothing of the node", func(t *testing.T) {
		bubble(t, Config{}, func(f *fake) { f.err = errDown }, func(t *testing.T, r *rig) {
			r.after(10*time.Minute, func() { r.fake.fail(nil) })
			_, err := r.Await(t.Context(), "k", mine)
			if e, ok := is[*NoResultError](err); !ok || !e.Unread || e.Err != nil {
				t.Errorf("%v", err)
			}
			r.fake.fail(errDown)
			_, err = r.Await(t.Context(), "k", mine)
			if e, ok := is[*NoResultError](err); !ok || !e.Unread || e.Err != errDown || errors.Is(err, errDown) {
				t.Errorf("%v", err)
			}
			checkText(t, err.Error(), 2048)
		})
	})
}

func TestB025AnAnswerThatCameTooLate(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		short := AwaitOpts{Ticket: ticket, Ceiling: time.Minute}
		if _, err := r.Await(t.Context(), "first", short); err == nil {
			t.Fatal("no answer, and no error")
		}
		next := mine
		next.Ticket.Attempt = "d4e5f6"
		again := make(chan error, 1)
		go func() { _, err := r.Await(t.Context(), "second", next); again <- err }()
		r.fake.put("first", answer("1")) // what was lost appears
		r.fake.put("first", answer("1"))
		time.Sleep(time.Second)
		if r.fake.holds("first") == "" {
			t.Error("removed at once: another process may wait a little longer")
		}
		time.Sleep(2 * DefaultPoll)
		if s := r.Stats(); r.fake.holds("first") != "" || s.Late != 1 || s.Waits != 1 {
			t.Errorf("not removed: %+v", s)
		}
		r.fake.put("second", []byte(`{"v":1,"job":"video-7","step":"render","attempt":"d4e5f6","node":"n","status":"done","output":2}`))
		if err := <-again; err != nil {
			t.Errorf("the next attempt: %v", err)
		}
	})
	t.Run("B-025 what is no answer, or waited for again, is not removed", func(t *testing.T) {
		bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
			for _, k := range []string{"progress", "stale", "again"} {
				if _, err := r.Await(t.Context(), k, AwaitOpts{Ticket: ticket, Ceiling: time.Second}); err == nil {
					t.Fatal("no error")
				}
			}
			r.fake.put("progress", status(`"progress"`, ""))
			r.fake.put("stale", []byte(`{"attempt":"another"}`))
			r.fake.put("again", answer("1"))
			if d, err := r.Await(t.Context(), "again", mine); err != nil || string(d.Output) != "1" {
				t.Errorf("%v", err)
			}
			time.Sleep(time.Minute)
			if s := r.Stats(); len(r.fake.docs) != 3 || s.Late != 0 {
				t.Errorf("left %d of 3: %+v", len(r.fake.docs), s)
			}
		})
	})
	t.Run("B-025 what is remembered of such waits is bounded", func(t *testing.T) {
		var l late
		for i := range 3 * maxLate {
			l.add(key(i), ticket)
			l.add(key(i), ticket)
		}
		if len(l.keys) != maxLate || l.all.Len() != maxLate || l.nudge(key(0), time.Time{}) || !l.nudge(key(3*maxLate-1), time.Now()) {
			t.Errorf("%d keys, %d entries", len(l.keys), l.all.Len())
		}
	})
}

func TestB026ManyWaitsAreCancelledAtOnce(t *testing.T) {
	bubble(t, Config{}, func(f *fake) { f.hangs = 10 * time.Millisecond }, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		type end struct {
			i   int
			err error
		}
		ended := make(chan end, 20)
		for i := range 20 {
			go func() { _, err := r.Await(ctx, key(i), mine); ended <- end{i, err} }()
		}
		time.Sleep(time.Minute)
		for i := range 5 {
			r.fake.set(key(i), answer("1"))
		}
		cancel()
		dt := took(func() {
			for range 20 {
				if e := <-ended; (e.err == nil) != (e.i < 5) || e.err != nil && e.err != context.Canceled {
					t.Errorf("wait %d: %v", e.i, e.err)
				}
			}
		})
		if dt > 200*time.Millisecond {
			t.Errorf("all returned after %s", dt)
		}
		if s := r.Stats(); s.Done != 5 || s.Left != 15 {
			t.Errorf("%+v", s)
		}
	})
}

// A stale document is left alone, and counted once.
func TestP3AnAnswerToAnotherSubmissionIsLeftAlone(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		other := []byte(`{"attempt":"another"}`)
		r.fake.set("k", other)
		_, err := r.Await(t.Context(), "k", mine)
		if s := r.Stats(); s.Stale != 1 || r.fake.holds("k") != string(other) || kind(err) == "protocol" {
			t.Errorf("%v; %+v; there is %q", err, s, r.fake.holds("k"))
		}
	})
}

func TestB066SubscribingIsForbidden(t *testing.T) {
	bubble(t, Config{LogEvery: time.Minute}, func(f *fake) { f.deaf = fmt.Errorf("redis: %w", ErrNoNudges) }, func(t *testing.T, r *rig) {
		ended := make(chan error, 500)
		for i := range 500 {
			if err := r.Watch(t.Context(), key(i), mine, func(_ Delivery, err error) { ended <- err }); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10*time.Minute + time.Second)
		if n := r.log.count(""); n != 11 || r.fake.listened != 11 {
			t.Errorf("%d lines and %d tries in 10 minutes, want one a minute", n, r.fake.listened)
		}
		for i := range 500 {
			r.fake.set(key(i), answer("1"))
		}
		if dt := took(func() {
			for range 500 {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}); dt > DefaultPoll {
			t.Errorf("polling took %s", dt)
		}
		synctest.Wait()
	})
}
