package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// ours are the tables that are saved by rules of their own, in this order: a
// job's payload before its state, history before what is made of lost states.
var ours = []string{"queue", "body", "ended", "live", "attempt", "step", "inbox", "hold", "tally"}

// fleeting are tables of ours whose rows pass by themselves within a minute:
// the new file has them empty.
var fleeting = []string{"node"}

// salvage carries what is readable of an image into a new database.
type salvage struct {
	im      *image
	to      direct
	now     int64
	tables  map[string]*table
	orphans []uint32 // pages with rows to which no readable page leads
	strays  int64    // payloads whose number is damaged
	stale   bool     // among them may be old pages that had been given back
	inner   []uint32 // pages that lead to rows of jobs
	numbers
	queues map[int64]bool
	report *Report
	// sequenceRoot is where a new database has the last number of a job.
	sequenceRoot uint32
	objects      []object // of the damaged schema, as far as it can be read
}

// save fills the new database.
func (s *salvage) save(ctx context.Context) error {
	if err := s.survey(); err != nil {
		return err
	}
	s.count()
	for _, name := range ours {
		if err := s.table(ctx, s.tables[name]); err != nil {
			return fmt.Errorf("save %s: %w", name, err)
		}
	}
	for _, step := range []func(context.Context) error{s.close, s.stateless, s.others} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// perCommit is how many pages of rows one transaction saves.
const perCommit = 200

// table saves one of our tables: first the pages that belong to it, then those
// that nothing leads to any more.
func (s *salvage) table(ctx context.Context, t *table) error {
	count := Saved{Table: t.name, Pages: t.bad}
	err := s.pages(ctx, t.pages, true, func(row int64, values []any) error {
		if row = s.given(t, row); row == damagedNumber || !t.fits(values) {
			s.seen(t, row)
			count.Damaged++
			return nil
		}
		return s.keep(t, t.named(row, values), len(values), &count, false)
	})
	_, ourOwn := menders[t.name]
	if err == nil && ourOwn && !(t.name == "live" && s.stale) { // a stale row would run again
		found := count.Kept
		err = s.pages(ctx, s.orphans, false, func(row int64, values []any) error {
			if row = s.given(t, row); row == damagedNumber || !t.fits(values) || len(values) != len(t.order) || t.rowless != (row == 0) {
				return nil
			}
			return s.keep(t, t.named(row, values), len(values), &count, true)
		})
		if t.name == "body" && s.stale {
			s.report.Stale = count.Kept - found
		}
	}
	s.report.Tables = append(s.report.Tables, count)
	return err
}

// pages calls each for the rows of pages, some of them in one transaction, and
// last for those whose number is doubtful: if it is theirs, it is still free.
// inOrder: the pages follow each other in their tree.
func (s *salvage) pages(ctx context.Context, pages []uint32, inOrder bool, each func(int64, []any) error) error {
	var later []func() error
	for at := 0; at < len(pages); at += perCommit {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := s.together(func() error {
			for i := at; i < min(at+perCommit, len(pages)); i++ {
				doubts, err := s.page(pages, i, inOrder, each)
				if err != nil {
					return err
				}
				later = append(later, doubts...)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return s.together(func() error {
		for _, row := range later {
			if err := row(); err != nil {
				return err
			}
		}
		return nil
	})
}

// page calls each for the rows of one page, those whose number is doubtful are
// returned.
func (s *salvage) page(pages []uint32, i int, inOrder bool, each func(int64, []any) error) (later []func() error, err error) {
	var before, behind uint32
	if inOrder && i > 0 {
		before = pages[i-1]
	}
	if inOrder && i+1 < len(pages) {
		behind = pages[i+1]
	}
	places, at := s.im.places(pages[i], before, behind), 0
	err = s.im.rows(pages[i], func(row int64, values []any) error {
		at++
		switch places[at-1] {
		case doubtful:
			later = append(later, func() error { return each(row, values) })
			return nil
		case misfit:
			row = damagedNumber
		}
		return each(row, values)
	})
	return later, err
}

// damagedNumber stands for the number of a row that is certainly damaged.
const damagedNumber = -1

// given is the number under which a row is saved. A payload whose own is damaged
// gets one that no job has: it is a job without a state then (see renumber).
func (s *salvage) given(t *table, row int64) int64 {
	if row != damagedNumber || t.name != "body" {
		return row
	}
	s.strays++
	return maxJob - s.strays
}

func (s *salvage) together(fn func() error) error {
	if _, err := s.to.exec("begin immediate"); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err // the new database is thrown away
	}
	_, err := s.to.exec("commit")
	return err
}

// keep stores one row, if it makes sense.
func (s *salvage) keep(t *table, r named, n int, count *Saved, orphan bool) error {
	say := good
	if mend, ok := menders[t.name]; ok {
		var err error
		if say, err = mend(s, r, orphan); err != nil {
			return err
		}
	}
	s.seen(t, r.int("n"))
	if say == good {
		query, args := t.insert(r, n)
		_, err := s.to.exec(query, args...)
		switch zs.ErrCode(err).ToPrimary() {
		case zs.ResultOK:
		case zs.ResultConstraint, zs.ResultMismatch, zs.ResultTooBig:
			say = bad // it is there already, or its values are damaged
		default:
			return err
		}
	}
	switch {
	case say == good:
		count.Kept++
	case say == bad && !orphan: // orphans are old copies more often than not
		count.Damaged++
	}
	return nil
}

// lostState is what a person reads of a job whose state could not be saved.
const lostState = "its state was lost in a damaged file (settle repair): it may have run; redrive it or drop it"

// stateless stores jobs that have a payload and no state as dead: nothing vanishes.
func (s *salvage) stateless(ctx context.Context) error {
	for {
		var rows []int64
		if err := s.to.query(`select n from body b where not exists (select 1 from live where n = b.n)
			and not exists (select 1 from ended where n = b.n) limit 1000`,
			func(r row) error { rows = append(rows, r.int(0)); return nil }); err != nil || len(rows) == 0 {
			return err
		}
		if err := s.together(func() error {
			for _, n := range rows {
				if err := s.bury(n); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		s.report.Stateless += len(rows)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// bury ends one job as dead after its last known attempt.
func (s *salvage) bury(n int64) error {
	last, err := number(s.to, `select coalesce(max(k), 0) from attempt where n = ?`, n)
	if err != nil {
		return err
	}
	if _, err := s.to.exec(`insert into ended (n, at, state, reason, since, attempt, excused, deferred, crashed, tries, redrives, base, worker, stream, lane)
		select n, ?, 4, ?, at, ?, 0, 0, 0, ?, 0, 0, 0, null, null from body where n = ?`,
		s.now, string(settle.EndTerminal), last+1, last+1, n); err != nil {
		return err
	}
	if j, err := s.job(n); err != nil {
		return err
	} else if j.gated { // no verdict of the far end is known: it counts for the gate
		if _, err := s.to.exec(`update ended set stream = ?, lane = ? where n = ?`, j.stream, j.lane, n); err != nil {
			return err
		}
	}
	_, err = s.to.exec(`insert into attempt (n, k, reason, error, worker, at) values (?, ?, ?, ?, 0, ?)`,
		n, last+1, string(settle.AttemptError), lostState, s.now)
	return err
}

// others copies tables that a program keeps beside ours.
func (s *salvage) others(ctx context.Context) error {
	var later []string // indexes, views and triggers: once the rows are there
	for _, o := range s.objects {
		switch {
		case o.sql == "" || slices.Contains(ours, o.table) || slices.Contains(fleeting, o.table) || o.name == "schema_version" || strings.HasPrefix(o.name, "sqlite_"):
		case o.kind == "table" && o.root > 0:
			if err := s.other(ctx, o); err != nil {
				return fmt.Errorf("save %s: %w", o.name, err)
			}
		default:
			later = append(later, o.sql)
		}
	}
	for _, sql := range later {
		s.make(sql)
	}
	return nil
}

// make runs a statement of the damaged schema.
func (s *salvage) make(sql string) bool {
	_, err := s.to.exec(sql)
	if err != nil {
		first, _, _ := strings.Cut(sql, "\n")
		s.report.Undone = append(s.report.Undone, fmt.Sprintf("%.80s: %v", first, err))
	}
	return err == nil
}

func (s *salvage) other(ctx context.Context, o object) error {
	if !s.make(o.sql) {
		return nil
	}
	t, err := describe(s.to, o.name)
	if err != nil {
		return err
	}
	t.pages, t.bad = s.im.tree(o.root, map[uint32]bool{}, t.rowless)
	return s.table(ctx, t)
}
