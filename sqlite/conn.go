package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	zs "zombiezen.com/go/sqlite"
)

// conn runs statements. It is the writer's own connection, a reader's, or the
// caller's transaction: the same SQL serves all three.
type conn interface {
	// exec runs a statement that returns no rows.
	exec(query string, args ...any) (result, error)
	// query calls each for every row. Values are only valid during the call.
	query(query string, each func(row) error, args ...any) error
}

type result struct {
	changes int
	id      int64 // last inserted row
}

// row is the current row of a query.
type row interface {
	int(col int) int64
	text(col int) string
	blob(col int) []byte // a copy; nil for NULL
	null(col int) bool
}

// errStop ends a query early without being an error.
var errStop = errors.New("stop")

// one runs a query of at most one row and reports whether there was one.
func one(c conn, query string, each func(row) error, args ...any) (bool, error) {
	found := false
	err := c.query(query, func(r row) error {
		found = true
		if err := each(r); err != nil {
			return err
		}
		return errStop
	}, args...)
	return found, err
}

// number reads a query's first value; zero if there is no row.
func number(c conn, query string, args ...any) (n int64, err error) {
	_, err = one(c, query, func(r row) error { n = r.int(0); return nil }, args...)
	return n, err
}

// ---- our own connections

// direct is a connection of ours, without database/sql in between. It keeps
// every statement and binds all of its parameters anew each time: clearing the
// bindings, as the driver's own cache does, makes SQLite plan some queries
// again at every use.
type direct struct {
	c     *zs.Conn
	stmts map[string]*zs.Stmt
}

func newDirect(c *zs.Conn) direct { return direct{c, map[string]*zs.Stmt{}} }

func (d direct) bind(query string, args []any) (s *zs.Stmt, err error) {
	s, ok := d.stmts[query]
	if !ok {
		if s, err = d.c.Prepare(query); err != nil {
			return nil, err
		}
		d.stmts[query] = s
	}
	for i, a := range args {
		switch v := a.(type) {
		case nil:
			s.BindNull(i + 1)
		case int64:
			s.BindInt64(i+1, v)
		case int:
			s.BindInt64(i+1, int64(v))
		case string:
			s.BindText(i+1, v)
		case bool:
			s.BindBool(i+1, v)
		case float64:
			s.BindFloat(i+1, v)
		case []byte:
			if v == nil {
				s.BindNull(i + 1)
			} else if len(v) == 0 {
				s.BindZeroBlob(i+1, 0)
			} else {
				s.BindBytes(i+1, v)
			}
		default:
			return nil, fmt.Errorf("bind %T: unknown type", a)
		}
	}
	return s, nil
}

func (d direct) exec(query string, args ...any) (result, error) {
	s, err := d.bind(query, args)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = s.Reset() }() // frees its locks; repeats the error of Step
	for {
		if more, err := s.Step(); err != nil {
			return result{}, err
		} else if !more {
			return result{d.c.Changes(), d.c.LastInsertRowID()}, nil
		}
	}
}

func (d direct) query(query string, each func(row) error, args ...any) error {
	s, err := d.bind(query, args)
	if err != nil {
		return err
	}
	defer func() { _ = s.Reset() }()
	for {
		more, err := s.Step()
		if err != nil || !more {
			return err
		}
		if err := each(stmtRow{s}); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
}

type stmtRow struct{ s *zs.Stmt }

func (r stmtRow) int(i int) int64   { return r.s.ColumnInt64(i) }
func (r stmtRow) text(i int) string { return r.s.ColumnText(i) }
func (r stmtRow) null(i int) bool   { return r.s.ColumnIsNull(i) }
func (r stmtRow) blob(i int) []byte {
	if r.s.ColumnIsNull(i) {
		return nil
	}
	b := make([]byte, r.s.ColumnLen(i))
	r.s.ColumnBytes(i, b)
	return b
}

// ---- the caller's transaction

// foreign is the caller's transaction on a connection that shares our copy of
// the SQLite library: the slow lane.
type foreign struct {
	ctx context.Context
	tx  *sql.Tx
}

func (f foreign) exec(query string, args ...any) (result, error) {
	r, err := f.tx.ExecContext(f.ctx, query, args...)
	if err != nil {
		return result{}, err
	}
	n, _ := r.RowsAffected() // this driver knows both
	id, _ := r.LastInsertId()
	return result{int(n), id}, nil
}

func (f foreign) query(query string, each func(row) error, args ...any) (err error) {
	rows, err := f.tx.QueryContext(f.ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil {
		return err
	}
	vals := make(valueRow, len(cols))
	ptrs := make([]any, len(cols))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		if err := each(vals); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

type valueRow []any

func (r valueRow) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r valueRow) text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func (r valueRow) blob(i int) []byte {
	switch v := r[i].(type) {
	case string:
		return []byte(v)
	case []byte:
		return append([]byte{}, v...)
	}
	return nil
}

func (r valueRow) null(i int) bool { return r[i] == nil }
