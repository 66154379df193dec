package small

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/clock"
	"github.com/settle-go/settle/sqlite"
)

// bound is how many steps each actor has. With a bridge there is one job, whose
// workers submit a step; else there are two, which they do by themselves.
type bound struct{ worker, sweep, person, bridge int8 }

func (b bound) jobs() int {
	if b.bridge > 0 {
		return 1
	}
	return 2
}

// search is one depth-first search. What the store does in one call depends on
// its contents, the clock and the call alone: each such triple is carried out
// once, by the real store, and remembered.
type search struct {
	ctx    context.Context
	bound  bound
	db     *sqlite.Store
	disk   *disk
	now    time.Time
	ids    []settle.ID
	before contents // the store before the call under way
	path   []string // steps that lead to here

	stores   interned[contents]
	claims   interned[claimed]
	deeds    interned[settle.Transition]
	pages    interned[[]num] // of deeds
	seenJobs interned[settle.Job]
	answers  map[call]answer
	decided  map[decision]num // a deed

	visited     map[state]struct{}
	led         map[num]bool // contents of leaves from which all jobs were led to an end
	transitions int
}

// call is what the store was asked in which situation. what and with name the
// question: a verb, and the number of what it is about.
type call struct {
	store num
	clock int8
	what  string
	with  num
}

// decision is who decided what on what they knew: numbers of a claim or of a
// job that was seen.
type decision struct {
	on   num
	what string
}

type answer struct {
	said  any
	store num
}

// claimed is a job in the hands of a worker.
type claimed struct {
	settle.ClaimedJob
	by int
}

// interned gives numbers from 1 to things that have a name.
type interned[T any] struct {
	at   map[string]num
	list []T
}

func (n *interned[T]) put(name string, v T) num {
	if i, ok := n.at[name]; ok {
		return i
	}
	if n.at == nil {
		n.at = map[string]num{}
	}
	n.list = append(n.list, v)
	n.at[name] = num(len(n.list))
	return n.at[name]
}

type fault struct{ text string }

func (x *search) check(ok bool, format string, args ...any) {
	if !ok {
		panic(fault{fmt.Sprintf(format, args...) + "\n  " + strings.Join(x.path, "\n  ")})
	}
}

func (x *search) must(err error) { x.check(err == nil, "error: %v", err) }

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// explore searches everything within a bound.
func explore(t *testing.T, b bound) *search {
	x := &search{ctx: t.Context(), bound: b, now: start, answers: map[call]answer{}, decided: map[decision]num{}, visited: map[state]struct{}{}, led: map[num]bool{}}
	dir, err := os.MkdirTemp("/dev/shm", "settle-small")
	if err != nil {
		dir = t.TempDir()
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "small.db")
	x.db, err = sqlite.Open(path, sqlite.Config{Synchronous: sqlite.Normal, KeepFree: -1, Clock: clock.From(func() time.Time { return x.now })})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.db.Close() }()
	x.disk = openDisk(path)
	defer func() { _ = x.disk.c.Close() }()
	defer func() {
		switch f := recover().(type) {
		case nil:
		case fault:
			t.Fatal(f.text)
		default:
			panic(f)
		}
	}()
	x.visit(x.begin())
	return x
}

// begin stores the jobs.
func (x *search) begin() state {
	for i := range x.bound.jobs() {
		id := settle.DeriveID([]byte("small"), []byte{byte(i)})
		_, err := x.db.Insert(x.ctx, settle.New{Kind: "work", EnqueueOpts: settle.EnqueueOpts{ID: id, Tenant: fmt.Sprint("t", i), Policy: &policy}})
		x.must(err)
		x.ids = append(x.ids, id)
	}
	c := x.disk.read()
	return state{store: x.stores.put(c.key(), c)}
}

// visit goes on from a state that has not been seen before.
func (x *search) visit(s state) {
	if _, ok := x.visited[s]; ok {
		return
	}
	x.visited[s] = struct{}{}
	moves := x.moves(s)
	if len(moves) == 0 {
		x.leaf(s)
	}
	for _, m := range moves {
		x.transitions++
		x.path = append(x.path, m.name)
		x.visit(m.do(x, s))
		x.path = x.path[:len(x.path)-1]
	}
}

// ask asks the store, unless it has been asked this in this situation before.
// The answer is any value; the state gets the new contents.
func ask[T any](x *search, s *state, what string, with num, fn func() T) T {
	k := call{s.store, s.clock, what, with}
	a, ok := x.answers[k]
	if !ok {
		x.before = x.stores.list[s.store-1]
		x.disk.restore(x.before)
		x.now = start.Add(instants[s.clock])
		a.said = fn()
		after := x.disk.read()
		x.lawful(x.before, after, what)
		a.store = x.stores.put(after.key(), after)
		x.answers[k] = a
	}
	s.store = a.store
	return a.said.(T)
}

// apply carries out one transition, named by its number; check looks at the
// answer.
func (x *search) apply(s *state, deed num, check func(settle.Transition, settle.Applied)) {
	ask(x, s, "apply", deed, func() settle.Applied {
		t := x.deeds.list[deed-1]
		got, err := x.db.Apply(x.ctx, []settle.Transition{t})
		x.must(err)
		x.check(got[0] != settle.Rejected, "a decision cannot be stored: %+v", t)
		check(t, got[0])
		return got[0]
	})
}

// leaf: nobody has a step left. When all deadlines have passed sweeps must end
// what is live.
func (x *search) leaf(s state) {
	if x.led[s.store] {
		return
	}
	x.led[s.store] = true
	x.disk.restore(x.stores.list[s.store-1])
	x.now = start.Add(10 * deadline)
	for range 4 { // a lease that is over makes a job pending first
		page := x.look()
		if len(page) == 0 {
			break
		}
		for _, deed := range page {
			_, err := x.db.Apply(x.ctx, []settle.Transition{x.deeds.list[deed-1]})
			x.must(err)
		}
	}
	live := 0
	for _, r := range x.disk.read() {
		if r.table == "live" {
			live++
		}
	}
	x.check(live == 0, "P1 every job ends: %d are live after all deadlines", live)
}

func number(m map[string]string, col string) int64 {
	n, err := strconv.ParseInt(m[col], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
