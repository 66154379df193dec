package small

import (
	"flag"
	"testing"
)

var full = flag.Bool("small.full", false, "search with four steps for each actor: about two minutes, 2 GiB")

// counts are what one search came to.
type counts struct{ states, transitions, calls int }

// TestP1P2P3P6P9P10P14EveryOrderOfFewStepsKeepsThePromises searches small worlds.
// The counts stand here: one that changes is a change of behaviour to explain.
func TestP1P2P3P6P9P10P14EveryOrderOfFewStepsKeepsThePromises(t *testing.T) {
	count(t, bound{worker: 3, sweep: 2, person: 2}, counts{340579, 1148276, 9877})
	count(t, bound{worker: 2, sweep: 4, person: 2}, counts{189611, 527917, 5649})
	count(t, bound{worker: 3, sweep: 2, bridge: 4}, counts{146226, 435705, 3776})
	count(t, bound{worker: 3, person: 2, bridge: 2}, counts{63649, 189216, 4261})
	if *full {
		count(t, bound{worker: 4, sweep: 4, person: 4}, counts{8131225, 30068414, 123249})
		count(t, bound{worker: 4, sweep: 4, person: 2, bridge: 4}, counts{11550458, 50490653, 23121})
	}
}

func count(t *testing.T, b bound, want counts) {
	x := explore(t, b)
	got := counts{len(x.visited), x.transitions, len(x.answers)}
	t.Logf("%+v: %+v; the store had %d different contents", b, got, len(x.stores.list))
	if got != want {
		t.Errorf("%+v: got %+v, want %+v", b, got, want)
	}
}
