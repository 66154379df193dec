package sqlite

import (
	"fmt"
	"slices"
	"strings"
)

// table is one table that is being saved.
type table struct {
	name    string
	cols    []column
	order   []int // of the columns in a record
	alias   int   // the column that is the row id; -1 = none
	rowless bool  // without rowid
	strict  bool
	pages   []uint32 // that hold its rows
	bad     int      // pages that cannot be read
}

type column struct {
	name    string
	kind    string // as declared
	notNull bool
	computed,
	unstored bool
}

// describe reads how the new database lays a table out: the damaged one, made
// by the same statements, does the same.
func describe(c conn, name string) (*table, error) {
	t := &table{name: name, alias: -1}
	if _, err := one(c, `select wr, strict from pragma_table_list where schema = 'main' and name = ?`, func(r row) error {
		t.rowless, t.strict = r.int(0) == 1, r.int(1) == 1
		return nil
	}, name); err != nil {
		return nil, err
	}
	keys := map[int]int{} // column → place in the primary key
	err := c.query(`select name, type, "notnull", pk, hidden from pragma_table_xinfo(?) order by cid`, func(r row) error {
		col := column{name: r.text(0), kind: strings.ToUpper(r.text(1)), notNull: r.int(2) == 1,
			computed: r.int(4) == 2 || r.int(4) == 3, unstored: r.int(4) == 2}
		if pk := int(r.int(3)); pk > 0 {
			keys[len(t.cols)] = pk
		}
		t.cols = append(t.cols, col)
		return nil
	}, name)
	if err != nil {
		return nil, err
	}
	t.lay(keys)
	return t, nil
}

// lay finds the order of the columns in a record.
func (t *table) lay(keys map[int]int) {
	for i, c := range t.cols {
		if !c.unstored {
			t.order = append(t.order, i)
		}
		if _, key := keys[i]; key && len(keys) == 1 && c.kind == "INTEGER" && !t.rowless {
			t.alias = i
		}
	}
	if t.rowless { // the key comes first
		slices.SortStableFunc(t.order, func(a, b int) int {
			ka, kb := keys[a], keys[b]
			if ka == 0 || kb == 0 {
				return kb - ka // a column of the key is above zero, others are not
			}
			return ka - kb
		})
	}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// fits tells a row of this table from one of another, or a damaged one.
func (t *table) fits(values []any) bool {
	if values == nil || len(values) > len(t.order) {
		return false
	}
	for i, v := range values {
		c := t.cols[t.order[i]]
		ok := v != nil || !c.notNull || t.order[i] == t.alias
		switch v.(type) {
		case int64:
			ok = c.kind == "INTEGER" || c.kind == "INT" || c.kind == "REAL" || c.kind == "ANY"
		case float64:
			ok = c.kind == "REAL" || c.kind == "ANY"
		case string:
			ok = c.kind == "TEXT" || c.kind == "ANY"
		case []byte:
			ok = c.kind == "BLOB" || c.kind == "ANY"
		}
		if t.strict && !ok {
			return false
		}
	}
	return true
}

// named is a row by the names of its columns.
type named map[string]any

func (t *table) named(row int64, values []any) named {
	out := named{}
	for i, v := range values {
		out[t.cols[t.order[i]].name] = v
	}
	if t.alias >= 0 {
		out[t.cols[t.alias].name] = row
	} else if !t.rowless {
		out["rowid"] = row
	}
	return out
}

// insert is the statement and its arguments for a row whose record has n values:
// columns that were added after it was written get their defaults.
func (t *table) insert(r named, n int) (string, []any) {
	var names, marks []string
	var args []any
	for _, i := range t.order[:n] {
		if c := t.cols[i]; !c.computed {
			names, marks, args = append(names, quoted(c.name)), append(marks, "?"), append(args, r[c.name])
		}
	}
	if !t.rowless && t.alias < 0 {
		names, marks, args = append(names, "rowid"), append(marks, "?"), append(args, r["rowid"])
	}
	return fmt.Sprintf("insert into %s (%s) values (%s)", quoted(t.name), strings.Join(names, ", "), strings.Join(marks, ", ")), args
}

func (r named) int(col string) int64 {
	n, _ := r[col].(int64)
	return n
}

func (r named) text(col string) string {
	s, _ := r[col].(string)
	return s
}

func (r named) blob(col string) []byte {
	b, _ := r[col].([]byte)
	return b
}
