package xrun

import (
	"math/rand/v2"
	"testing"

	"github.com/settle-go/settle"
)

// However ends and lines of the input come in between each other, every item is
// counted once, in the right place.
func TestCountsDoNotDependOnWhoIsFaster(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		tl := newTally(0, true)
		type step func()
		var later [][]step // of one item each, in order
		var want counts
		want.Before, want.Now = map[settle.State]int64{}, map[settle.State]int64{}
		left := map[settle.State]int64{}
		for n := range 60 {
			item, end := id(n), endStates[rnd.IntN(3)]
			ended := func() { tl.ended(item, end) }
			switch rnd.IntN(4) {
			case 0: // new: stored, then its line is noted and it ends, in any order
				fed := func() { tl.fed(settle.Inserted{ID: item, State: settle.Pending}) }
				if rnd.IntN(2) == 0 {
					fed, ended = ended, fed
				}
				later = append(later, []step{fed, ended})
				want.Fed++
				want.New++
				want.Now[end]++
			case 1: // known and live
				fed := func() { tl.fed(settle.Inserted{ID: item, Existing: true, State: settle.Running}) }
				if rnd.IntN(2) == 0 {
					fed, ended = ended, fed
				}
				tl.Open++
				later = append(later, []step{fed, ended})
				want.Fed++
				want.Now[end]++
			case 2: // known and ended before
				later = append(later, []step{func() { tl.fed(settle.Inserted{ID: item, Existing: true, State: end}) }})
				want.Fed++
				want.Before[end]++
			case 3: // left from an earlier input
				tl.Open++
				later = append(later, []step{ended})
				want.Now[end]++
				left[end]++
			}
		}
		for len(later) > 0 {
			i := rnd.IntN(len(later))
			later[i][0]()
			if later[i] = later[i][1:]; len(later[i]) == 0 {
				later = append(later[:i], later[i+1:]...)
			}
		}
		got := tl.now()
		if got.Fed != want.Fed || got.New != want.New || got.Open != 0 || len(tl.live) != 0 {
			t.Fatalf("seed %d: got %+v, want %+v", seed, got, want)
		}
		for _, st := range endStates {
			if got.Before[st] != want.Before[st] || got.Now[st] != want.Now[st] || tl.left()[st] != left[st] {
				t.Fatalf("seed %d: %s: got %+v and %+v left, want %+v and %+v left", seed, st, got, tl.left(), want, left)
			}
		}
	}
}

func TestABadEndBelongsToThisInputAnEarlierOneOrIsLeft(t *testing.T) {
	tl := newTally(2, true)
	tl.fed(settle.Inserted{ID: id(1), Existing: true, State: settle.Dead})
	tl.ended(id(2), settle.Dead)
	tl.ended(id(3), settle.Dead)
	tl.fed(settle.Inserted{ID: id(3), Existing: true, State: settle.Dead})
	for n, want := range map[int]origin{1: fromInput, 2: fromLeft, 3: fromInput, 4: fromEarlier} {
		if got := tl.origin(id(n)); got != want {
			t.Errorf("item %d: %d, want %d", n, got, want)
		}
	}
	if fresh := newTally(0, false); fresh.origin(id(9)) != fromInput {
		t.Error("in a run without a past every item is of this input")
	}
}
