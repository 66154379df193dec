package main

import (
	"fmt"
	"runtime"
	"time"

	zombie "zombiezen.com/go/sqlite"
)

const bindRows = 20000

// bind answers small questions about zombiezen's own API: what arguments boxed
// as ...any cost, what asking Conn.Prepare for a kept statement costs, what a
// large blob costs, and what AUTOINCREMENT costs.
func bind(dir string) {
	t := table{}
	for range 2**rounds + 1 { // short runs, so more of them
		runtime.GC()
		for _, way := range []string{"typed", "boxed"} {
			ns, allocs := bindFlat(dir, way)
			t.add("flat", way, ns)
			t.add("flat allocs", way, allocs)
			t.add("full", way, bindFull(dir, way))
		}
		for _, way := range []string{"bare", "savepoint"} {
			t.add("save", way, saved(dir, way))
		}
		for _, way := range []string{"kept", "small", "Prepare"} {
			ns, takes := lookups(dir, way)
			t.add("lookup", way, ns)
			t.add("reprepares", way, takes)
		}
		for _, d := range []string{"zombiezen", "mattn", "modernc"} {
			t.add("blob", d, bigBlob(dir, d))
		}
		for _, way := range []string{"integer primary key", "integer primary key autoincrement"} {
			t.add("key", way, keyed(dir, way))
		}
	}
	fmt.Printf("  10 integer columns, no index:  typed %4.0f ns (%.1f allocs), boxed %4.0f ns (%.1f allocs): %+.0f ns, × %.2f\n",
		t.median("flat", "typed"), t.median("flat allocs", "typed"), t.median("flat", "boxed"), t.median("flat allocs", "boxed"),
		t.median("flat", "boxed")-t.median("flat", "typed"), t.ratio("flat", "boxed", "flat", "typed"))
	fmt.Printf("  body + live with all indexes:  typed %4.0f ns, boxed %4.0f ns: × %.2f\n",
		t.median("full", "typed"), t.median("full", "boxed"), t.ratio("full", "boxed", "full", "typed"))
	fmt.Printf("  a savepoint around each insert of a batch: × %.2f\n", t.ratio("save", "savepoint", "save", "bare"))
	fmt.Printf("  claim's select, %d runs: statement kept %4.0f ns\n", bindRows, t.median("lookup", "kept"))
	for _, way := range []string{"kept", "small", "Prepare"} {
		fmt.Printf("    %-8s × %.2f, %.0f re-prepares\n", way, t.ratio("lookup", way, "lookup", "kept"), t.median("reprepares", way))
	}
	fmt.Printf("  insert of a 1 MiB blob, time × zombiezen:  mattn %.2f, modernc %.2f (zombiezen %.2f ms)\n",
		t.ratio("blob", "mattn", "blob", "zombiezen"), t.ratio("blob", "modernc", "blob", "zombiezen"), t.median("blob", "zombiezen"))
	fmt.Printf("  autoincrement on body: insert × %.2f\n", t.ratio("key", "integer primary key autoincrement", "key", "integer primary key"))
}

// bindFlat inserts 10 integers a row in one transaction; ns and allocations each.
func bindFlat(dir, way string) (ns, allocs float64) {
	s := attach("zombiezen", fresh(dir), "NORMAL")
	defer s.close()
	must(s.conn.Exec("create table t(n integer primary key, a int, b int, c int, d int, e int, f int, g int, h int, i int)"))
	boxed := s.conn.Prepare("insert into t values(?,?,?,?,?,?,?,?,?,?)", "")
	typed := boxed.(zStmt)
	must(s.conn.Exec("begin immediate"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for k := range int64(bindRows) {
		v := k + 1e6 // beyond the small integers that the runtime boxes for free
		if way == "boxed" {
			boxed.Exec(v, v+1, v+2, v+3, v+4, v+5, v+6, v+7, v+8, v+9)
			continue
		}
		for i := range 10 {
			typed.s.BindInt64(i+1, v+int64(i))
		}
		step(typed.s)
	}
	d := time.Since(start)
	runtime.ReadMemStats(&after)
	must(s.conn.Exec("commit"))
	return float64(d.Nanoseconds()) / bindRows, float64(after.Mallocs-before.Mallocs) / bindRows
}

// bindFull inserts jobs of the full model, 500 a transaction.
func bindFull(dir, way string) float64 {
	s := open("zombiezen", fresh(dir), "NORMAL")
	defer s.close()
	body, live := s.body.(zStmt).s, s.live.(zStmt).s
	typed := func(lane int64) {
		now := time.Now().UnixMicro()
		body.BindBytes(1, newID())
		body.BindInt64(2, now)
		body.BindText(3, "default")
		body.BindText(4, "video.analyze")
		body.BindText(5, "tenant-1")
		body.BindBytes(6, payload)
		step(body)
		for i, v := range [...]int64{laneBase + lane, stream, now, now, now + month, now + month, now, 10} {
			live.BindInt64(i+1, v)
		}
		step(live)
	}
	start := time.Now()
	for k := 0; k < bindRows; k += 500 {
		s.tx(func() {
			for i := range 500 {
				if way == "boxed" {
					s.insert(newID(), int64(i%lanes))
				} else {
					typed(int64(i % lanes))
				}
			}
		})
	}
	return float64(time.Since(start).Nanoseconds()) / bindRows
}

// saved inserts jobs of the full model, 500 a transaction, each in a savepoint
// of its own, so that one caller's error could not touch its neighbours.
func saved(dir, way string) float64 {
	s := open("zombiezen", fresh(dir), "NORMAL")
	defer s.close()
	begin, end := s.conn.Prepare("savepoint one", ""), s.conn.Prepare("release one", "")
	start := time.Now()
	for k := 0; k < bindRows; k += 500 {
		s.tx(func() {
			for i := range 500 {
				if way == "savepoint" {
					begin.Exec()
				}
				s.insert(newID(), int64(i%lanes))
				if way == "savepoint" {
					end.Exec()
				}
			}
		})
	}
	return float64(time.Since(start).Nanoseconds()) / bindRows
}

func step(s *zombie.Stmt) {
	for more := true; more; {
		var err error
		more, err = s.Step()
		must(err)
	}
	must(s.Reset())
}

// lookups runs the claim's select (an ORDER BY with equality terms): with the
// statement kept; kept, with lanes 0…9 instead of hashes (since 3.54 a value
// that changes to or from 0 or 1 expires such a statement); or with the
// statement asked of Conn.Prepare at every use, which clears its bindings.
func lookups(dir, way string) (ns, reprepared float64) {
	s := open("zombiezen", fresh(dir), "NORMAL")
	defer s.close()
	s.tx(func() { s.insertN(1000) })
	z := s.turn.(zStmt)
	now, base := time.Now().UnixMicro(), laneBase
	if way == "small" {
		base = 0
	}
	before, start := reprepares(z.s), time.Now()
	for k := range bindRows {
		if way == "Prepare" {
			_, err := z.c.Prepare(sqlTurn)
			must(err)
		}
		z.Query(func(row) {}, base+int64(k%lanes), now, now, int64(1))
	}
	return float64(time.Since(start).Nanoseconds()) / bindRows, float64(reprepares(z.s) - before)
}

// bigBlob answers the milliseconds of one insert of 1 MiB.
func bigBlob(dir, driver string) float64 {
	s := open(driver, fresh(dir), "NORMAL")
	defer s.close()
	big, now := make([]byte, 1<<20), time.Now().UnixMicro()
	start := time.Now()
	s.tx(func() {
		for range 16 {
			s.body.Exec(newID(), now, "default", "video.analyze", "tenant-1", big)
		}
	})
	return ms(time.Since(start)) / 16
}

// keyed answers ns for one body row whose row id is declared like that.
func keyed(dir, key string) float64 {
	s := attach("zombiezen", fresh(dir), "NORMAL")
	defer s.close()
	must(s.conn.Exec("create table body(n " + key + ", id blob not null unique, at integer not null, queue text not null, kind text not null, tenant text not null, key text, policy blob, input blob not null)"))
	ins := s.conn.Prepare(sqlBody, "")
	start := time.Now()
	must(s.conn.Exec("begin immediate"))
	for range bindRows {
		ins.Exec(newID(), int64(1), "default", "video.analyze", "tenant-1", payload)
	}
	must(s.conn.Exec("commit"))
	return float64(time.Since(start).Nanoseconds()) / bindRows
}
