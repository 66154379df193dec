package sqlite

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// object is a row of the schema.
type object struct {
	kind, name, table, sql string
	root                   uint32
}

// survey finds the pages of every table. Where the damaged schema does not name
// one of ours, its root is looked for where a new database has it.
func (s *salvage) survey() error {
	roots, err := s.roots()
	if err != nil {
		return err
	}
	seen := map[uint32]bool{}
	s.schema(seen)
	if err := s.version(); err != nil {
		return err
	}
	for _, o := range s.objects {
		if _, known := roots[o.name]; known && o.kind == "table" {
			roots[o.name] = o.root
		}
	}
	s.tables = map[string]*table{}
	for _, name := range ours {
		t, err := describe(s.to, name)
		if err != nil {
			return err
		}
		// A page in the wrong place can make one tree lead into another: each
		// looks at all its pages, and takes the rows that fit.
		mine := map[uint32]bool{}
		t.pages, t.bad = s.im.tree(roots[name], mine, t.rowless)
		maps.Copy(seen, mine)
		for n := range mine {
			if kind, _ := s.im.kind(n); kind == tableInner && counted[name] {
				s.inner = append(s.inner, n)
			}
		}
		s.tables[name] = t
	}
	for _, o := range s.objects { // other tables, and all indexes: no orphans
		if kind, ok := s.im.kind(o.root); ok && !seen[o.root] {
			s.im.tree(o.root, seen, kind == indexInner || kind == indexLeaf)
		}
	}
	free, whole := s.im.freePages()
	s.stale = !whole
	for n := uint32(2); n <= s.im.pages; n++ {
		if kind, ok := s.im.kind(n); ok && !seen[n] && !free[n] && (kind == tableLeaf || kind == indexLeaf || kind == indexInner) {
			s.orphans = append(s.orphans, n)
		}
	}
	return nil
}

// schema reads what the damaged file says of itself.
func (s *salvage) schema(seen map[uint32]bool) {
	pages, _ := s.im.tree(1, seen, false)
	for _, n := range pages {
		_ = s.im.rows(n, func(_ int64, v []any) error {
			if len(v) < 5 {
				return nil
			}
			root, _ := v[3].(int64)
			o := object{root: uint32(max(0, min(root, math.MaxUint32)))} // also behind the end of a cut file
			o.kind, _ = v[0].(string)
			o.name, _ = v[1].(string)
			o.table, _ = v[2].(string)
			o.sql, _ = v[4].(string)
			s.objects = append(s.objects, o)
			return nil
		})
	}
}

// version refuses what a newer program has written: columns would be lost.
func (s *salvage) version() error {
	newest := int64(SchemaVersion())
	for _, o := range s.objects {
		if o.name != "schema_version" || o.kind != "table" {
			continue
		}
		err := s.values(o.root, func(v []any) error {
			if have, _ := v[1].(int64); len(v) == 3 && have > newest {
				return refusal(s.report.Path, fmt.Sprintf("has schema %d, this program knows %d", have, newest),
					"install a newer settle, then settle repair --db "+word(s.report.Path), nil)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// values calls each for the readable records of at least two values.
func (s *salvage) values(root uint32, each func(v []any) error) error {
	pages, _ := s.im.tree(root, map[uint32]bool{}, false)
	for _, n := range pages {
		if err := s.im.rows(n, func(_ int64, v []any) error {
			if len(v) < 2 {
				return nil
			}
			return each(v)
		}); err != nil {
			return err
		}
	}
	return nil
}

// roots are the roots of our tables in a new database.
func (s *salvage) roots() (map[string]uint32, error) {
	roots := map[string]uint32{}
	err := s.to.query(`select name, rootpage from sqlite_schema where type = 'table'`, func(r row) error {
		switch {
		case slices.Contains(ours, r.text(0)):
			roots[r.text(0)] = uint32(r.int(1))
		case r.text(0) == "sqlite_sequence":
			s.sequenceRoot = uint32(r.int(1))
		}
		return nil
	})
	return roots, err
}
