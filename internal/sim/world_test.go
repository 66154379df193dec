package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
	"github.com/settle-go/settle/internal/jump"
	"github.com/settle-go/settle/sqlite"
)

// world is one simulation under way.
type world struct {
	ctx   context.Context
	path  string
	cfg   sqlite.Config
	store [2]*sqlite.Store // of the two workers
	two   bool             // they are two processes; else one store
	space [2]others
	look  *looker
	m     *model
	tally *tally
	tell  func(string, ...any) // each step, for people; may be nil

	rng  *rand.Rand // of the operation under way
	seed uint64     // its seed
	ids  uint64     // made by it

	mono      time.Duration // what every process's own clock counts
	drift     time.Duration // how far the store's clock has jumped, in all
	creep     time.Duration // sum of jumps forward too small to be noticed
	neglect   time.Duration // see rules_test.go
	lastSweep time.Duration
	lastFull  time.Duration

	hands   [2]*hand
	names   int64 // of workers so far
	solo    map[attemptOf]bool
	unsure  map[attemptOf]bool // its handler does not know whether a ticket was recorded
	tickets []ticket
	ghosts  []ghost
	news    [][]settle.New // of enqueues, to be repeated
	wishes  []deed         // decided by people and bridges, not yet applied
	tenants []string
	dirty   bool // the store may have been written to
}

// others is what other processes did to the number of live jobs since this
// handle first counted them.
type others struct {
	counted   bool
	sum       int
	low, high int
}

// start is when every simulation begins.
var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// failure is what a simulation found: rule names the promise.
type failure struct {
	rule, detail string
	at           int // the operation; -1 = the end
}

func (f *failure) Error() string { return f.rule + ": " + f.detail }

func (w *world) check(ok bool, rule, format string, args ...any) {
	if !ok {
		panic(&failure{rule: rule, detail: fmt.Sprintf(format, args...)})
	}
}

func (w *world) must(err error, what string) {
	if err != nil {
		panic(&failure{rule: what + ": error", detail: err.Error()})
	}
}

func (w *world) hit(what string) { w.tally.add(what) }

func (w *world) say(format string, args ...any) {
	if w.tell != nil {
		w.tell(format, args...)
	}
}

// newWorld opens a fresh file, by the numbers of a seed.
func newWorld(ctx context.Context, dir string, seed uint64, t *tally, tell func(string, ...any)) *world {
	w := &world{ctx: ctx, path: filepath.Join(dir, "sim.db"), m: newModel(), tally: t, tell: tell, solo: map[attemptOf]bool{},
		unsure: map[attemptOf]bool{}}
	w.begin(seed)
	w.m.now = start.UnixMicro()
	w.cfg = sqlite.Config{Synchronous: sqlite.Normal, KeepFree: -1, Clock: clock.From(func() time.Time { return instant(w.m.now) })}
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		w.cfg.MaxJobs = 6 + w.rng.IntN(12)
	case 3:
		w.cfg.MaxBytes = 1 << 20
	}
	w.two = w.one(2)
	w.tenants = []string{"", "a", "b", "c", "d"}[:2+w.rng.IntN(4)]
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(w.path + suffix); err != nil && !os.IsNotExist(err) {
			panic(err)
		}
	}
	if err := os.WriteFile(w.path, emptyFile(), 0o600); err != nil {
		panic(err)
	}
	w.openAll()
	for i := range w.hands {
		w.hands[i] = w.newHand(i)
	}
	w.look = openLook(w.path)
	return w
}

func (w *world) open(i int) {
	st, err := sqlite.Open(w.path, w.cfg)
	w.must(err, "open")
	w.store[i], w.space[i] = st, others{}
}

// openAll opens the file in each process.
func (w *world) openAll() {
	if w.open(0); w.two {
		w.open(1)
	} else {
		w.store[1] = w.store[0]
	}
}

// close ends all handles.
func (w *world) close() {
	w.look.close()
	for _, st := range w.store {
		_ = st.Close()
	}
}

// begin prepares for one operation: all its choices come from its own seed.
func (w *world) begin(seed uint64) {
	w.rng, w.seed, w.ids = rand.New(rand.NewPCG(seed, 1)), seed, 0
}

// id makes an id that depends on the operation alone.
func (w *world) id(what string) settle.ID {
	w.ids++
	return settle.DeriveID([]byte(what), binary.BigEndian.AppendUint64(nil, w.seed), binary.BigEndian.AppendUint64(nil, w.ids))
}

// one chance in n.
func (w *world) one(n int) bool { return w.rng.IntN(n) == 0 }

func pickOne[T any](w *world, list []T) T { return list[w.rng.IntN(len(list))] }

// between is a duration from lo to hi, to the microsecond.
func (w *world) between(lo, hi time.Duration) time.Duration {
	return (lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))).Truncate(time.Microsecond)
}

// any is either handle of the store.
func (w *world) any() int {
	i := w.rng.IntN(2)
	if i == 1 && w.two {
		w.hit("call of another process")
	}
	return i
}

func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// String names a job for people.
func (j *job) String() string { return fmt.Sprintf("job %d (%s)", j.n, j.state) }

// ---- time

// advance lets time pass.
func (w *world) advance(d time.Duration) {
	before := w.neglected()
	w.m.now += d.Microseconds()
	w.mono += d.Truncate(time.Microsecond)
	w.crossings(before)
}

// jump moves the store's clock alone.
func (w *world) jump(d time.Duration) {
	before := w.neglected()
	w.m.now += d.Microseconds()
	if w.drift += d.Truncate(time.Microsecond); d > 0 && d <= jump.Slack {
		w.creep += d
	}
	w.neglect += max(d, 0)
	w.crossings(before)
}

// ---- the limit of live jobs

// changed notes how many live jobs a call through handle i made more.
func (w *world) changed(i, before int) {
	if !w.two {
		return
	}
	delta := len(w.m.live()) - before
	o := &w.space[1-i]
	o.sum += delta
	o.low, o.high = min(o.low, o.sum), max(o.high, o.sum)
}

// room is what handle i may believe about its limit: it may have counted at any
// moment since its first count.
func (w *world) room(i int) space {
	if !w.two {
		i = 0
	}
	o := &w.space[i]
	if !o.counted {
		*o = others{counted: true}
	}
	have := len(w.m.live()) - o.sum
	return space{limit: w.cfg.MaxJobs, low: have + o.low, high: have + o.high, bytes: w.cfg.MaxBytes > 0}
}
