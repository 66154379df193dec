package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	msqlite "modernc.org/sqlite"
)

// ours is a modernc driver of our own: what is registered on it exists on our
// connections only, so a foreign transaction can be told by asking.
var ours = sync.OnceValue(func() *msqlite.Driver {
	d := &msqlite.Driver{}
	must(d.RegisterScalarFunction("settle_ours", 0, func(*msqlite.FunctionContext, []driver.Value) (driver.Value, error) { return int64(1), nil }))
	return d
})

type connector struct{ dsn string }

func (c connector) Connect(context.Context) (driver.Conn, error) { return ours().Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return ours() }

// userTx looks at the caller's own transaction: a *sql.Tx of modernc on the
// file that zombiezen connections hold open in the same process.
func userTx(dir string) {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "modernc.org/sqlite") {
			fmt.Printf("  library in this build: %s %s\n", m.Path, m.Version)
		}
	}
	path := fresh(dir)
	defer os.RemoveAll(filepath.Dir(path))
	s := open("zombiezen", path, "FULL")
	defer s.close()
	dsn := "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=synchronous(full)&_pragma=cache_size(-65536)"
	db := sql.OpenDB(connector{dsn})
	db.SetMaxOpenConns(1)
	defer db.Close()
	recognise(db, path, dsn)
	for _, way := range []string{"no user transaction", "foreign, busy_timeout", "our turn"} {
		sharing(s, db, way)
	}
	alternate(s, db)
}

// recognise asks three kinds of transaction whether they are ours.
func recognise(db *sql.DB, path, dsn string) {
	foreign, err := sql.Open("sqlite", dsn)
	must(err)
	defer foreign.Close()
	other, err := sql.Open("sqlite3", filepath.Join(filepath.Dir(path), "other.db")) // never our file: see locks
	must(err)
	defer other.Close()
	for _, c := range []struct {
		label string
		db    *sql.DB
	}{{"ours", db}, {"modernc, opened by the user", foreign}, {"mattn", other}} {
		tx, err := c.db.Begin()
		must(err)
		var one int
		err = tx.QueryRow("select settle_ours()").Scan(&one)
		fmt.Printf("  is it ours? %-30s %v\n", c.label, map[bool]any{true: "yes", false: err}[err == nil])
		must(tx.Rollback())
	}
}

// sharing lets 50 callers insert through the leader while a user holds a
// transaction of 200 ms, again and again.
func sharing(s *store, db *sql.DB, way string) {
	l := newLeader(s)
	var userWaits []float64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for begun := time.Now(); time.Since(begun) < 4*duration() && way != "no user transaction"; {
			time.Sleep(300 * time.Millisecond)
			at := time.Now()
			if way == "our turn" {
				l.slot <- struct{}{}
			}
			tx, err := db.Begin()
			must(err)
			userWaits = append(userWaits, ms(time.Since(at)))
			insertTx(tx)
			time.Sleep(200 * time.Millisecond)
			must(tx.Commit())
			if way == "our turn" {
				<-l.slot
			}
		}
	}()
	var lat []float64
	for range 4 {
		_, some := group(l, 50)
		lat = append(lat, some...)
	}
	<-done
	waits(way+": insert of 50 callers", lat)
	if len(userWaits) > 0 {
		waits(way+": the user's BEGIN", userWaits)
	}
}

func insertTx(tx *sql.Tx) {
	now := time.Now().UnixMicro()
	_, err := tx.Exec(sqlBody, newID(), now, "default", "video.analyze", "tenant-1", payload)
	must(err)
	_, err = tx.Exec(sqlLive, laneBase, stream, now, now, now+month, now+month, now, int64(10))
	must(err)
}

// alternate shows what each user transaction costs the store: its writer's page
// cache is thrown away whenever another connection has committed.
func alternate(s *store, db *sql.DB) {
	var held []claimed
	t := table{}
	for range *rounds {
		for _, way := range []string{"alone", "alternating"} {
			var own time.Duration
			const n = 50
			for range n {
				if way == "alternating" {
					tx, err := db.Begin()
					must(err)
					insertTx(tx)
					must(tx.Commit())
				}
				at := time.Now()
				s.tx(func() {
					s.settle(held)
					held = s.claim(100, held)
					s.insertN(100)
				})
				own += time.Since(at)
			}
			t.add("tx", way, ms(own)/n)
		}
	}
	fmt.Printf("  store's transaction of 100 after each user transaction: × %.2f of alone (%.2f ms)\n",
		t.ratio("tx", "alternating", "tx", "alone"), t.median("tx", "alone"))
}
