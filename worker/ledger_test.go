package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// claimedJobs makes n claimed jobs of a policy with defaults.
func claimedJobs(n int) []settle.ClaimedJob {
	jobs := make([]settle.ClaimedJob, n)
	for i := range jobs {
		jobs[i] = settle.ClaimedJob{Policy: settle.DefaultPolicy(), Snapshot: settle.Snapshot{ID: settle.NewID(),
			State: settle.Running, Remaining: time.Hour, Counters: settle.Counters{Attempt: 1, Tries: 10}}}
	}
	return jobs
}

func TestANewerAttemptOfAJobTakesTheOldersPlace(t *testing.T) {
	g := ledger{held: map[settle.ID]holding{}, onQuiet: func() {}}
	jobs := claimedJobs(1)
	old := newAttempt(nil, nil, jobs, time.Now())
	g.hold([]*attempt{old}, 0)
	asked, _ := g.list()
	again := append([]settle.ClaimedJob(nil), jobs...)
	again[0].Attempt = 2
	newer := newAttempt(nil, nil, again, time.Now())
	if lost := g.hold([]*attempt{newer}, time.Second); len(lost) != 1 || lost[0].a != old {
		t.Fatalf("superseded %v", lost)
	}
	if lost := g.lose([]settle.ID{jobs[0].ID}, asked); len(lost) != 0 {
		t.Error("an answer about attempt 1 was taken for attempt 2")
	}
	g.release(old.all()...)
	if fences, _ := g.list(); len(fences) != 1 || fences[0].Attempt != 2 || g.count() != 1 {
		t.Errorf("holds %v, %d open", fences, g.count())
	}
	g.release(newer.all()...)
	if !g.empty() {
		t.Error("not empty")
	}
}

func TestABatchLosesItsContextWithItsLastJobOnly(t *testing.T) {
	a := newAttempt(nil, nil, claimedJobs(2), time.Now())
	ctx, end, ok := a.begin(context.Background())
	if !ok {
		t.Fatal("it does not begin")
	}
	defer a.conclude(running) // it has no crew to be abandoned by
	defer end()
	if !a.lose() || ctx.Err() != nil {
		t.Error("one lost job ended the others")
	}
	if !a.lose() || !errors.Is(context.Cause(ctx), ErrLeaseLost) {
		t.Errorf("all jobs are lost, cause %v", context.Cause(ctx))
	}
	if a.lose() {
		t.Error("lost more jobs than it has")
	}
}

func TestAnAttemptIsConcludedOnce(t *testing.T) {
	a := newAttempt(nil, nil, claimedJobs(1), time.Now())
	_, end, _ := a.begin(context.Background())
	defer end()
	if a.conclude(buffered) || !a.conclude(running) || a.conclude(running) {
		t.Error("an attempt was concluded from the wrong phase, or twice")
	}
}

func TestBackoffGrowsToItsBoundAndStartsAnew(t *testing.T) {
	var b backoff
	last := time.Duration(0)
	for range 20 {
		d := b.next()
		if d < last*3/4 || d > backoffMax {
			t.Fatalf("%s after %s", d, last)
		}
		last = d
	}
	if last < backoffMax*3/4 {
		t.Errorf("grew to %s only", last)
	}
	if b.reset(); b.next() > backoffMin {
		t.Error("does not start anew")
	}
}

func TestPaceFollowsLittlesLaw(t *testing.T) {
	var p pace
	done := int64(0)
	for now := 10 * time.Millisecond; now < 3*time.Second; now += 10 * time.Millisecond {
		done += 100 // 10 000 a second, a claim takes 5 ms
		p.replied(now-5*time.Millisecond, now, done)
	}
	if n := p.ahead(); n < 90 || n > 110 {
		t.Errorf("%d ahead, want two round trips' worth: 100", n)
	}
	p.replied(time.Hour, time.Hour+5*time.Millisecond, done+1)
	if n := p.ahead(); n != 0 {
		t.Errorf("%d ahead after an idle hour", n)
	}
}
