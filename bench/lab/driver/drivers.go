package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"

	_ "github.com/mattn/go-sqlite3"
	msqlite "modernc.org/sqlite"
	zombie "zombiezen.com/go/sqlite"
)

// drivers compared. The two variations show what database/sql costs on modernc's
// engine, and what fdatasync instead of fsync saves; both switch off with them.
var drivers = []string{"zombiezen", "mattn", "modernc", "modernc-raw", "zombiezen-fds"}

// conn is one connection; stmt a statement prepared once and kept. A row's
// bytes are valid until the next row.
type conn interface {
	Exec(query string) error
	Prepare(query, cols string) stmt // cols: one letter a column, i or b
	Close() error
}
type stmt interface {
	Exec(args ...any) (changed int)
	Query(f func(row), args ...any)
}
type row interface {
	Int(i int) int64
	Bytes(i int) []byte
}

func openConn(name, path string) conn {
	if name == "zombiezen" || name == "zombiezen-fds" {
		_, err := msqlite.Fdatasync(name == "zombiezen-fds") // process-wide: the library is shared
		must(err)
		c, err := zombie.OpenConn(path, zombie.OpenReadWrite, zombie.OpenCreate)
		must(err)
		return zConn{c}
	}
	_, err := msqlite.Fdatasync(false)
	must(err)
	db, err := sql.Open(map[string]string{"mattn": "sqlite3", "modernc": "sqlite", "modernc-raw": "sqlite"}[name], path)
	must(err)
	db.SetMaxOpenConns(1)
	c, err := db.Conn(context.Background())
	must(err)
	if name == "modernc-raw" {
		var raw driver.Conn
		must(c.Raw(func(dc any) error { raw = dc.(driver.Conn); return nil }))
		return rConn{sConn{db, c}, raw}
	}
	return sConn{db, c}
}

// zombiezen: direct typed binds.

type zConn struct{ c *zombie.Conn }

func (z zConn) Close() error { return z.c.Close() }

func (z zConn) Exec(query string) error {
	for len(query) > 0 {
		s, rest, err := z.c.PrepareTransient(query)
		if err != nil {
			return err
		}
		if s == nil || s.BindParamCount() > 0 {
			return fmt.Errorf("exec %q", query)
		}
		for more := true; more && err == nil; {
			more, err = s.Step()
		}
		s.Finalize()
		if err != nil {
			return err
		}
		if query = query[len(query)-rest:]; len(query) < 3 {
			return nil
		}
	}
	return nil
}

func (z zConn) Prepare(query, _ string) stmt {
	s, err := z.c.Prepare(query)
	must(err)
	return zStmt{z.c, s}
}

type zStmt struct {
	c *zombie.Conn
	s *zombie.Stmt
}

func (z zStmt) bind(args []any) {
	for i, a := range args {
		switch v := a.(type) {
		case int64:
			z.s.BindInt64(i+1, v)
		case string:
			z.s.BindText(i+1, v)
		case []byte:
			z.s.BindBytes(i+1, v)
		default:
			panic(fmt.Sprintf("type %T", a))
		}
	}
}

func (z zStmt) Exec(args ...any) int {
	z.Query(func(row) {}, args...)
	return z.c.Changes()
}

func (z zStmt) Query(f func(row), args ...any) {
	z.bind(args)
	for {
		more, err := z.s.Step()
		must(err)
		if !more {
			break
		}
		f(zRow{z.s})
	}
	must(z.s.Reset())
}

type zRow struct{ s *zombie.Stmt }

var scratch [1 << 16]byte // one writer at a time

func (r zRow) Int(i int) int64    { return r.s.ColumnInt64(i) }
func (r zRow) Bytes(i int) []byte { return scratch[:r.s.ColumnBytes(i, scratch[:])] }

// database/sql.

type sConn struct {
	db *sql.DB
	c  *sql.Conn
}

func (s sConn) Close() error { s.c.Close(); return s.db.Close() }

func (s sConn) Exec(query string) error {
	_, err := s.c.ExecContext(context.Background(), query)
	return err
}

func (s sConn) Prepare(query, cols string) stmt {
	p, err := s.c.PrepareContext(context.Background(), query)
	must(err)
	r := &sRow{ints: make([]int64, len(cols)), bytes: make([]sql.RawBytes, len(cols))}
	for i, c := range cols {
		if c == 'i' {
			r.dest = append(r.dest, &r.ints[i])
		} else {
			r.dest = append(r.dest, &r.bytes[i])
		}
	}
	return sStmt{p, r}
}

type sStmt struct {
	s *sql.Stmt
	r *sRow
}

type sRow struct {
	ints  []int64
	bytes []sql.RawBytes
	dest  []any
}

func (r *sRow) Int(i int) int64    { return r.ints[i] }
func (r *sRow) Bytes(i int) []byte { return r.bytes[i] }

func (s sStmt) Exec(args ...any) int {
	res, err := s.s.ExecContext(context.Background(), args...)
	must(err)
	n, err := res.RowsAffected()
	must(err)
	return int(n)
}

func (s sStmt) Query(f func(row), args ...any) {
	rows, err := s.s.QueryContext(context.Background(), args...)
	must(err)
	defer rows.Close()
	for rows.Next() {
		must(rows.Scan(s.r.dest...))
		f(s.r)
	}
	must(rows.Err())
}

// modernc without database/sql: its driver.Stmt called directly.

type rConn struct {
	sConn
	raw driver.Conn
}

func (r rConn) Prepare(query, cols string) stmt {
	s, err := r.raw.(driver.ConnPrepareContext).PrepareContext(context.Background(), query)
	must(err)
	return &rStmt{s: s, vals: make([]driver.Value, len(cols))}
}

type rStmt struct {
	s    driver.Stmt
	args []driver.NamedValue
	vals []driver.Value
}

func (r *rStmt) bind(args []any) []driver.NamedValue {
	r.args = r.args[:0]
	for i, a := range args {
		r.args = append(r.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return r.args
}

func (r *rStmt) Exec(args ...any) int {
	res, err := r.s.(driver.StmtExecContext).ExecContext(context.Background(), r.bind(args))
	must(err)
	n, err := res.RowsAffected()
	must(err)
	return int(n)
}

func (r *rStmt) Query(f func(row), args ...any) {
	rows, err := r.s.(driver.StmtQueryContext).QueryContext(context.Background(), r.bind(args))
	must(err)
	defer rows.Close()
	for {
		switch err := rows.Next(r.vals); err {
		case nil:
			f(r)
		case io.EOF:
			return
		default:
			must(err)
		}
	}
}

func (r *rStmt) Int(i int) int64 { return r.vals[i].(int64) }
func (r *rStmt) Bytes(i int) []byte {
	if s, ok := r.vals[i].(string); ok {
		return []byte(s)
	}
	return r.vals[i].([]byte)
}
