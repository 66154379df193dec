package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	lanes    = 10
	laneBase = int64(1) << 40 // lanes are hashes: never 0 or 1, which would expire statements (see lookups)
	stream   = int64(77)
	worker   = int64(4711)
	hour     = int64(3600e6)
	month    = 30 * 24 * hour
	leaseFor = int64(30e6)
)

var payload = make([]byte, 200)

func init() {
	for i := range payload {
		payload[i] = byte(' ' + i%90)
	}
}

// store is the miniature of the embedded store: one connection, the hot
// statements prepared once. It is used by one goroutine at a time.
type store struct {
	conn                         conn
	begin, commit                stmt
	body, live, turn, take, read stmt
	end, done                    stmt
}

// claimed is a job in the hands of a worker: row id and fence.
type claimed struct{ n, attempt int64 }

// open makes or opens a database with one driver. sync is FULL or NORMAL.
func open(driver, path, sync string) *store {
	s := attach(driver, path, sync)
	must(s.conn.Exec(schema))
	s.prepare()
	return s
}

// attach opens an existing file and leaves the statements unprepared.
func attach(driver, path, sync string) *store {
	s := &store{conn: openConn(driver, path)}
	for _, p := range []string{"busy_timeout=10000", "journal_mode=wal", "synchronous=" + sync, "cache_size=-65536",
		"wal_autocheckpoint=4000", "temp_store=memory"} {
		must(s.conn.Exec("pragma " + p))
	}
	return s
}

func (s *store) prepare() {
	p := s.conn.Prepare
	s.begin, s.commit = p("begin immediate", ""), p("commit", "")
	s.body, s.live = p(sqlBody, ""), p(sqlLive, "")
	s.turn, s.take, s.read = p(sqlTurn, "i"), p(sqlTake, "i"), p(sqlRead, "bbb")
	s.end, s.done = p(sqlEnd, ""), p(sqlDone, "")
}

func (s *store) close() { must(s.conn.Close()) }

// tx runs f in one transaction.
func (s *store) tx(f func()) {
	s.begin.Exec()
	f()
	s.commit.Exec()
}

var idCount atomic.Uint64

// newID is shaped like a UUIDv7: time first, then randomness.
func newID() []byte {
	b := make([]byte, 16)
	binary.BigEndian.PutUint64(b, uint64(time.Now().UnixMilli())<<16|idCount.Add(1)&0xffff)
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	return b
}

func (s *store) insert(id []byte, lane int64) {
	now := time.Now().UnixMicro()
	s.body.Exec(id, now, "default", "video.analyze", "tenant-1", payload)
	s.live.Exec(laneBase+lane, stream, now, now, now+month, now+month, now, int64(10))
}

func (s *store) insertN(n int) {
	for i := range n {
		s.insert(newID(), int64(i%lanes))
	}
}

// claim takes up to n jobs, the lanes in turn, and reads their payloads.
func (s *store) claim(n int, out []claimed) []claimed {
	now := time.Now().UnixMicro()
	out = out[:0]
	for lane := range lanes {
		s.turn.Query(func(r row) { out = append(out, claimed{n: r.Int(0)}) }, laneBase+int64(lane), now, now, int64(max(1, n/lanes)))
	}
	for i := range out {
		s.take.Query(func(r row) { out[i].attempt = r.Int(0) }, now+leaseFor, worker, out[i].n)
		s.read.Query(func(r row) {
			if len(r.Bytes(2)) != len(payload) {
				panic("payload")
			}
		}, out[i].n)
	}
	return out
}

// settle ends jobs with OK. A stale one is an error here: nobody else settles.
func (s *store) settle(jobs []claimed) {
	now := time.Now().UnixMicro()
	for _, j := range jobs {
		if s.end.Exec(j.n, j.attempt) != 1 {
			panic("stale")
		}
		s.done.Exec(j.n, now, j.attempt, worker, payload[:20])
	}
}

// number answers a query for one integer.
func (s *store) number(query string) (v int64) {
	s.conn.Prepare(query, "i").Query(func(r row) { v = r.Int(0) })
	return v
}

// problems is empty when the file is sound and its books balance: each body
// row is either live or ended, and neither has an orphan.
func (s *store) problems() string {
	check := ""
	s.conn.Prepare("pragma integrity_check", "b").Query(func(r row) { check += string(r.Bytes(0)) })
	if check != "ok" {
		return check
	}
	lost := s.number(`select count(*) from body b where (select count(*) from live where n=b.n)+(select count(*) from ended where n=b.n)<>1`)
	orphans := s.number(`select (select count(*) from live where n not in (select n from body))+(select count(*) from ended where n not in (select n from body))`)
	if lost+orphans > 0 {
		return fmt.Sprintf("%d lost, %d orphans", lost, orphans)
	}
	return ""
}
