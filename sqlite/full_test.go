package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/redact"
)

// maxPages makes SQLite say "full" beyond n pages more than there are.
func maxPages(t testing.TB, st *Store, more int64) {
	t.Helper()
	st.w.turn <- struct{}{}
	defer func() { <-st.w.turn }()
	have, err := number(st.w.c, `pragma page_count`)
	must(t, err)
	_, err = number(st.w.c, fmt.Sprintf(`pragma max_page_count = %d`, have+more))
	must(t, err)
}

// fill inserts until the store is full and returns how many were accepted.
func fill(t testing.TB, st *Store, bytes int) (n int) {
	t.Helper()
	for ; n < 100_000; n++ {
		if _, err := st.Insert(t.Context(), tasks(1, bytes)...); err != nil {
			isErr(t, err, settle.ErrFull)
			return n
		}
	}
	t.Fatal("never full")
	return n
}

func TestB042FullIsARecognisableErrorAndPassesByItself(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st := openAt(t, path, Config{Synchronous: Normal})
	insert(t, st, tasks(300, 50)...)
	held := take(t, st, 100)
	for _, q := range []string{"create table filler (b)", // a claim alone seldom needs a page
		"create trigger grow after update on live begin insert into filler values (zeroblob(5000)); end"} {
		_, err := st.w.c.exec(q)
		must(t, err)
	}
	maxPages(t, st, 2)
	n := fill(t, st, 3000) + fill(t, st, 10)
	var wide []settle.Transition // outputs that need new pages
	for _, c := range held {
		wide = append(wide, decided(c, success(strings.Repeat("o", 5000))))
	}
	refused := func(st *Store) {
		t.Helper()
		_, err := st.Claim(t.Context(), request(150))
		check(t, errors.Is(err, settle.ErrFull), "a claim says that the store is full: %v", err)
		_, err = st.Apply(t.Context(), wide)
		check(t, errors.Is(err, settle.ErrFull), "a settle says so: %v", err)
		for _, err := range gathered(t, st, 20, func(int) error { _, err := st.Insert(t.Context(), tasks(1, 5000)...); return err }) {
			check(t, errors.Is(err, settle.ErrFull) && strings.Contains(err.Error(), "free some space"), "an enqueue says so, and what to do: %v", err)
		}
		check(t, st.w.c.c.AutocommitEnabled(), "no transaction is left open")
		check(t, count(t, st) == 300+n, "reads go on, nothing is lost: %d of %d", count(t, st), 300+n)
	}
	for range 50 {
		refused(st)
	}
	sound(t, path)
	must(t, st.Close())
	st = openAt(t, path, Config{Synchronous: Normal}) // a restart while full
	maxPages(t, st, 0)
	refused(st)
	maxPages(t, st, 10_000) // there is space again
	for i, s := range apply(t, st, wide...) {
		check(t, s == settle.Done, "the kept outcome %d is stored now: %s", i, s)
	}
	check(t, drain(t, st) == 200+n, "all other jobs are done")
	check(t, count(t, st, settle.Succeeded) == 300+n, "nothing is lost")
	sound(t, path)
}

func TestB042FullInsideAUserTransaction(t *testing.T) {
	t.Parallel()
	st := bank(t)
	pages, err := number(rawConn(t, st.Path()), `pragma page_count`)
	must(t, err)
	tight := func(tx sqlTx) error {
		_, err := tx.Exec(fmt.Sprintf(`pragma max_page_count = %d`, pages+1))
		return err
	}
	err = st.InTx(t.Context(), func(tx sqlTx) error {
		must(t, tight(tx))
		must(t, pay(tx))
		_, err := st.EnqueueTx(t.Context(), tx, tasks(1, 50_000)...)
		check(t, errors.Is(err, settle.ErrFull), "it is ErrFull: %v", err)
		return err
	})
	check(t, errors.Is(err, settle.ErrFull), "InTx passes it on: %v", err)
	check(t, paid(t, st) == 0 && count(t, st) == 0, "nothing is stored")
	must(t, st.InTx(t.Context(), func(tx sqlTx) error {
		_, err := tx.Exec(`pragma max_page_count = 1000000`)
		return errors.Join(err, pay(tx))
	}))
	check(t, paid(t, st) == 1, "the next one works")
	sound(t, st.Path())
}

func TestB038WorkDrainsAFullStore(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	st := newStore(t, Config{MaxBytes: limit, Synchronous: Normal})
	n := fill(t, st, 500)
	pages, err := number(st.w.c, `pragma page_count`)
	must(t, err)
	check(t, n > 300 && pages*page < limit, "our own limit refuses before the store is full: %d jobs, %d bytes", n, pages*page)
	maxPages(t, st, limit/page-pages) // and now the limit is hard
	ended, dead, removed := 0, 0, 0
	for {
		jobs := take(t, st, 50)
		if len(jobs) == 0 {
			break
		}
		for i, c := range jobs {
			ev := success("done")
			if i%10 == 0 {
				ev, dead = terminal("no such thing"), dead+1
			}
			check(t, apply(t, st, decided(c, ev))[0] == settle.Done, "claim, complete and dead-letter work")
			ended++
		}
		p, err := st.Prune(t.Context(), settle.Keep{}, 1000)
		must(t, err)
		removed += p.Removed
	}
	check(t, ended == n && count(t, st, settle.Pending, settle.Running) == 0, "it drains to 0 by itself: %d of %d", ended, n)
	check(t, count(t, st, settle.Dead) == dead, "dead letters are all kept: %d of %d", count(t, st, settle.Dead), dead)
	more := 0
	for range n / 2 {
		if _, err := st.Insert(t.Context(), tasks(1, 500)...); err == nil {
			more++
		}
	}
	check(t, more == n/2, "enqueue works again: succeeded rows make room before their time, %d of %d", more, n/2)
	checkBooks(t, st, n+more)
	check(t, count(t, st, settle.Dead) == dead, "dead ones never do: %d of %d", count(t, st, settle.Dead), dead)
	sound(t, st.Path())
}

// checkBooks: every job ever accepted is there, or counted as removed.
func checkBooks(t testing.TB, st *Store, accepted int) {
	t.Helper()
	gone, err := st.Removed(t.Context())
	must(t, err)
	sum := count(t, st)
	for _, r := range gone {
		sum += int(r.N)
	}
	check(t, sum == accepted, "the books balance: %d there or removed of %d accepted", sum, accepted)
}

func TestB038BigOutputsAreBoundedByPrune(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	st := newStore(t, Config{MaxBytes: limit, Synchronous: Normal})
	n := fill(t, st, 500)
	for left := n; left > 0; {
		jobs := take(t, st, 20)
		for _, c := range jobs { // each output is four times the input
			check(t, apply(t, st, decided(c, success(strings.Repeat("o", 2000))))[0] == settle.Done, "a settle is never refused by our own limit")
		}
		left -= len(jobs)
		_, err := st.Prune(t.Context(), settle.Keep{}, 1000)
		must(t, err)
	}
	pages, err := number(st.w.c, `pragma page_count`)
	must(t, err)
	check(t, pages*page <= limit, "the file stays within MaxBytes: %d of %d", pages*page, limit)
	checkBooks(t, st, n)
}

func TestB038DeadAndKeptRowsNeverMakeRoom(t *testing.T) {
	t.Parallel()
	st := newStore(t, Config{MaxBytes: 1 << 20, Synchronous: Normal})
	must(t, st.SetNote(t.Context(), settle.Note{Queue: "run", Keep: time.Hour}))
	kept := tasks(100, 500)
	for i := range kept {
		kept[i].Queue = "run"
	}
	insert(t, st, kept...)
	r := request(100)
	r.Queue = "run"
	got, err := st.Claim(t.Context(), r)
	must(t, err)
	for _, c := range got.Jobs {
		apply(t, st, decided(c, success("")))
	}
	insert(t, st, tasks(100, 500)...)
	for _, c := range take(t, st, 100) {
		apply(t, st, decided(c, terminal("no")))
	}
	plain := drainSome(t, st, 100)
	n := fill(t, st, 500)
	gone, err := st.Removed(t.Context())
	must(t, err)
	check(t, slices.Equal(gone, []settle.Removal{{Queue: "default", State: settle.Succeeded, N: int64(plain)}}), "only succeeded rows that nobody keeps have gone, all of them, counted: %v", gone)
	check(t, count(t, st, settle.Dead) == 100, "dead rows stay")
	check(t, len(all(t, st, settle.Filter{Queue: "run"})) == 100, "rows of an unfinished run stay")
	checkBooks(t, st, 200+plain+n)
	p, err := st.Prune(t.Context(), settle.Keep{Succeeded: time.Nanosecond, Dead: time.Nanosecond}, 1000)
	must(t, err)
	check(t, p.Removed == 100 && count(t, st, settle.Dead) == 0 && len(all(t, st, settle.Filter{Queue: "run"})) == 100, "Prune keeps the run's rows, too: %+v", p)
}

func drainSome(t testing.TB, st *Store, n int) int {
	t.Helper()
	insert(t, st, tasks(n, 500)...)
	return drain(t, st)
}

func TestKeepFreeRefusesNewJobsOnly(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	st := openAt(t, path)
	insert(t, st, tasks(10, 10)...)
	must(t, st.Close())
	st = openAt(t, path, Config{KeepFree: 1 << 60})
	_, err := st.Insert(t.Context(), task())
	check(t, errors.Is(err, settle.ErrFull) && strings.Contains(err.Error(), "free some space"), "an enqueue is refused with what to do: %v", err)
	err = st.InTx(t.Context(), func(tx sqlTx) error { _, err := st.EnqueueTx(t.Context(), tx, task()); return err })
	isErr(t, err, settle.ErrFull)
	check(t, drain(t, st) == 10, "the work that drains it goes on")
}

func TestB037DeadLettersGoByStatedPolicyAndAreCounted(t *testing.T) {
	t.Parallel()
	clk := newClock()
	st := newStore(t, Config{Synchronous: Normal, Clock: clk.source(), KeepFree: -1})
	n := size(200, 2000)
	long := redact.Text(strings.Repeat("stack frame of 50 KB ", 2500))
	wave := func() (pages int64) {
		jobs := tasks(n, 100)
		for i := range jobs {
			jobs[i].Policy = &settle.Policy{Attempts: 3, BackoffMin: time.Millisecond, BackoffMax: time.Millisecond}
		}
		insert(t, st, jobs...)
		for range 3 {
			clk.advance(time.Second)
			var ts []settle.Transition
			for _, c := range take(t, st, n) {
				ts = append(ts, decided(c, failure(long)))
			}
			apply(t, st, ts...)
		}
		pages, err := number(st.w.c, `pragma page_count`)
		must(t, err)
		return pages
	}
	later := task(settle.EnqueueOpts{Delay: 400 * 24 * time.Hour})
	live := insert(t, st, later)[0]
	first := wave()
	check(t, count(t, st, settle.Dead) == n, "all are dead")
	for _, j := range all(t, st, settle.Filter{States: []settle.State{settle.Dead}, Limit: 10})[:10] {
		a := get(t, st, j.ID).Attempts
		check(t, len(a) == 3 && len(a[0].Error) <= 2048 && len(a[0].Error) > 100, "each attempt's text is kept, and capped: %d", len(a[0].Error))
	}
	clk.advance(300 * 24 * time.Hour)
	p, err := st.Prune(t.Context(), settle.Keep{}, 10_000)
	must(t, err)
	check(t, p.Removed == 0, "without a policy for them dead letters stay until a person removes them")
	for p.More = true; p.More; {
		p, err = st.Prune(t.Context(), settle.Keep{Dead: 200 * 24 * time.Hour}, 70)
		must(t, err)
	}
	gone, err := st.Removed(t.Context())
	must(t, err)
	check(t, len(gone) == 1 && gone[0].State == settle.Dead && gone[0].N == int64(n), "each removal is counted: %v", gone)
	check(t, get(t, st, live).State == settle.Pending, "live jobs are untouched")
	second := wave()
	check(t, second <= first+first/10, "the size is bounded: the next wave uses the same space, %d pages after %d", second, first)
	sound(t, st.Path())
}
