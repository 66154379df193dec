package sqlite

import (
	"context"

	"github.com/settle-go/settle"
)

const (
	auditPage   = 10_000 // row numbers in one read
	auditNames  = 1000
	writtenOff  = 6 // in tally: jobs that a repair could not save
	overdueLook = settle.SweepInterval + settle.RenewInterval
)

// Audit walks all rows by their numbers, one short read a page, and compares.
func (s *Store) Audit(ctx context.Context, limit int) (settle.Books, error) {
	if limit < 1 {
		limit = auditNames
	}
	a := audit{s: s, limit: limit}
	err := s.read(ctx, "audit", a.begin)
	for at := int64(0); err == nil && at < a.last; at += auditPage {
		err = s.read(ctx, "audit", func(c conn, _ int64) error { return a.page(c, at, min(at+auditPage, a.last)) })
	}
	if err == nil {
		err = s.read(ctx, "audit", a.finish)
	}
	return a.books, err
}

// audit is one Audit under way. What moves meanwhile moves within one
// transaction, so each page is right by itself; jobs that are accepted
// meanwhile have numbers above last.
type audit struct {
	s     *Store
	limit int
	last  int64 // the number of the last job when the audit began
	books settle.Books
}

func (a *audit) begin(c conn, _ int64) (err error) {
	a.last, err = number(c, `select coalesce(max(seq), 0) from sqlite_sequence where name = 'body'`)
	a.books.Accepted = a.last
	return err
}

// page looks at the rows with lo < n <= hi.
func (a *audit) page(c conn, lo, hi int64) error {
	b := &a.books
	for _, q := range []struct {
		into  *int64
		query string
	}{
		{&b.Live, `select count(*) from live where n > ? and n <= ?`},
		{&b.Succeeded, `select count(*) from ended where n > ? and n <= ? and state + 0 = 3`},
		{&b.Dead, `select count(*) from ended where n > ? and n <= ? and state + 0 = 4`},
		{&b.Cancelled, `select count(*) from ended where n > ? and n <= ? and state + 0 = 5`},
		{&b.Strays, `select (select count(*) from live l where n > ?1 and n <= ?2 and not exists (select 1 from body where n = l.n))
			+ (select count(*) from ended e where n > ?1 and n <= ?2 and not exists (select 1 from body where n = e.n))
			+ (select count(*) from attempt a where n > ?1 and n <= ?2 and not exists (select 1 from body where n = a.n))
			+ (select count(*) from step s where n > ?1 and n <= ?2 and not exists (select 1 from body where n = s.n))`},
		{&b.Vanished, `select count(*) from body where n > ? and n <= ?`}, // finish subtracts
	} {
		n, err := number(c, q.query, lo, hi)
		if err != nil {
			return err
		}
		*q.into += n
	}
	if err := a.name(c, &b.Lost, `select id from body b where n > ? and n <= ?
		and not exists (select 1 from live where n = b.n) and not exists (select 1 from ended where n = b.n) order by n limit ?`, lo, hi); err != nil {
		return err
	}
	return a.name(c, &b.Doubled, `select b.id from live l join ended e using (n) join body b using (n) where n > ? and n <= ? order by n limit ?`, lo, hi)
}

func (a *audit) name(c conn, into *[]settle.ID, query string, lo, hi int64) error {
	return c.query(query, func(r row) error {
		if len(*into) == a.limit {
			a.books.More = true
			return errStop
		}
		*into = append(*into, idAt(r, 0))
		return nil
	}, lo, hi, a.limit+1)
}

// finish compares the sums. What is removed while the audit walks may be
// counted both as a row and as removed, never as neither.
func (a *audit) finish(c conn, now int64) (err error) {
	b := &a.books
	if b.Removed, err = number(c, `select coalesce(sum(n), 0) from tally where state < ?`, writtenOff); err != nil {
		return err
	}
	if b.WrittenOff, err = number(c, `select coalesce(sum(n), 0) from tally where state = ?`, writtenOff); err != nil {
		return err
	}
	rows := b.Vanished
	b.Vanished = max(0, b.Accepted-rows-b.Removed-b.WrittenOff)
	return c.query(selectLive+` where l.alarm < ?1 and l.deadline < ?1 order by l.alarm limit ?2`, func(r row) error {
		if len(b.Overdue) == a.limit {
			b.More = true
			return errStop
		}
		j, err := a.s.liveJob(c, r, now)
		b.Overdue = append(b.Overdue, j)
		return err
	}, now-overdueLook.Microseconds(), a.limit+1)
}
