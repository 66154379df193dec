package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestB010RenewsUntilTheLastHandlerReturned(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		c := Config{Lease: 10 * time.Second, Drain: 30 * time.Second, Poll: 100 * time.Millisecond, Sweep: time.Second}
		runs := 0
		handler := func(context.Context, *Job[[]byte]) error { runs++; time.Sleep(21 * time.Second); return nil }
		a, b := New(f, quiet(c)), New(f, quiet(c))
		raw(a, "k", handler)
		raw(b, "k", handler)
		id := f.put(t, "k")
		stopA := start(t, a)
		stopB := start(t, b)
		nap(time.Second)
		began := time.Now()
		if err := stopA(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d < 19*time.Second || d > 21*time.Second {
			t.Errorf("Run returned %s after its context ended, want when the handler did", d)
		}
		if runs != 1 {
			t.Errorf("the job ran %d times", runs)
		}
		wantState(t, f, id, settle.Succeeded, 1)
		if n := f.owned(a.ID()); n != 0 {
			t.Errorf("A owns %d rows", n)
		}
		stopB()
	})
}

func TestB010AfterTheGraceTheRestIsHandedBackUncharged(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 3, Drain: 5 * time.Second}))
		release := make(chan struct{})
		raw(w, "obeys", func(ctx context.Context, _ *Job[[]byte]) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrShutdown) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		raw(w, "ignores", func(context.Context, *Job[[]byte]) error { <-release; return nil })
		raw(w, "says", func(ctx context.Context, _ *Job[[]byte]) error { <-ctx.Done(); return errors.New("half done") })
		ids := []settle.ID{f.put(t, "obeys"), f.put(t, "ignores"), f.put(t, "says")}
		stop := start(t, w)
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 5*time.Second+abandonAfter+time.Second {
			t.Errorf("Run returned after %s", d)
		}
		for _, id := range ids[:2] {
			j := wantState(t, f, id, settle.Pending, 1)
			if j.Charged() != 0 || j.Deferred != 1 || j.Attempts[0].Reason != settle.AttemptShutdown || j.Due.After(j.Now) {
				t.Errorf("charged %d, deferred %d, %+v, due in %s", j.Charged(), j.Deferred, j.Attempts, j.Due.Sub(j.Now))
			}
		}
		if j := wantState(t, f, ids[2], settle.Pending, 1); j.Charged() != 1 || j.Attempts[0].Error != "half done" {
			t.Errorf("an error of its own is an error: %+v", j.Attempts)
		}
		if n := f.owned(w.ID()); n != 0 {
			t.Errorf("owns %d rows", n)
		}
		close(release)
	})
}

func TestB011AClaimOnTheWireAtStopIsHandedBack(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		onWire := make(chan struct{})
		var once atomic.Bool
		f.hook(nil, func(op string) error {
			if op == "claim" && once.CompareAndSwap(false, true) {
				close(onWire)
				time.Sleep(3 * time.Second)
			}
			return nil
		})
		var ran atomic.Int64
		w := New(f, quiet(Config{Drain: 10 * time.Second}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { ran.Add(1); return nil })
		var ids []settle.ID
		for range 5 {
			ids = append(ids, f.put(t, "k"))
		}
		stop := start(t, w)
		<-onWire
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("Run returned after %s", d)
		}
		for _, id := range ids {
			j := f.get(t, id)
			if j.State == settle.Running || j.Charged() != 0 || j.Due.After(j.Now) {
				t.Errorf("job is %s, charged %d", j.State, j.Charged())
			}
		}
		if ran.Load() != 0 {
			t.Errorf("%d handlers ran after the stop", ran.Load())
		}
	})
}

func TestB011BufferedJobsAreHandedBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 1, Drain: time.Minute}))
		release := make(chan struct{})
		raw(w, "k", func(context.Context, *Job[[]byte]) error { <-release; return nil })
		first := f.put(t, "k")
		stop := start(t, w)
		// Two jobs that were claimed ahead wait behind the one that runs.
		l := w.now.Load()
		var ids []settle.ID
		for range 2 {
			ids = append(ids, f.put(t, "k"))
		}
		c := l.claimers[0]
		if _, err := c.call(settle.ClaimReq{Queue: "default", Kinds: []string{"k"}, Limit: 2, Lease: l.Lease, Worker: l.id}); err != nil {
			t.Fatal(err)
		}
		if s := w.Stats(); s.Running != 1 || s.Buffered != 2 {
			t.Errorf("stats %+v", s)
		}
		go stop()
		nap(time.Second)
		for _, id := range ids {
			if j := wantState(t, f, id, settle.Pending, 1); j.Charged() != 0 {
				t.Errorf("charged %d", j.Charged())
			}
		}
		wantState(t, f, first, settle.Running, 1)
		close(release)
		stop()
		wantState(t, f, first, settle.Succeeded, 1)
	})
}

func TestDrainIsBoundedWhenTheStoreIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Drain: 5 * time.Second}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { time.Sleep(time.Second); return nil })
		f.put(t, "k")
		stop := start(t, w)
		f.hook(func(string) error { return errDown }, nil)
		began := time.Now()
		err := stop()
		if err == nil {
			t.Error("Run does not say that a job is still owned")
		}
		if d := time.Since(began); d > 5*time.Second+abandonAfter+settleGrace+time.Second {
			t.Errorf("Run returned after %s", d)
		}
	})
}

func TestDrainIsBoundedWhenTheStoreHangs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		hang := &hanging{fake: f}
		w := New(hang, quiet(Config{Drain: 5 * time.Second}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { time.Sleep(time.Second); return nil })
		f.put(t, "k")
		stop := start(t, w)
		hang.on.Store(true)
		began := time.Now()
		stop()
		if d := time.Since(began); d > 5*time.Second+abandonAfter+settleGrace+time.Second {
			t.Errorf("Run returned after %s", d)
		}
	})
}

// hanging, when on, answers nothing until the caller's context ends.
type hanging struct {
	*fake
	on atomic.Bool
}

func (h *hanging) hang(ctx context.Context) error {
	if h.on.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h *hanging) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	if err := h.hang(ctx); err != nil {
		return settle.ClaimedJobs{}, err
	}
	return h.fake.Claim(ctx, r)
}

func (h *hanging) Apply(ctx context.Context, ts []settle.Transition) ([]settle.Applied, error) {
	if err := h.hang(ctx); err != nil {
		return nil, err
	}
	return h.fake.Apply(ctx, ts)
}

func (h *hanging) Renew(ctx context.Context, w int64, held []settle.Held, d time.Duration) ([]settle.ID, error) {
	if err := h.hang(ctx); err != nil {
		return nil, err
	}
	return h.fake.Renew(ctx, w, held, d)
}
