package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	msqlite "modernc.org/sqlite"
)

// locks opens the file a second time in a process whose zombiezen connection
// holds the write lock, and asks other processes what they see.
func locks(dir string) {
	fmt.Println("  A holds the write lock (zombiezen); something in A's process opens and closes the file; another process looks.")
	for _, lock := range []string{"posix", "ofd"} {
		for _, second := range []string{"nothing", "modernc", "by hand", "mattn"} {
			path := fresh(dir)
			s := open("zombiezen", path, "FULL")
			must(s.conn.Exec("create table tick(n integer primary key, at integer); create index tick_at on tick(at)"))
			s.close()
			fmt.Printf("  %-5s %-8s %s\n", lock, second, start("library", path, lock+"/"+second).stop())
			must(os.RemoveAll(filepath.Dir(path)))
		}
	}
}

// libraryChild is process A. It tells: may a second library begin to write beside
// it; may another process write inside its transaction; and what is left when A
// commits 6 rows, another process B commits 6, A one more, and both have closed.
func libraryChild(path, mode string) {
	lock, second, _ := strings.Cut(mode, "/")
	if lock == "ofd" {
		_, err := msqlite.OFDLocking(true)
		must(err)
	}
	a := attach("zombiezen", path, "FULL")
	must(a.conn.Exec("begin immediate"))
	must(a.conn.Exec("insert into tick(at) values(1)"))
	fmt.Printf("second in A: %-9s ", openAndClose(path, second))
	fmt.Printf("B inside A's transaction: %-4s ", start("probe", path, "").stop())
	promised := 0
	write := func(times int, query string) {
		for range times {
			if a.conn.Exec(query) == nil {
				promised++
			}
		}
	}
	write(1, "commit")
	write(5, "insert into tick(at) values(1)")
	fmt.Printf("B sees %s of %d", start("count", path, "").stop(), promised)
	if start("append", path, "").stop() == "6" {
		promised += 6
	}
	write(1, "insert into tick(at) values(1)")
	a.close()
	fmt.Printf(", in the end %s of %d acknowledged\n", start("count", path, "").stop(), promised)
}

// appendRows is process B: it commits 6 rows and tells how many succeeded.
func appendRows(path string) {
	s, n := attach("zombiezen", path, "FULL"), 0
	defer s.close()
	for range 6 {
		if s.conn.Exec("insert into tick(at) values(2)") == nil {
			n++
		}
	}
	fmt.Println(n)
}

// openAndClose reads the file through a second way, tries to begin writing, and
// closes it.
func openAndClose(path, second string) string {
	switch second {
	case "nothing":
		return "-"
	case "by hand":
		f, err := os.Open(path)
		must(err)
		must(f.Close())
		return "closed"
	}
	db, err := sql.Open(map[string]string{"modernc": "sqlite", "mattn": "sqlite3"}[second], path)
	must(err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("pragma busy_timeout=0")
	must(err)
	var n int
	must(db.QueryRow("select count(*) from tick").Scan(&n))
	if _, err := db.Exec("begin immediate"); err != nil {
		return "busy"
	}
	_, err = db.Exec("rollback")
	must(err)
	return "MAY WRITE"
}

// count is a third process: rows and soundness, as text.
func count(path string) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Println(p)
		}
	}()
	s := attach("zombiezen", path, "FULL")
	defer s.close()
	fmt.Printf("%d (%s)\n", s.number("select count(*) from tick not indexed"), map[bool]string{true: "sound", false: "DAMAGED"}[s.problems() == ""])
}
