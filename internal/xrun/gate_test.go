package xrun

import (
	"context"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// claims is a store of endless jobs.
type claims struct {
	settle.Store
	n int
}

func (c *claims) Claim(_ context.Context, r settle.ClaimReq) (got settle.ClaimedJobs, _ error) {
	for range r.Limit {
		c.n++
		got.Jobs = append(got.Jobs, settle.ClaimedJob{Snapshot: settle.Snapshot{ID: id(c.n)}})
	}
	return got, nil
}

func (c *claims) Listen(context.Context, string, func(settle.Lane)) error { return nil }

func claim(t *testing.T, g *gate) int {
	t.Helper()
	got, err := g.Claim(context.Background(), settle.ClaimReq{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Jobs)
}

func TestSlowCommandsGetNothingAheadAndQuickOnesAFew(t *testing.T) {
	g := newGate(&claims{}, 4)
	nudges := 0
	g.Listen(context.Background(), "", func(settle.Lane) { nudges++ })
	if n := claim(t, g); n != 4 {
		t.Fatalf("the first claim brought %d, want one for each place", n)
	}
	if n := claim(t, g); n != 0 {
		t.Fatalf("with all places taken a claim brought %d", n)
	}
	g.ran(id(1), time.Minute)
	if n := claim(t, g); n != 1 || nudges != 1 {
		t.Fatalf("after a slow command: %d claimed, %d nudges", n, nudges)
	}
	for range 300 {
		g.ran(id(2), 10*time.Millisecond)
	}
	if n := claim(t, g); n != 1+20 {
		t.Errorf("ahead of commands of 10 ms: %d, want 50 ms of 4 places", n-1)
	}
	for range 100 {
		g.ran(id(3), time.Microsecond)
	}
	claim(t, g)
	if n := len(g.taken); n != 4+maxAhead {
		t.Errorf("ahead of very quick commands: %d, want %d", n-4, maxAhead)
	}
}

func TestWhatNeverRunsGivesItsPlaceBackOnce(t *testing.T) {
	g := newGate(&claims{}, 2)
	claim(t, g)
	g.done(id(1))
	g.done(id(1))
	g.ran(id(1), time.Second)
	if n := claim(t, g); n != 1 {
		t.Errorf("%d places, want 1", n)
	}
}

func TestAShutGateClaimsNothing(t *testing.T) {
	g := newGate(&claims{}, 2)
	g.close()
	if n := claim(t, g); n != 0 {
		t.Errorf("%d claimed", n)
	}
}
