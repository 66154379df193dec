package mailbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var mine = AwaitOpts{Ticket: ticket}

func TestP9AnAnswerIsDeletedAfterItsCommitAndNotBefore(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		r.after(5*time.Second, func() { r.fake.put("k", answer(`{"frames":240}`)) })
		var d Delivery
		var err error
		if dt := took(func() { d, err = r.Await(t.Context(), "k", mine) }); dt != 5*time.Second || err != nil || string(d.Output) != `{"frames":240}` || d.Node != "gpu-3" || d.Key != "k" {
			t.Fatalf("after %s: %+v, %v", dt, d, err)
		}
		if r.fake.holds("k") == "" {
			t.Fatal("deleted before Ack")
		}
		if err := d.Ack(t.Context()); err != nil || r.fake.holds("k") != "" || r.Stats().Acked != 1 {
			t.Errorf("Ack: %v; there is %q", err, r.fake.holds("k"))
		}
		if err := d.Ack(t.Context()); err != nil || r.Stats().Acked != 1 {
			t.Errorf("a second Ack: %v", err)
		}
	})
}

func TestP9ASecondAnswerStays(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		r.fake.put("k", answer("1"))
		d, err := r.Await(t.Context(), "k", mine)
		r.fake.put("k", answer("2"))
		if ackErr := d.Ack(t.Context()); err != nil || ackErr != nil || r.fake.holds("k") != string(answer("2")) {
			t.Errorf("%v, %v; there is %q", err, ackErr, r.fake.holds("k"))
		}
	})
}

func TestAckOutlivesItsContextAndTheBox(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		r.fake.put("k", answer("1"))
		ctx, cancel := context.WithCancel(t.Context())
		d, err := r.Await(ctx, "k", mine)
		cancel()
		if ran := r.quit(); ran != nil || err != nil {
			t.Fatal(ran, err)
		}
		r.fake.fail(errDown)
		if err := d.Ack(ctx); !errors.Is(err, errDown) {
			t.Errorf("Ack of a server that is down: %v", err)
		}
		r.fake.fail(nil)
		if err := d.Ack(ctx); err != nil || r.fake.holds("k") != "" {
			t.Errorf("Ack: %v", err)
		}
		if err := (Delivery{}).Ack(ctx); err != nil {
			t.Errorf("Ack of nothing: %v", err)
		}
	})
}

// A failure comes with what lies there, so that it can be deleted too.
func TestAFailureCanBeAcknowledged(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		r.fake.put("failed", failing(`,"retryable":false`))
		r.fake.put("garbage", []byte("<html>"))
		d, err := r.Await(t.Context(), "failed", mine)
		if e, ok := is[*StepError](fmt.Errorf("wait: %w", err)); !ok || e.Retry != RetryUseless {
			t.Errorf("%v", err)
		}
		g, gerr := r.Await(t.Context(), "garbage", mine)
		if e, ok := is[*ProtocolError](errors.Join(gerr)); !ok || e.Reason != ReasonNotJSON {
			t.Errorf("%v", gerr)
		}
		if err := errors.Join(d.Ack(t.Context()), g.Ack(t.Context())); err != nil || r.fake.holds("failed")+r.fake.holds("garbage") != "" {
			t.Errorf("left: %v", err)
		}
		if s := r.Stats(); s.Failed != 1 || s.Malformed != 1 || s.Acked != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestTheCeilingIsHardAndTyped(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		progress := status(`"progress"`, "")
		r.fake.put("k", progress)
		for i := range 20 {
			r.after(time.Duration(i)*5*time.Minute, func() { r.fake.put("k", progress) })
		}
		var err error
		dt := took(func() { _, err = r.Await(t.Context(), "k", mine) })
		e, ok := is[*NoResultError](err)
		if dt != time.Hour || !ok || e.Waited != time.Hour || e.Unread || e.Err != nil || IsFinal(err) || e.Step != "render" || e.Node != "gpu-3" || e.Key != "k" {
			t.Errorf("after %s: %#v", dt, err)
		}
		if want := "no answer to step render from node gpu-3 under k within 1h0m0s"; err.Error() != want {
			t.Errorf("says %q", err)
		}
	})
}

func TestAWaitEndsWithItsContextOrItsBox(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.Await(ctx, "k", mine); err != context.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		if _, err := r.Await(ctx, "k", mine); err != context.DeadlineExceeded {
			t.Errorf("with a context that has ended: %v", err)
		}
		r.fake.put("k", answer("1"))
		if d, err := r.Await(ctx, "k", mine); err != nil || string(d.Output) != "1" {
			t.Errorf("what lies there is lost: %v", err)
		}
		r.after(time.Minute, func() { r.fake.set("there", answer("2")); go r.quit() })
		here := make(chan error, 1)
		go func() { _, err := r.Await(t.Context(), "there", mine); here <- err }()
		if _, err := r.Await(t.Context(), "gone", mine); err != ErrStopped {
			t.Errorf("after Run: %v", err)
		}
		if err := <-here; err != nil {
			t.Errorf("the last look of Run missed what was there: %v", err)
		}
	})
}

func TestAwaitNeedsARunThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		box, err := New(f, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Await(t.Context(), "k", mine); err != ErrNotRunning {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := box.Await(ctx, "k", mine); err != context.Canceled {
			t.Errorf("%v", err)
		}
		for range 2 { // a box may run again
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, func() { _ = box.Run(ctx) })
			f.set("k", answer("1"))
			if _, err := box.Await(t.Context(), "k", mine); err != nil {
				t.Errorf("Run came after it: %v", err)
			}
			if err := box.Run(ctx); err == nil || !strings.Contains(err.Error(), "under way") {
				t.Errorf("a second Run: %v", err)
			}
			cancel()
			synctest.Wait()
		}
	})
}

func TestASourceThatRefusesStopsTheBox(t *testing.T) {
	evicts := errors.New("evicts")
	bubble(t, Config{}, func(f *fake) { f.refusal = evicts }, func(t *testing.T, r *rig) {
		if err := r.quit(); err != evicts {
			t.Errorf("%v", err)
		}
	})
	bubble(t, Config{}, func(f *fake) { f.remarks = "evicts" }, func(t *testing.T, r *rig) {
		if s := r.Stats(); s.Note != "evicts" || r.log.count("evicts") != 1 {
			t.Errorf("%+v, %q", s, r.log.all)
		}
		r.fake.mu.Lock()
		r.fake.remarks, r.fake.refusal = "", evicts
		r.fake.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if s := r.Stats(); s.Note != "evicts" || !s.Running || r.log.count("evicts") != 1 {
			t.Errorf("a refusal while waits run: %+v, %q", s, r.log.all)
		}
	})
}

func TestAKeyIsWaitedForOnceInAProcess(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := r.Await(ctx, "k", mine); first <- err }()
		synctest.Wait()
		if _, err := r.Await(t.Context(), "k", mine); err != ErrWaiting {
			t.Errorf("%v", err)
		}
		cancel()
		if err := <-first; err != context.Canceled {
			t.Errorf("%v", err)
		}
		r.fake.put("k", answer("1"))
		if _, err := r.Await(t.Context(), "k", mine); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestWatchCallsOnceAndRunWaitsForIt(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		ends := make(chan string, 2)
		done := make(chan struct{})
		end := func(name string) func(Delivery, error) {
			return func(d Delivery, err error) {
				<-done
				time.Sleep(time.Second)
				ends <- fmt.Sprint(name, " ", string(d.Output), err)
			}
		}
		for _, k := range []string{"a", "b"} {
			if err := r.Watch(t.Context(), k, mine, end(k)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Watch(t.Context(), "a", mine, nil); err != ErrWaiting {
			t.Errorf("%v", err)
		}
		r.fake.put("a", answer("1"))
		synctest.Wait()
		r.after(time.Minute, func() { close(done) })
		if dt := took(func() { _ = r.quit() }); dt != time.Minute+time.Second || len(ends) != 2 {
			t.Errorf("Run ended after %s, %d ends", dt, len(ends))
		}
	})
}

func TestArgumentsAndSettingsAreChecked(t *testing.T) {
	for want, c := range map[string]Config{
		"Ceiling is 721h0m0s: want 1ms to 720h0m0s": {Ceiling: MaxCeiling + time.Hour},
		"Ceiling is -1s":                 {Ceiling: -time.Second},
		"Poll is 1ms: want 10ms to 1m0s": {Poll: time.Millisecond},
		"LastLook is 2m0s":               {LastLook: 2 * time.Minute},
		"LogEvery is 1ms":                {LogEvery: time.Millisecond},
		"Lifetime is -1s":                {Lifetime: -time.Second},
		"Lifetime (10m0s) is shorter than Ceiling (1h0m0s)": {Lifetime: 10 * time.Minute},
	} {
		if _, err := New(newFake(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	bubble(t, Config{Lifetime: 2 * time.Hour}, nil, func(t *testing.T, r *rig) {
		for want, o := range map[string]AwaitOpts{
			"give one":                                                 {Ceiling: time.Hour, Until: time.Now()},
			"AwaitOpts.Ceiling is 1000h0m0s":                           {Ceiling: 1000 * time.Hour},
			"AwaitOpts.Ceiling is -1ns":                                {Ceiling: -1},
			"the time until AwaitOpts.Until is 1000h0m0s":              {Until: time.Now().Add(1000 * time.Hour)},
			"Lifetime (2h0m0s) is shorter than AwaitOpts.Ceiling (3h0": {Ceiling: 3 * time.Hour},
			"Lifetime (2h0m0s) is shorter than the time until AwaitOp": {Until: time.Now().Add(3 * time.Hour)},
		} {
			if _, err := r.Await(t.Context(), "k", o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", o, err, want)
			}
		}
		for _, k := range []string{"", strings.Repeat("k", maxKey+1)} {
			if _, err := r.Await(t.Context(), k, mine); err == nil || r.fake.looks() != 0 {
				t.Errorf("a key of %d bytes: %v", len(k), err)
			}
		}
	})
}
