package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/sqlite"
)

// looker reads the file behind the store's back, on a connection of its own.
type looker struct {
	c     *zs.Conn
	stmts map[string]*zs.Stmt
}

// emptyFile is a migrated database without a job.
var emptyFile = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "empty.db")
	st, err := sqlite.Open(path, sqlite.Config{Synchronous: sqlite.Normal, KeepFree: -1})
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		panic(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return b
})

func openLook(path string) *looker {
	c, err := zs.OpenConn("file:"+path, zs.OpenReadWrite|zs.OpenURI)
	if err != nil {
		panic(err)
	}
	return &looker{c, map[string]*zs.Stmt{}}
}

func (l *looker) close() { _ = l.c.Close() }

// rows calls each for every row of a query.
func (l *looker) rows(query string, each func(*zs.Stmt)) {
	s, ok := l.stmts[query]
	if !ok {
		var err error
		if s, err = l.c.Prepare(query); err != nil {
			panic(err)
		}
		l.stmts[query] = s
	}
	for {
		more, err := s.Step()
		if err != nil {
			panic(err)
		}
		if !more {
			break
		}
		each(s)
	}
	if err := s.Reset(); err != nil {
		panic(err)
	}
}

// liveRow and endRow are rows as they must stand in the file.
type liveRow struct {
	n, suspect, lane, ord, due, alarm, deadline, since, worker, until int64
	state                                                             settle.State
	settle.Counters
	key    string
	ticket settle.ID
}

type endRow struct {
	n, at, worker int64
	state         settle.State
	reason        settle.EndReason
	settle.Counters
	note, output  string
	acked, anchor bool // anchor: it holds the gate's
}

func (j *job) liveRow() liveRow {
	r := liveRow{n: j.n, lane: int64(j.lane), ord: j.ord, due: j.due, alarm: j.alarm, deadline: j.deadline, since: j.since,
		worker: j.worker, state: j.state, Counters: j.Counters, key: j.key}
	if j.suspect {
		r.suspect = 1
	}
	r.ticket, r.until = j.wait.Ticket, j.until
	return r
}

func (j *job) endRow() endRow {
	unjudged := j.state == settle.Dead && j.reason != settle.EndRefused && j.reason != settle.EndTerminal
	return endRow{n: j.n, at: j.ended, worker: j.worker, state: j.state, reason: j.reason, Counters: j.Counters,
		note: j.note, output: j.output, acked: j.acked, anchor: j.gated && unjudged}
}

func counters(s *zs.Stmt, i int) settle.Counters {
	at := func(k int) int { return s.ColumnInt(i + k) }
	return settle.Counters{Attempt: at(0), Excused: at(1), Deferred: at(2), Crashed: at(3), Tries: at(4), Redrives: at(5), Base: at(6)}
}

const counterCols = `attempt, excused, deferred, crashed, tries, redrives, base`

func (l *looker) live() (out []liveRow) {
	l.rows(`select n, suspect, lane, ord, due, alarm, deadline, since, worker, state, `+counterCols+`, key, wait from live order by n`, func(s *zs.Stmt) {
		r := liveRow{n: s.ColumnInt64(0), suspect: s.ColumnInt64(1), lane: s.ColumnInt64(2), ord: s.ColumnInt64(3), due: s.ColumnInt64(4),
			alarm: s.ColumnInt64(5), deadline: s.ColumnInt64(6), since: s.ColumnInt64(7), worker: s.ColumnInt64(8),
			state: settle.States[s.ColumnInt(9)], Counters: counters(s, 10), key: s.ColumnText(17)}
		if !s.ColumnIsNull(18) {
			var w struct {
				Ticket settle.ID `json:"ticket"`
				Until  int64     `json:"until"`
			}
			if err := json.Unmarshal([]byte(s.ColumnText(18)), &w); err != nil {
				panic(err)
			}
			r.ticket, r.until = w.Ticket, w.Until
		}
		out = append(out, r)
	})
	return out
}

func (l *looker) ended() (out []endRow) {
	l.rows(`select n, at, worker, state, reason, `+counterCols+`, note, output, acked, stream is not null from ended order by n`, func(s *zs.Stmt) {
		out = append(out, endRow{n: s.ColumnInt64(0), at: s.ColumnInt64(1), worker: s.ColumnInt64(2), state: settle.States[s.ColumnInt(3)],
			reason: settle.EndReason(s.ColumnText(4)), Counters: counters(s, 5), note: s.ColumnText(12), output: s.ColumnText(13),
			acked: s.ColumnInt(14) == 1, anchor: s.ColumnInt(15) == 1})
	})
	return out
}

// bodies lists the rows of accepted jobs.
func (l *looker) bodies() map[int64]settle.ID {
	out := map[int64]settle.ID{}
	l.rows(`select n, id from body`, func(s *zs.Stmt) {
		var id settle.ID
		s.ColumnBytes(1, id[:])
		out[s.ColumnInt64(0)] = id
	})
	return out
}

// sums are how many rows there are, and how many were ever removed.
type sums struct{ bodies, removed, attempts, steps int }

func (l *looker) sums() (out sums) {
	l.rows(`select (select count(*) from body), (select coalesce(sum(n), 0) from tally), (select count(*) from attempt),
		(select count(*) from step)`, func(s *zs.Stmt) {
		out = sums{s.ColumnInt(0), s.ColumnInt(1), s.ColumnInt(2), s.ColumnInt(3)}
	})
	return out
}

// inbox are the answers that are kept, by ticket.
func (l *looker) inbox() map[settle.ID]string {
	out := map[settle.ID]string{}
	l.rows(`select ticket, n, doc from inbox`, func(s *zs.Stmt) {
		var ticket settle.ID
		s.ColumnBytes(0, ticket[:])
		var d settle.Delivered
		if err := json.Unmarshal([]byte(s.ColumnText(2)), &d); err != nil {
			panic(err)
		}
		out[ticket] = earlyLine(s.ColumnInt64(1), d)
	})
	return out
}

func earlyLine(n int64, d settle.Delivered) string { return fmt.Sprintf("row %d %+v", n, d) }

// attempts and steps as text, one line a row.
func (l *looker) attempts() (out []string) {
	l.rows(`select n, k, reason, error, step, ticket, node, worker, at, retryable from attempt order by n, k`, func(s *zs.Stmt) {
		var ticket settle.ID
		s.ColumnBytes(5, ticket[:])
		out = append(out, attemptLine(s.ColumnInt64(0), settle.Attempt{N: s.ColumnInt(1), Reason: settle.AttemptReason(s.ColumnText(2)),
			Error: s.ColumnText(3), Step: s.ColumnText(4), Ticket: ticket, Node: s.ColumnText(6), Worker: s.ColumnInt64(7),
			At: instant(s.ColumnInt64(8)), Retryable: s.ColumnInt(9) == 1}))
	})
	return out
}

func attemptLine(n int64, a settle.Attempt) string {
	return fmt.Sprintf("row %d attempt %d %s %q step %q ticket %s node %q worker %d at %d retryable %v", n, a.N, a.Reason, a.Error, a.Step, a.Ticket,
		a.Node, a.Worker, a.At.UnixMicro(), a.Retryable)
}

func (l *looker) steps() (out []string) {
	l.rows(`select n, name, ticket, node, output from step order by n, name`, func(s *zs.Stmt) {
		var ticket settle.ID
		s.ColumnBytes(2, ticket[:])
		out = append(out, stepLine(s.ColumnInt64(0), settle.StepResult{Step: s.ColumnText(1), Ticket: ticket, Node: s.ColumnText(3), Output: []byte(s.ColumnText(4))}))
	})
	return out
}

func stepLine(n int64, s settle.StepResult) string {
	return fmt.Sprintf("row %d step %s ticket %s node %q output %q", n, s.Step, s.Ticket, s.Node, s.Output)
}

// differ is the first place where two lists differ; "" = nowhere.
func differ[T comparable](got, want []T) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("missing: %+v", want[i])
		case i >= len(want):
			return fmt.Sprintf("not expected: %+v", got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("got %+v, want %+v", got[i], want[i])
		}
	}
	return ""
}

func sorted(s []string) []string { slices.Sort(s); return s }
