package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// crashTwice makes a job a suspect: with three crashes allowed it had two.
func crashTwice(t *testing.T, f *fake, kind string) settle.ID {
	t.Helper()
	id := f.put(t, kind, pol(settle.Policy{BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}))
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.byID[id]
	r.Attempt, r.Crashed, r.Suspect = 2, 2, true
	return id
}

func TestASuspectRunsAloneInItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 8}))
		var running atomic.Int64
		var suspects, normal atomic.Int64
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			n := running.Add(1)
			defer running.Add(-1)
			if j.Crashed == 2 {
				suspects.Add(1)
				for range 20 {
					if running.Load() != 1 || n != 1 {
						t.Error("a suspect does not run alone")
					}
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}
			normal.Add(1)
			time.Sleep(time.Second)
			return nil
		})
		for range 5 {
			crashTwice(t, f, "k")
		}
		for range 2000 {
			f.put(t, "k")
		}
		stop := start(t, w)
		nap(time.Minute)
		if suspects.Load() != 5 {
			t.Errorf("%d suspects ran in a minute beside a full queue, want all 5", suspects.Load())
		}
		if normal.Load() < 8*60/3 {
			t.Errorf("only %d normal jobs ran in a minute beside suspects", normal.Load())
		}
		stop()
	})
}

// A worker's kinds may have claimers of their own: none claims beside a suspect.
func TestASuspectRunsAloneBesideBatches(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4}))
		var batches, suspects atomic.Int64
		HandleBatch(w, event, BatchOpts{Max: 2}, func(_ context.Context, jobs []*Job[int]) []Result[string] {
			batches.Add(1)
			defer batches.Add(-1)
			time.Sleep(300 * time.Millisecond)
			return make([]Result[string], len(jobs))
		})
		raw(w, "k", func(context.Context, *Job[[]byte]) error {
			suspects.Add(1)
			for range 20 {
				if batches.Load() != 0 {
					t.Error("a batch runs beside a suspect")
				}
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		for tenant := range 20 {
			putEvents(t, f, string(rune('a'+tenant)), 0, 100)
		}
		for range 3 {
			crashTwice(t, f, "k")
		}
		stop := start(t, w)
		nap(2 * time.Minute)
		if suspects.Load() != 3 {
			t.Errorf("%d suspects ran in two minutes beside a full queue of batches, want all 3", suspects.Load())
		}
		stop()
	})
}

func TestASuspectIsNotStarvedByLongWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{Slots: 4}))
		var ran, normal atomic.Int64
		raw(w, "k", func(_ context.Context, j *Job[[]byte]) error {
			if j.Crashed == 2 {
				ran.Add(1)
			} else {
				normal.Add(1)
				time.Sleep(3 * time.Minute)
			}
			return nil
		})
		crashTwice(t, f, "k")
		for range 1000 {
			f.put(t, "k")
		}
		stop := start(t, w)
		nap(time.Hour)
		if ran.Load() != 1 {
			t.Error("the suspect waits for ever")
		}
		if normal.Load() < 4*20/3 {
			t.Errorf("%d normal jobs ran in an hour", normal.Load())
		}
		nap(time.Minute)
		go stop()
		nap(10 * time.Minute)
		stop()
	})
}

func TestUntilIdleRunsSuspectsToo(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		w := New(f, quiet(Config{UntilIdle: true}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		var ids []settle.ID
		for range 20 {
			ids = append(ids, crashTwice(t, f, "k"))
		}
		began := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			wantState(t, f, id, settle.Succeeded, 3)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("twenty quick suspects took %s", d)
		}
	})
}

func TestSuspectsThatCannotBeHadAreNoHotLoop(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		crashTwice(t, f, "k")
		held := &noSuspects{f}
		w := New(held, quiet(Config{}))
		raw(w, "k", func(context.Context, *Job[[]byte]) error { return nil })
		stop := start(t, w)
		nap(time.Minute)
		if n := f.called("claim"); n > 300 {
			t.Errorf("%d claims in a minute", n)
		}
		stop()
		idle := New(held, quiet(Config{UntilIdle: true}))
		raw(idle, "k", func(context.Context, *Job[[]byte]) error { return nil })
		if err := idle.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// noSuspects says that suspects wait, and gives none: their lane is held.
type noSuspects struct{ *fake }

func (s *noSuspects) Claim(ctx context.Context, r settle.ClaimReq) (settle.ClaimedJobs, error) {
	if r.Suspects {
		r.Kinds = nil
	}
	return s.fake.Claim(ctx, r)
}
