package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// walGrowth looks at the write-ahead log: what the checkpoint interval costs,
// and what readers do to it.
func walGrowth(dir string) {
	t := table{}
	pages := []string{"500", "1000", "4000", "16000"}
	for range *rounds {
		for _, p := range pages {
			s, path := walStore(dir, p)
			rate, slow, size := drive(s, path, nil)
			t.add("rate", p, rate)
			t.add("slow", p, slow)
			t.add("size", p, size)
			s.close()
			must(os.RemoveAll(filepath.Dir(path)))
		}
	}
	for _, p := range pages {
		fmt.Printf("  wal_autocheckpoint=%-6s rate × %.2f of 4000; slowest commit %5.1f ms; WAL %5.1f MiB\n", p,
			t.ratio("rate", p, "rate", "4000"), t.median("slow", p), t.median("size", p))
	}
	for _, care := range []string{"none", "restart", "truncate"} {
		overlapping(dir, care)
	}
	pinned(dir)
}

func walStore(dir, pages string) (*store, string) {
	path := fresh(dir)
	s := open("zombiezen", path, "FULL")
	must(s.conn.Exec("pragma wal_autocheckpoint=" + pages))
	return s, path
}

func walSize(path string) float64 {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return 0
	}
	return float64(info.Size()) / (1 << 20)
}

// drive runs full cycles; after each transaction it calls then, if given.
func drive(s *store, path string, then func(size float64)) (rate, slowest, size float64) {
	var held []claimed
	n, begun := 0, time.Now()
	for time.Since(begun) < 3*duration() {
		at := time.Now()
		s.tx(func() {
			s.insertN(100)
			s.settle(held)
			held = s.claim(100, held)
		})
		n += len(held)
		if then != nil && n%1000 < 100 {
			then(walSize(path))
		}
		slowest = max(slowest, ms(time.Since(at)))
		size = max(size, walSize(path))
	}
	return float64(n) / time.Since(begun).Seconds(), slowest, size
}

// overlapping keeps two readers busy whose transactions overlap, so that the
// log is never unread. care is the checkpoint asked for beyond 24 MiB.
func overlapping(dir, care string) {
	s, path := walStore(dir, "1000")
	defer os.RemoveAll(filepath.Dir(path))
	stop := make(chan struct{})
	gone := make(chan struct{})
	for i := range 2 {
		go func() {
			r := attach("zombiezen", path, "FULL")
			time.Sleep(time.Duration(i) * 20 * time.Millisecond)
			for !ended(stop) {
				must(r.conn.Exec("begin"))
				r.number("select count(*) from ended")
				time.Sleep(40 * time.Millisecond)
				must(r.conn.Exec("commit"))
			}
			r.close()
			gone <- struct{}{}
		}()
	}
	asked, taken := 0, 0.0
	must(s.conn.Exec("pragma busy_timeout=100"))
	rate, slowest, size := drive(s, path, func(size float64) {
		if care == "none" || size < 24 {
			return
		}
		at := time.Now()
		s.number("pragma wal_checkpoint(" + care + ")")
		asked, taken = asked+1, taken+ms(time.Since(at))
	})
	close(stop)
	<-gone
	<-gone
	fmt.Printf("  two overlapping readers, care %-8s  %6.0f jobs/s; WAL up to %5.1f MiB; slowest %5.1f ms; %d checkpoints of %.0f ms\n",
		care, rate, size, slowest, asked, taken/float64(max(asked, 1)))
	s.close()
}

// pinned holds one read transaction open and watches the file after its end.
func pinned(dir string) {
	s, path := walStore(dir, "1000")
	defer os.RemoveAll(filepath.Dir(path))
	r := attach("zombiezen", path, "FULL")
	must(r.conn.Exec("begin"))
	r.number("select count(*) from body")
	_, _, size := drive(s, path, nil)
	fmt.Printf("  one pinned reader: WAL %.1f MiB when it ends", size)
	must(r.conn.Exec("commit"))
	_, _, after := drive(s, path, nil)
	fmt.Printf("; %.1f MiB after as much work again (reused, never shortened)", after)
	busy := s.number("pragma wal_checkpoint(truncate)")
	fmt.Printf("; %.1f MiB after wal_checkpoint(truncate), busy=%d\n", walSize(path), busy)
	must(s.conn.Exec("pragma journal_size_limit=4194304"))
	drive(s, path, nil)
	fmt.Printf("  with journal_size_limit=4 MiB from then on: %.1f MiB\n", walSize(path))
	r.close()
	s.close()
}
