package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// ticker commits one row at random moments and stamps it with the time just
// before the commit.
func ticker(file string, stop chan struct{}) {
	s := attach("zombiezen", file, "NORMAL")
	ins := s.conn.Prepare("insert into tick(at) values(?)", "")
	s.begin, s.commit = s.conn.Prepare("begin immediate", ""), s.conn.Prepare("commit", "")
	fmt.Println("ready")
	for !ended(stop) {
		time.Sleep(time.Duration(3+rand.IntN(9)) * time.Millisecond)
		s.tx(func() { ins.Exec(time.Now().UnixNano()) })
	}
	s.close()
}

// version shows what PRAGMA data_version means, what asking costs, and how soon
// a process that asks on its writer connection sees another process's commit.
func version(dir string) {
	path := fresh(dir)
	a, b, user := open("zombiezen", path, "NORMAL"), attach("zombiezen", path, "NORMAL"), attach("modernc", path, "NORMAL")
	must(a.conn.Exec("create table tick(n integer primary key, at integer)"))
	meaning(a, b, user)
	b.close()
	user.close()
	q := a.conn.Prepare("pragma data_version", "i")
	ask := func() (v int64) { q.Query(func(r row) { v = r.Int(0) }); return v }
	fmt.Printf("  one poll, nobody commits: %.1f µs\n", pollCost(ask))
	k := start("ticker", path, "")
	k.line()
	fmt.Printf("  one poll, another process commits about 130 times a second: %.1f µs\n", pollCost(ask))
	for _, every := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
		waits(fmt.Sprintf("commit begun in B to row read in A, polling every %v", every), wakeups(a, ask, every))
	}
	k.stop()
	a.close()
	must(os.RemoveAll(filepath.Dir(path)))
}

func pollCost(ask func() int64) float64 {
	const n = 20000
	at := time.Now()
	for range n {
		ask()
	}
	return float64(time.Since(at).Nanoseconds()) / n / 1e3
}

func wakeups(a *store, ask func() int64, every time.Duration) (lat []float64) {
	read := a.conn.Prepare("select n, at from tick where n>? order by n", "ii")
	var seen int64
	a.conn.Prepare("select coalesce(max(n),0) from tick", "i").Query(func(r row) { seen = r.Int(0) })
	last := ask()
	for begun := time.Now(); time.Since(begun) < 4*duration(); {
		time.Sleep(every)
		v := ask()
		if v == last {
			continue
		}
		last = v
		read.Query(func(r row) {
			seen = r.Int(0)
			lat = append(lat, float64(time.Now().UnixNano()-r.Int(1))/1e6)
		}, seen)
	}
	return lat
}

// meaning prints, fact by fact, when the number changes on connection a.
func meaning(a, b, user *store) {
	ask := func(s *store) (v int64) {
		s.conn.Prepare("pragma data_version", "i").Query(func(r row) { v = r.Int(0) })
		return v
	}
	fact := func(label string, want bool, f func()) {
		before := ask(a)
		f()
		changed := ask(a) != before
		fmt.Printf("  changes after %-62s %-3s (expected %s)\n", label, verdict(changed), verdict(want))
	}
	exec := func(s *store, q ...string) {
		for _, q := range q {
			must(s.conn.Exec(q))
		}
	}
	const ins = "insert into tick(at) values(1)"
	fact("its own commit", false, func() { exec(a, ins) })
	fact("a commit by another connection of this process", true, func() { exec(b, ins) })
	fact("a commit by a modernc database/sql connection", true, func() { exec(user, ins) })
	fact("a write of another connection that is rolled back", false, func() { exec(b, "begin immediate", ins, "rollback") })
	fact("an empty BEGIN IMMEDIATE … COMMIT of another", false, func() { exec(b, "begin immediate", "commit") })
	fact("a checkpoint (PASSIVE) by another, nothing new", false, func() { exec(b, "pragma wal_checkpoint(passive)") })
	fact("a checkpoint (TRUNCATE) by another, nothing new", true, func() { exec(b, "pragma wal_checkpoint(truncate)") })
	fact("the first commit into the emptied WAL by another", true, func() { exec(b, ins) })
	fact("another's commit during a's read transaction, asked at its end", true, func() {
		exec(a, "begin", "select count(*) from tick")
		exec(b, ins)
		defer exec(a, "commit")
		fmt.Printf("    inside that transaction: version %d", ask(a))
		exec(b, ins)
		fmt.Printf(", then %d\n", ask(a))
	})
	fmt.Printf("  numbers of two connections at the same moment: %d, %d, %d\n", ask(a), ask(b), ask(user))
	before := ask(a)
	exec(b, ins)
	exec(a, ins) // a commits before it asks: does that swallow b's commit?
	fmt.Printf("  b commits, then a commits, then a asks: changed %s (must be yes, else a wake-up is lost)\n", verdict(ask(a) != before))
}
