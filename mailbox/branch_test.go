package mailbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// branches are the ways on which a document can come before a wait: each writes
// it, somehow, after the wait has begun or before, and returns what the wait
// came to. Each must judge it by the same rule.
var branches = map[string]struct {
	config Config
	wait   func(t *testing.T, r *rig, doc []byte) error
}{
	"the first look": {wait: func(t *testing.T, r *rig, doc []byte) error {
		r.fake.set("k", doc)
		return r.within(t, time.Minute, 0)
	}},
	"a nudge": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.after(time.Second, func() { r.fake.put("k", doc) })
		return r.within(t, 50*time.Second, time.Second)
	}},
	"a nudge while it is looked at": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.fake.seen = func([]string) { r.fake.seen = nil; r.fake.docs["k"] = doc; r.nudged("k") }
		return r.within(t, 50*time.Second, 0)
	}},
	"a poll": {wait: func(t *testing.T, r *rig, doc []byte) error {
		r.after(time.Second, func() { r.fake.set("k", doc) })
		return r.within(t, time.Minute, 3*time.Second)
	}},
	"a new subscription": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.after(time.Second, func() { r.fake.set("k", doc); r.fake.drop() })
		return r.within(t, 50*time.Second, 2*time.Second)
	}},
	"the ceiling": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.after(time.Second, func() { r.fake.set("k", doc) })
		_, err := r.Await(t.Context(), "k", AwaitOpts{Ticket: ticket, Ceiling: 10 * time.Second})
		return err
	}},
	"the end of the context": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.after(time.Second, func() { r.fake.set("k", doc) })
		return r.within(t, 10*time.Second, 10*time.Second)
	}},
	"the end of the context while it is looked at": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.fake.seen = func([]string) { r.fake.seen = nil; r.fake.docs["k"] = doc }
		r.fake.hangs = time.Second
		return r.within(t, time.Second/2, 2*time.Second)
	}},
	"the end of Run": {Config{Poll: time.Minute}, func(t *testing.T, r *rig, doc []byte) error {
		r.after(time.Second, func() { r.fake.set("k", doc); go r.quit() })
		return r.within(t, time.Hour, time.Second)
	}},
	"after an outage": {wait: func(t *testing.T, r *rig, doc []byte) error {
		r.fake.set("k", doc)
		r.fake.fail(errDown)
		r.after(20*time.Second, func() { r.fake.fail(nil) })
		return r.within(t, time.Minute, 22*time.Second)
	}},
}

// within waits, and reports an answer that took longer than soon.
func (r *rig) within(t *testing.T, limit, soon time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var err error
	if dt := took(func() { _, err = r.Await(ctx, "k", mine) }); (err == nil || IsFinal(err)) && dt > soon {
		t.Errorf("ended after %s, want %s", dt, soon)
	}
	return err
}

func TestP5EveryWayToAnAnswerJudgesByTheSameRule(t *testing.T) {
	for name, b := range branches {
		t.Run(name, func(t *testing.T) {
			for _, d := range documents(t, "contract") {
				asked := 0
				c := b.config
				c.Judge = func(tk Ticket, doc []byte) (Answer, error) { asked++; return ContractJudge(tk, doc) }
				bubble(t, c, nil, func(t *testing.T, r *rig) {
					err := b.wait(t, r, d.bytes)
					_, want := ContractJudge(ticket, d.bytes)
					switch {
					case want == nil && err != nil, IsFinal(want) && kind(err) != kind(want), IsFinal(want) && err.Error() != want.Error():
						t.Errorf("%s %s: ends with %v, want %v", d.verdict, d.name, err, want)
					case want != nil && !IsFinal(want) && (err == nil || IsFinal(err)):
						t.Errorf("%s %s: ends with %v, and should wait on", d.verdict, d.name, err)
					}
				})
				if asked == 0 {
					t.Errorf("%s %s: the judge was not asked", d.verdict, d.name)
				}
			}
		})
	}
}

// What a judge of the user's own does not know ends the wait on every way.
func TestP5AJudgeThatDoesNotKnowEndsEveryWait(t *testing.T) {
	for name, b := range branches {
		c := b.config
		c.Judge = says(errOfJudge)
		bubble(t, c, nil, func(t *testing.T, r *rig) {
			if e, ok := is[*ProtocolError](b.wait(t, r, []byte("x"))); !ok || e.Reason != ReasonJudge {
				t.Errorf("%s: %v", name, e)
			}
		})
	}
}

// In a destructive box there is nothing left to wait for, whatever was found.
func TestP9WhatADestructiveLookFindsIsFinal(t *testing.T) {
	for name, b := range branches {
		t.Run(name, func(t *testing.T) {
			for _, d := range documents(t, "contract") {
				bubble(t, b.config, func(f *fake) { f.destructive = true }, func(t *testing.T, r *rig) {
					err := b.wait(t, r, d.bytes)
					_, want := ContractJudge(ticket, d.bytes)
					e, consumed := is[*ConsumedError](err)
					switch {
					case want == nil || IsFinal(want):
						if kind(err) != kind(want) {
							t.Errorf("%s %s: %v, want %v", d.verdict, d.name, err, want)
						}
					case !consumed || !IsFinal(err) || e.Err != want || e.Key != "k":
						t.Errorf("%s %s: consumed, and ends with %v", d.verdict, d.name, err)
					}
					if r.fake.holds("k") != "" {
						t.Errorf("%s %s: still there", d.verdict, d.name)
					}
				})
			}
		})
	}
}

func TestP9ADestructiveBoxHasNothingToAcknowledge(t *testing.T) {
	bubble(t, Config{}, func(f *fake) { f.destructive = true }, func(t *testing.T, r *rig) {
		r.fake.set("k", answer("1"))
		d, err := r.Await(t.Context(), "k", mine)
		if err != nil || string(d.Output) != "1" {
			t.Fatal(err)
		}
		r.fake.set("k", answer("1"))
		if err := d.Ack(t.Context()); err != nil || r.fake.holds("k") == "" {
			t.Errorf("Ack deletes an answer to another submission: %v", err)
		}
	})
}

// A destructive look that Run's end or a context broke off would have consumed
// an answer that nobody gets.
func TestP9NoEndBreaksADestructiveLookOff(t *testing.T) {
	for name, end := range map[string]func(*rig, context.CancelFunc){
		"the context": func(_ *rig, cancel context.CancelFunc) { cancel() },
		"Run":         func(r *rig, _ context.CancelFunc) { go r.quit() },
	} {
		bubble(t, Config{}, func(f *fake) { f.destructive = true; f.hangs = time.Second }, func(t *testing.T, r *rig) {
			r.fake.set("k", answer("1"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r.after(time.Second/2, func() { end(r, cancel) })
			if d, err := r.Await(ctx, "k", mine); err != nil || string(d.Output) != "1" {
				t.Errorf("%s ended during a look: %v", name, err)
			}
		})
	}
}

// A last look whose reply does not come in time has perhaps consumed.
func TestP9ALookWithoutAReplyIsFinal(t *testing.T) {
	lost := &ConsumedError{Key: "k", Err: errors.New("EOF \x1b[2J password=hunter2")}
	bubble(t, Config{}, func(f *fake) { f.destructive = true; f.err = lost }, func(t *testing.T, r *rig) {
		_, err := r.Await(t.Context(), "k", mine)
		if e, ok := is[*ConsumedError](fmt.Errorf("wait: %w", err)); !ok || e != lost || !IsFinal(err) {
			t.Errorf("%v", err)
		}
		checkText(t, err.Error(), 2048)
		if want := "what lay under k may be consumed: EOF password=[redacted]"; err.Error() != want {
			t.Errorf("says %q", err)
		}
		if s := r.Stats(); s.Consumed != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// However many waits end while nobody answers, they end within two last looks:
// the one under way, and their own.
func TestEveryEndIsBounded(t *testing.T) {
	bubble(t, Config{LastLook: time.Second}, nil, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		const waits = 3 * batch
		ended := make(chan error, waits)
		for i := range waits {
			if err := r.Watch(ctx, key(i), mine, func(_ Delivery, err error) { ended <- err }); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		r.fake.mu.Lock()
		r.fake.hangs = time.Hour
		r.fake.mu.Unlock()
		dt := took(func() {
			cancel()
			for range waits {
				if err := <-ended; err != context.Canceled {
					t.Errorf("%v", err)
				}
			}
		})
		if dt > 2*time.Second {
			t.Errorf("the last wait ended %s after its context", dt)
		}
	})
}
