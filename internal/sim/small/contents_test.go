package small

import (
	"fmt"
	"slices"
	"strings"

	zs "zombiezen.com/go/sqlite"
)

// contents are all rows that a step can change, as text that can be compared
// and written back: table → key → row.
type contents map[string]row

// row is one row with the values as SQL literals.
type row struct {
	table, where string
	cols, values []string
}

// named are a row's values by column.
func (r row) named() map[string]string {
	out := map[string]string{}
	for i, c := range r.cols {
		out[c] = r.values[i]
	}
	return out
}

// tables are read whole; the first columns name a row.
var tables = []struct {
	name string
	keys []string
}{{"live", []string{"n"}}, {"ended", []string{"n"}}, {"attempt", []string{"n", "k"}}, {"step", []string{"n", "name"}}, {"inbox", []string{"ticket"}}}

// disk reads and writes the file behind the store's back.
type disk struct {
	c     *zs.Conn
	stmts map[string]*zs.Stmt
	now   contents // as far as we know
	cols  map[string][]string
}

func openDisk(path string) *disk {
	c, err := zs.OpenConn("file:"+path, zs.OpenReadWrite|zs.OpenURI)
	if err != nil {
		panic(err)
	}
	return &disk{c: c, stmts: map[string]*zs.Stmt{}, cols: map[string][]string{}}
}

func (d *disk) prepare(query string) *zs.Stmt {
	s, ok := d.stmts[query]
	if !ok {
		var err error
		if s, err = d.c.Prepare(query); err != nil {
			panic(err)
		}
		d.stmts[query] = s
	}
	return s
}

// read reads the contents anew.
func (d *disk) read() contents {
	d.now = contents{}
	for _, t := range tables {
		s := d.prepare("select * from " + t.name)
		cols := d.columns(s, t.name)
		for {
			more, err := s.Step()
			if err != nil {
				panic(err)
			}
			if !more {
				break
			}
			r := row{table: t.name, cols: cols}
			for i := range s.ColumnCount() {
				r.values = append(r.values, literal(s, i))
			}
			for i, k := range t.keys {
				r.where += fmt.Sprintf(" and %s = %s", k, r.values[i]) // they are the first columns
			}
			d.now[t.name+r.where] = r
		}
		_ = s.Reset()
	}
	return d.now
}

func (d *disk) columns(s *zs.Stmt, table string) []string {
	if d.cols[table] == nil {
		for i := range s.ColumnCount() {
			d.cols[table] = append(d.cols[table], s.ColumnName(i))
		}
	}
	return d.cols[table]
}

func literal(s *zs.Stmt, i int) string {
	switch s.ColumnType(i) {
	case zs.TypeInteger:
		return fmt.Sprint(s.ColumnInt64(i))
	case zs.TypeNull:
		return "null"
	case zs.TypeText:
		return "'" + strings.ReplaceAll(s.ColumnText(i), "'", "''") + "'"
	}
	b := make([]byte, s.ColumnLen(i))
	s.ColumnBytes(i, b)
	return fmt.Sprintf("x'%x'", b)
}

// restore makes the file hold these contents: only rows that differ are written.
func (d *disk) restore(want contents) {
	var stmts []string
	for k, r := range d.now {
		if w, ok := want[k]; !ok || !slices.Equal(w.values, r.values) {
			stmts = append(stmts, "delete from "+r.table+" where true"+r.where)
		}
	}
	for k, r := range want {
		if w, ok := d.now[k]; !ok || !slices.Equal(w.values, r.values) {
			stmts = append(stmts, "insert into "+r.table+" values ("+strings.Join(r.values, ", ")+")")
		}
	}
	if len(stmts) == 0 {
		return
	}
	slices.Sort(stmts) // deletes first: keys are unique
	d.run("begin immediate")
	for _, s := range stmts {
		d.run(s)
	}
	d.run("commit")
	d.now = want
}

func (d *disk) run(query string) {
	s, _, err := d.c.PrepareTransient(query)
	if err == nil {
		_, err = s.Step()
	}
	if err != nil {
		panic(fmt.Errorf("%s: %w", query, err))
	}
	_ = s.Finalize()
}

// unseen columns tell when and by whom something was recorded: no step depends
// on them, so they tell no states apart.
var unseen = map[string]bool{"ended.at": true, "ended.worker": true, "attempt.at": true, "attempt.worker": true, "step.at": true, "inbox.at": true}

// key is the contents as one text.
func (c contents) key() string {
	lines := make([]string, 0, len(c))
	for k, r := range c {
		line := k + ":"
		for i, v := range r.values {
			if !unseen[r.table+"."+r.cols[i]] {
				line += v + ","
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
