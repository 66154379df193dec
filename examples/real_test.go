package examples

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redistest"
	"github.com/settle-go/settle/remote"
)

// ways runs a test with each producer, against the real consumer, by each way.
func ways(t *testing.T, test func(t *testing.T, rig func(*testing.T, setup) *rig)) {
	each(t, func(t *testing.T, start starter) {
		t.Run("callback", func(t *testing.T) {
			t.Parallel()
			test(t, func(t *testing.T, s setup) *rig {
				s.callback = true
				return open(t, start, s)
			})
		})
		t.Run("redis", func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			test(t, func(t *testing.T, s setup) *rig {
				s.inbox, s.knows = server, true
				return open(t, start, s)
			})
		})
	})
}

func TestEveryAnswerEndsItsJob(t *testing.T) {
	const failed = settle.AttemptStepError
	ways(t, func(t *testing.T, rig func(*testing.T, setup) *rig) {
		r := rig(t, setup{})
		for _, one := range []struct {
			name     string
			in       input
			why      settle.EndReason
			attempts int
		}{
			{"a failure that a retry may mend", input{"text": text, "fail": "gpu_oom", "retryable": true}, settle.EndExhausted, 5},
			{"one of which nobody knows", input{"text": text, "fail": "gpu_oom"}, settle.EndExhausted, 2},
			{"one that none mends", input{"text": text, "fail": "gpu_oom", "retryable": false}, settle.EndTerminal, 1},
		} {
			j := r.ended(r.enqueue(one.in), settle.Dead, one.why, slices.Repeat([]settle.AttemptReason{failed}, one.attempts)...)
			for _, a := range j.Attempts {
				if a.Error != "gpu_oom: the input asked for it" || a.Node != "a" {
					t.Errorf("%s: the attempt is %+v", one.name, a)
				}
			}
		}
		r.counted(r.enqueue(input{"text": text})) // the breaker has not opened
		if got := r.sent.Load(); got != 9 {
			t.Errorf("%d submissions, want 9", got)
		}
		until(t, "of 9 documents each counted", func() bool {
			fates := r.hub.Stats().Fates
			return fates[remote.Applied]+fates[remote.Kept] == 9 && len(fates) <= 2
		})
	})
}

// The work takes longer than the silence, with the quarter that is granted.
func TestSignsOfLifeKeepAJobWaiting(t *testing.T) {
	ways(t, func(t *testing.T, rig func(*testing.T, setup) *rig) {
		r := rig(t, setup{silence: 8 * time.Second})
		r.counted(r.enqueue(input{"text": text, "seconds": 11}))
		if n := r.hub.Stats().Fates[remote.Progress]; n < 2 {
			t.Errorf("%d signs of life", n)
		}
	})
}

func TestACancelledJobIsCalledOff(t *testing.T) {
	ways(t, func(t *testing.T, rig func(*testing.T, setup) *rig) {
		r := rig(t, setup{slots: 1, silence: 8 * time.Second})
		id := r.enqueue(input{"text": text, "seconds": 600})
		attempt := r.parked(id).Wait.Ticket.String()
		until(t, "the node is at work", func() bool { return r.hub.Stats().Fates[remote.Progress] > 0 })
		if _, err := r.Cancel(t.Context(), id, "not needed"); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-r.recalled:
			if got != (recalled{attempt, http.StatusNoContent}) { // which it replies only for what it works on
				t.Errorf("%+v, want attempt %s called off", got, attempt)
			}
		case <-time.After(patience):
			t.Fatal("the node was not told")
		}
		r.ended(id, settle.Cancelled, settle.EndCancelled, settle.AttemptCancelled)
		r.nodes["a"].idle(t) // it has stopped
		if fates := r.hub.Stats().Fates; len(fates) > 1 {
			t.Errorf("what came beside progress: %v", fates)
		}
	})
}

func TestABusyNodeCostsAJobNothing(t *testing.T) {
	ways(t, func(t *testing.T, rig func(*testing.T, setup) *rig) {
		r := rig(t, setup{slots: 1})
		slow := r.enqueue(input{"text": text, "seconds": 600})
		r.parked(slow)
		id := r.enqueue(input{"text": text})
		var j settle.Job
		until(t, "it is put off", func() bool { j = r.job(id); return j.Deferred > 0 })
		if after := j.Due.Sub(j.Attempts[0].At); j.Charged() != 0 || after < 5*time.Second {
			t.Errorf("%d attempts charged, due after %v", j.Charged(), after)
		}
		if _, err := r.Cancel(t.Context(), slow, "not needed"); err != nil {
			t.Fatal(err)
		}
		j = r.counted(id, settle.AttemptBusy)
		if a := j.Attempts[0]; a.Node != "a" || a.Error == "" {
			t.Errorf("%+v", a)
		}
	})
}

func TestWhatADeadNodeWasGivenAnotherDoes(t *testing.T) {
	ways(t, func(t *testing.T, rig func(*testing.T, setup) *rig) {
		r := rig(t, setup{nodes: []string{"a", "b"}, silence: 8 * time.Second})
		id := r.enqueue(input{"text": text, "seconds": 4})
		j := r.parked(id)
		until(t, "there is a sign of life", func() bool { return r.hub.Stats().Fates[remote.Progress] > 0 })
		r.kill(j)
		done := r.counted(id, settle.AttemptNoResult)
		if a := done.Attempts[0]; a.Node != j.Wait.Node || a.Ticket != j.Wait.Ticket {
			t.Errorf("the attempt that was lost: %+v", a)
		}
		if s := done.Steps; len(s) != 1 || s[0].Node == j.Wait.Node || s[0].Node == "" {
			t.Errorf("the step: %+v", s)
		}
	})
}

// A deploy: the way to the hub is there, and leads nowhere for a while.
func TestAProxyBeforeTheHubIsWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		for _, status := range []int{404, 502} {
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				t.Parallel()
				r := open(t, start, setup{callback: true})
				r.broken.Store(int32(status))
				id := r.enqueue(input{"text": text})
				until(t, "an answer was turned away", func() bool { return r.posts.Load() > 0 })
				r.broken.Store(0)
				r.counted(id)
			})
		}
	})
}

func TestOfTwoWaysANodeTakesOne(t *testing.T) {
	each(t, func(t *testing.T, start starter) {
		s := redistest.Start(t)
		for _, knows := range []bool{true, false} {
			r := open(t, start, setup{callback: true, inbox: s, knows: knows, silence: time.Minute})
			r.counted(r.enqueue(input{"text": text}))
			if posts := r.posts.Load(); posts != 0 && knows || posts != 1 && !knows {
				t.Errorf("knows Redis: %v, %d answers by callback", knows, posts)
			}
		}
	})
}
