package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/settle-go/settle"
)

// op is one operation; all its choices come from its seed.
type op struct {
	name string
	seed uint64
}

func (o op) String() string { return fmt.Sprintf("%s:%x", o.name, o.seed) }

// ops are the operations and how often they are chosen.
var ops = []struct {
	name   string
	weight int
	do     func(*world)
}{
	{"enqueue", 18, (*world).enqueue}, {"again", 5, (*world).again},
	{"claim", 30, (*world).claim}, {"settle", 34, (*world).settle}, {"renew", 7, (*world).renew},
	{"late", 9, (*world).late}, {"forge", 2, (*world).forge}, {"deliver", 16, (*world).deliver},
	{"submit", 14, (*world).submit}, {"early", 10, (*world).early},
	{"sweep", 8, (*world).sweep}, {"glance", 8, (*world).glance}, {"act", 8, (*world).act},
	{"crash", 4, (*world).crash}, {"reopen", 1, (*world).reopen},
	{"cancel", 5, (*world).cancel}, {"redrive", 9, (*world).redrive}, {"hold", 4, (*world).hold},
	{"prune", 4, (*world).prune}, {"remove", 2, (*world).remove}, {"ack", 3, (*world).ack}, {"note", 1, (*world).note},
	{"wait", 24, (*world).wait}, {"attend", 5, (*world).attend}, {"leap", 3, (*world).leap},
	{"readers", 6, (*world).readers},
}

// length is how many operations one seed makes.
const length = 200

// opsOf makes the list of a seed. The first entry sets up the world.
func opsOf(seed uint64) []op {
	rng := rand.New(rand.NewPCG(seed, 0))
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	list := []op{{"setup", rng.Uint64() >> 16}}
	for range length {
		at := rng.IntN(total)
		for _, o := range ops {
			if at -= o.weight; at < 0 {
				list = append(list, op{o.name, rng.Uint64() >> 16})
				break
			}
		}
	}
	return list
}

func find(name string) func(*world) {
	for _, o := range ops {
		if o.name == name {
			return o.do
		}
	}
	panic("no operation is called " + name)
}

// run carries out one list in a directory of its own; nil = nothing was found.
func run(ctx context.Context, dir string, list []op, t *tally, tell func(string, ...any)) (found *failure) {
	var w *world
	at := 0
	defer func() {
		if v := recover(); v != nil {
			found = asFailure(v)
			found.at = at
		}
		if w != nil {
			w.close()
		}
	}()
	w = newWorld(ctx, dir, list[0].seed, t, tell)
	for i, o := range list[1:] {
		at = i + 1
		w.begin(o.seed)
		w.say("%d %s", at, o)
		find(o.name)(w)
		w.hit("op " + o.name)
		if w.dirty {
			w.audit(at%8 == 0)
			w.dirty = false
		}
	}
	at = -1
	w.begin(list[0].seed + 1)
	w.runOut()
	return nil
}

func asFailure(v any) *failure {
	if f, ok := v.(*failure); ok {
		return f
	}
	return &failure{rule: "panic", detail: fmt.Sprintf("%v\n%s", v, debug.Stack())}
}

// runOut lets time run on, with one worker that sweeps and perhaps works, until
// nothing is live. Every job then ends by its ends_by.
func (w *world) runOut() {
	w.say("time runs on")
	h := w.newHand(0)
	w.hands[0] = h
	works := w.one(2)
	w.pass(h, 100)
	w.advance(10*time.Minute + time.Second) // until the clock is trusted
	w.pass(h, 100)
	w.audit(true)
	for steps := 0; ; steps++ {
		live := w.m.live()
		if len(live) == 0 {
			break
		}
		w.check(steps < 5000, "the end", "%d jobs are still live, such as %s", len(live), live[0])
		if works {
			w.workOff(h)
		}
		w.untilAlarm()
		w.pass(h, 100)
		if steps%8 == 0 {
			w.audit(false)
		}
	}
	w.pruned(0, settle.Keep{Succeeded: time.Millisecond, Cancelled: time.Millisecond}, 1000)
	w.audit(true)
	w.check(len(w.look.inbox()) == 0, "the end", "answers are left in the inbox")
	w.hit("nothing is left live")
}

// untilAlarm moves time to shortly after the next alarm. The sweeps before it
// find nothing: they are not made.
func (w *world) untilAlarm() {
	next := int64(0)
	for _, j := range w.m.live() {
		if next == 0 || j.alarm < next {
			next = j.alarm
		}
	}
	if next > w.m.now {
		w.advance(span(next - w.m.now))
		w.lastSweep, w.lastFull = w.mono, w.mono
	}
	w.advance(w.between(0, settle.SweepInterval))
}

// workOff claims what is due and lets it succeed.
func (w *world) workOff(h *hand) {
	for range 20 {
		n := w.take(h, settle.ClaimReq{Queue: settle.DefaultQueue, Kinds: h.runs(), Limit: 10, Lease: h.lease, Worker: h.id}, false)
		var deeds []deed
		for _, c := range h.held {
			ev := settle.Settled{Outcome: settle.Outcome{Verdict: settle.VerdictOK}}
			t := settle.Decide(c.Snapshot, ev, c.Policy, 0)
			deeds = append(deeds, deed{ev: ev, t: t, left: c.Remaining})
		}
		h.held = nil
		if n == 0 {
			return
		}
		w.apply(h.at, deeds)
	}
}

// text is a list as it is written down.
func text(list []op) string {
	words := make([]string, len(list))
	for i, o := range list {
		words[i] = o.String()
	}
	return strings.Join(words, " ")
}
