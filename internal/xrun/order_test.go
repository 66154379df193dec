package xrun

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/settle-go/settle"
)

func id(n int) settle.ID { return settle.ID{byte(n >> 8), byte(n), 1} }

func TestOutputPassesInTheOrderOfTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 200
		o := newOrder(10_000)
		var mu sync.Mutex
		var got []int
		for _, i := range rand.Perm(n) {
			go func() {
				if err := o.wait(context.Background(), id(i)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				got = append(got, i)
				mu.Unlock()
				o.end(id(i))
			}()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("items without a place passed")
		}
		for i := range n - 10 { // the last ten never get a place
			o.place(id(i))
		}
		synctest.Wait()
		if len(got) != n-10 || !slices.IsSorted(got) {
			t.Errorf("got %d items, in order: %v", len(got), slices.IsSorted(got))
		}
		o.inputEnded()
		synctest.Wait()
		if len(got) != n {
			t.Errorf("at the end of the input %d of %d items have passed", len(got), n)
		}
	})
}

func TestAnItemThatDiesLetsTheNextPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrder(10_000)
		for i := range 4 {
			o.place(id(i))
		}
		passed := false
		go func() {
			o.wait(context.Background(), id(3))
			passed = true
		}()
		o.end(id(2)) // before its turn
		o.end(id(0))
		synctest.Wait()
		if passed {
			t.Fatal("passed before item 1 has ended")
		}
		if first, ok := o.stuck(); !ok || first != id(1) {
			t.Errorf("stuck at %v, %v; want item 1", first, ok)
		}
		o.end(id(1))
		synctest.Wait()
		if !passed {
			t.Error("still waits although all before it have ended")
		}
	})
}

func TestAnEndBeforeThePlaceCounts(t *testing.T) {
	o := newOrder(10_000)
	o.end(id(0))
	o.place(id(0))
	o.place(id(1))
	if err := o.wait(context.Background(), id(1)); err != nil {
		t.Error(err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	o := newOrder(10_000)
	o.place(id(0))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := o.wait(ctx, id(1)); err == nil {
		t.Error("no error")
	}
	if len(o.turn) != 0 {
		t.Error("the waiting place was not given up")
	}
}

func TestThousandsInOrderGiveTheirMemoryBack(t *testing.T) {
	o := newOrder(10_000)
	for i := range 5000 {
		o.place(id(i))
		o.end(id(i))
	}
	if len(o.line)-o.head != 0 || len(o.line) > 2001 || len(o.placed)+len(o.ended)+len(o.turn) > 0 {
		t.Errorf("kept: %d in line, %d placed, %d ended, %d waiting", len(o.line), len(o.placed), len(o.ended), len(o.turn))
	}
}

func TestNoMoreIsPlacedThanMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrder(3)
		room := 0
		go func() {
			for i := range 5 {
				if err := o.room(context.Background(), 1); err != nil {
					t.Error(err)
				}
				room++
				o.place(id(i))
			}
		}()
		synctest.Wait()
		if room != 3 {
			t.Fatalf("%d placed, want 3", room)
		}
		o.end(id(1))
		synctest.Wait()
		if room != 3 {
			t.Fatalf("%d placed although the first has not ended", room)
		}
		o.end(id(0))
		synctest.Wait()
		if room != 5 {
			t.Errorf("%d placed after two have passed, want 5", room)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if o.room(ctx, 1) == nil {
			t.Error("no room, and no error")
		}
	})
}

func TestWhenAllPlacesAreTakenOnlyTheFirstRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrder(2)
		for i := range 4 {
			o.place(id(i))
		}
		if o.crowded(id(3)) {
			t.Error("crowded while nobody waits")
		}
		ctx, cancel := context.WithCancel(context.Background())
		for _, i := range []int{1, 2} {
			go o.wait(ctx, id(i))
		}
		synctest.Wait()
		if !o.crowded(id(3)) || o.crowded(id(0)) {
			t.Error("want the first to run, and no other")
		}
		cancel()
		synctest.Wait()
		if o.crowded(id(3)) {
			t.Error("crowded after all have gone")
		}
	})
}

func TestWhoIsSentAwayWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrder(10)
		o.place(id(0))
		o.place(id(1))
		var err error
		go func() { err = o.wait(context.Background(), id(1)) }()
		synctest.Wait()
		o.evict()
		synctest.Wait()
		if err == nil || len(o.turn) > 0 {
			t.Errorf("got %v", err)
		}
		o.end(id(0))
		if err := o.wait(context.Background(), id(1)); err != nil {
			t.Errorf("when it came again: %v", err)
		}
	})
}
