package mailbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestP4TheRotaKeepsItsOrder drives the rota at random, against what must be
// true of it at every step.
func TestP4TheRotaKeepsItsOrder(t *testing.T) {
	for seed := range uint64(200) {
		drive(t, rand.New(rand.NewPCG(seed, 1)), 400)
	}
}

func FuzzRota(f *testing.F) {
	f.Add(uint64(1), uint16(50))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		drive(t, rand.New(rand.NewPCG(seed, 2)), int(steps%2000))
	})
}

const testPoll = 100 * time.Second

// model is what the test knows of each wait.
type model struct {
	w      *wait
	looked time.Time // when last looked at, or begun
}

func drive(t *testing.T, luck *rand.Rand, steps int) {
	t.Helper()
	r, now := newRota(), time.Unix(1_000_000, 0)
	live := map[string]*model{}
	var out []*wait // being looked at
	n := 0
	anyOf := func() *model {
		for _, m := range live {
			return m
		}
		return nil
	}
	finishLook := func() {
		for _, w := range out {
			m := live[w.key]
			m.looked = now
			if luck.IntN(20) == 0 { // an answer
				r.remove(w)
				delete(live, w.key)
				continue
			}
			last := w.last
			if r.back(w, now.Add(testPoll)) != last {
				t.Fatalf("%s: a last look ends a wait, and no other", w.key)
			}
			if last {
				delete(live, w.key)
			}
		}
		out = nil
	}
	for range steps {
		switch luck.IntN(8) {
		case 0, 1:
			w := &wait{ctx: context.Background(), key: fmt.Sprint(n), began: now, until: now.Add(time.Duration(luck.IntN(1000)) * time.Second)}
			n++
			r.add(w)
			live[w.key] = &model{w: w, looked: now}
		case 2:
			if m := anyOf(); m != nil && !r.nudge(m.w.key) {
				t.Fatal("a nudge is lost")
			}
		case 3:
			if m := anyOf(); m != nil {
				r.end(m.w, context.Canceled)
			}
		case 4:
			r.due(now)
		case 5:
			now = now.Add(time.Duration(luck.IntN(30)) * time.Second)
		default:
			finishLook()
			out = takeAll(t, r, live, now)
		}
	}
	// Left alone, everything that has a ceiling ends.
	finishLook()
	for i := 0; len(live) > 0; i++ {
		if i > 100_000 {
			t.Fatalf("%d waits never end", len(live))
		}
		if out = takeAll(t, r, live, now); len(out) == 0 {
			_, wake := r.take(now, 0)
			now = wake
		}
		finishLook()
	}
	if len(r.keys)+len(r.ceilings)+r.round.Len()+r.asked.Len()+r.ending.Len() != 0 {
		t.Fatalf("something is left: %+v", r)
	}
}

// takeAll takes a batch and compares it with what is known.
func takeAll(t *testing.T, r *rota, live map[string]*model, now time.Time) []*wait {
	t.Helper()
	oldest := now
	for e := r.round.Front(); e != nil; e = e.Next() {
		w := e.Value.(*wait)
		if m := live[w.key]; m.looked.Before(oldest) {
			if e != r.round.Front() {
				t.Fatal("the round is not in the order of the looks")
			}
			oldest = m.looked
		}
	}
	passed := 0
	for _, m := range live {
		if m.w.row != nil && !m.w.until.After(now) {
			passed++
		}
	}
	waits, wake := r.take(now, testPoll/8)
	switch {
	case len(waits) == 0 && passed > 0:
		t.Fatalf("%d ceilings have passed and nobody looks", passed)
	case len(waits) == 0 && len(live) > 0 && !wake.After(now):
		t.Fatalf("nothing to look at, and woken at %s", wake.Sub(now))
	case len(waits) == 0 && (len(live) > 0) == wake.IsZero():
		t.Fatalf("%d waits, and woken at %v", len(live), wake)
	}
	for _, w := range waits {
		if w.last != waits[0].last || w.last != (w.why != nil) {
			t.Fatal("a last look in a batch of others")
		}
		if live[w.key] == nil {
			t.Fatal("a wait that has ended is looked at")
		}
	}
	return waits
}

// Ten thousand waits that come to nothing, a few keys that fail, and nudges
// without end: each wait is looked at once per poll all the same.
func TestP4NoWaitIsPolledLateWhateverTheOthersDo(t *testing.T) {
	const waits = 2_000
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		last := map[string]time.Time{}
		worst := time.Duration(0)
		r.fake.mu.Lock()
		r.fake.hangs = time.Millisecond
		r.fake.seen = func(keys []string) {
			for _, k := range keys {
				if at, ok := last[k]; ok {
					worst = max(worst, time.Since(at))
				}
				last[k] = time.Now()
			}
			r.fake.docs["busy"] = status(`"progress"`, "")
			go r.nudged("busy") // after every look
		}
		r.fake.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, waits+1)
		for i := range waits {
			if err := r.Watch(ctx, key(i), mine, func(_ Delivery, err error) { ended <- err }); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Watch(ctx, "busy", mine, func(_ Delivery, err error) { ended <- err }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		cancel()
		for range waits + 1 {
			<-ended
		}
		if worst > DefaultPoll+20*time.Millisecond || len(last) != waits+1 {
			t.Errorf("%d waits, one not looked at for %s", len(last), worst)
		}
	})
}

// Idle waits share their looks.
func TestIdleWaitsLookTogether(t *testing.T) {
	bubble(t, Config{}, nil, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 100 {
			if err := r.Watch(ctx, key(i), mine, func(Delivery, error) {}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(11 * time.Millisecond)
		}
		before := r.fake.looks()
		time.Sleep(time.Minute)
		if n := r.fake.looks() - before; n < 30 || n > 30*9 {
			t.Errorf("%d looks in a minute for 100 waits", n)
		}
		cancel()
		synctest.Wait()
	})
}
