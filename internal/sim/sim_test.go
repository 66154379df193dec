package sim

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds   = flag.Int("sim.seeds", 0, "how many seeds are run; 0 = 100")
	minutes = flag.Float64("sim.minutes", 0, "run seeds for so many minutes instead")
	from    = flag.Uint64("sim.from", 1, "the first seed; 0 = one that the clock chooses")
	one     = flag.String("sim.list", "", "run this seed or list of operations alone, and tell each step")
	keeping = flag.Bool("sim.keep", false, "append lists that fail to "+seedsFile)
)

// defaultSeeds take a few seconds, and are enough that everything fires.
const defaultSeeds = 100

// TestP1P2P3P9P10P13P14SimulatedQueueAgreesWithItsModel runs seeds, kept ones
// first, on as many goroutines as there are processors; each seed on one.
func TestP1P2P3P9P10P13P14SimulatedQueueAgreesWithItsModel(t *testing.T) {
	if *one != "" {
		tellOne(t, *one)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // each seed begins anew: there is little to keep
	began, first := time.Now(), *from
	if first == 0 {
		first = uint64(began.Unix()) << 20 // seeds that nobody has run
	}
	ran, all := runLists(t, feed(t, began, first))
	took := time.Since(began)
	t.Logf("%d seeds from %d on in %s: %.1f a second\n%s", ran, first, took.Round(time.Millisecond), float64(ran)/took.Seconds(), all)
	if !t.Failed() && ran >= defaultSeeds {
		all.allFired(t)
	}
}

// runLists runs lists until three have failed: the rest would only repeat it.
func runLists(t *testing.T, lists <-chan kept) (ran int64, all *tally) {
	const enough = 3
	var bad, done atomic.Int64
	var wg sync.WaitGroup
	all = newTally()
	for range runtime.GOMAXPROCS(0) {
		dir := memoryDir(t)
		wg.Go(func() {
			mine := newTally()
			for l := range lists {
				if bad.Load() >= enough {
					continue
				}
				done.Add(1)
				if f := run(t.Context(), dir, l.list, mine, nil); f != nil {
					bad.Add(1)
					report(t, dir, l, f)
				}
			}
			all.merge(mine)
		})
	}
	wg.Wait()
	return done.Load(), all
}

// feed gives the kept lists and then the seeds.
func feed(t *testing.T, began time.Time, first uint64) <-chan kept {
	lists := make(chan kept)
	old := readSeeds(t)
	n := *seeds
	if n == 0 {
		n = defaultSeeds
	}
	go func() {
		defer close(lists)
		for _, k := range old {
			lists <- k
		}
		limit := time.Duration(*minutes * float64(time.Minute))
		for seed := first; ; seed++ {
			if limit > 0 && time.Since(began) > limit || limit == 0 && seed-first >= uint64(n) {
				return
			}
			lists <- kept{list: opsOf(seed)}
		}
	}()
	return lists
}

// memoryDir is a directory in memory, where there is one: nothing here depends
// on the disk.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "settle-sim")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// report shrinks a list that failed and says how to repeat it.
func report(t *testing.T, dir string, l kept, f *failure) {
	short, f := shrink(l.list, f, 600, func(list []op) *failure { return run(t.Context(), dir, list, newTally(), nil) })
	var steps strings.Builder
	_ = run(t.Context(), dir, short, newTally(), teller(&steps))
	t.Errorf("%v\n\n%d operations lead there:\n%s\nto repeat it:\n  go test ./internal/sim -v -run Simulated -sim.list '%s'", f, len(short)-1, steps.String(), text(short))
	if *keeping && l.line == "" {
		if err := keep(short, f); err != nil {
			t.Errorf("keep the list: %v", err)
		}
	}
}

func tellOne(t *testing.T, line string) {
	list, err := parseList(line)
	if err != nil {
		t.Fatal(err)
	}
	var steps strings.Builder
	f := run(context.Background(), memoryDir(t), list, newTally(), teller(&steps))
	t.Log("\n" + steps.String())
	if f != nil {
		t.Error(f)
	}
}

// TestAFailingListIsShrunkToWhatMatters holds the shrinker to its purpose.
func TestAFailingListIsShrunkToWhatMatters(t *testing.T) {
	list := opsOf(7)
	needs := []op{list[20], list[90], list[91], list[150]}
	fails := func(l []op) *failure {
		at := 0
		for _, o := range l {
			if at < len(needs) && o == needs[at] {
				at++
			}
		}
		if at < len(needs) {
			return nil
		}
		return &failure{rule: "needs four", at: -1}
	}
	short, _ := shrink(list, fails(list), 600, fails)
	if want := text(append([]op{list[0]}, needs...)); text(short) != want {
		t.Errorf("got %s, want %s", text(short), want)
	}
	again, err := parseList(text(short))
	if err != nil || text(again) != text(short) {
		t.Errorf("a list is read as it was written: got %v, %v", again, err)
	}
}

// TestASeedAlwaysDoesTheSame: else nothing could be repeated.
func TestASeedAlwaysDoesTheSame(t *testing.T) {
	dir := filepath.Clean(memoryDir(t))
	for seed := uint64(1); seed <= 5; seed++ {
		var told [2]strings.Builder
		for i := range told {
			if f := run(t.Context(), dir, opsOf(seed), newTally(), teller(&told[i])); f != nil {
				t.Fatal(f)
			}
		}
		if told[0].String() != told[1].String() {
			t.Errorf("seed %d did two different things", seed)
		}
	}
}
