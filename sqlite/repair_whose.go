package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/settle-go/settle"
)

// whose tells whose a file is, by what it shows. A name on a command line may
// be wrong: what is not ours is never moved, and no advice is given to do so.
type whose int

const (
	nobodys  whose = iota // no database at all
	anothers              // it has SQLite's head, and nothing of ours
	settles               // it is ours, or was
)

// wholeFile looks at all pages; firstPages at those where our schema is made,
// which is enough for an advice.
const (
	wholeFile  = int64(1) << 62
	firstPages = int64(64) << 20
)

const magic = "SQLite format 3\x00"

// whose looks for what no other file has: our mark in SQLite's head; a table of
// our schema; a whole row of body. One of them, in its place in a page, is
// enough. Text alone is not: a copy of the schema stands in
// our own program, and in archives.
func (im *image) whose(ctx context.Context, most int64) (whose, error) {
	said := nobodys
	head := make([]byte, 100)
	heads := []func() error{func() error { _, err := im.db.ReadAt(head, 0); return err }}
	if at, ok := im.inLog[1]; ok {
		heads = append(heads, func() error { _, err := im.wal.ReadAt(head, at); return err })
	}
	for _, read := range heads {
		if read() != nil || string(head[:16]) != magic {
			continue
		}
		if said = anothers; be.Uint32(head[68:]) == applicationID {
			return settles, nil
		}
	}
	schema, err := schemaText()
	if err != nil {
		return said, err
	}
	for n := uint32(1); n <= im.pages && int64(n-1)*int64(im.size) < most; n++ {
		if p := im.page(n); p != nil && im.ourPage(n, p, schema) {
			return settles, nil
		}
		if n%1000 == 0 && ctx.Err() != nil {
			return said, context.Cause(ctx)
		}
	}
	if im.ourLog(most, schema) || said == anothers && im.blank() {
		return settles, nil
	}
	return said, nil
}

// blank tells a database in which nobody has made a table yet: all that there
// is of one of ours before its log is written into it.
func (im *image) blank() bool {
	p := im.page(1)
	return im.pages == 1 && p != nil && p[start(1)] == tableLeaf && be.Uint16(p[start(1)+3:]) == 0
}

// ourLog looks at all of the log, whatever its check sums say.
func (im *image) ourLog(most int64, schema string) bool {
	if im.wal == nil {
		return false
	}
	frame := make([]byte, 24+im.size)
	for at := int64(32); at < most; at += int64(len(frame)) {
		if _, err := im.wal.ReadAt(frame, at); err != nil {
			return false
		}
		if im.ourPage(be.Uint32(frame), frame[24:], schema) {
			return true
		}
	}
	return false
}

func (im *image) ourPage(n uint32, p []byte, schema string) (found bool) {
	if !wellFormed(p, start(n)) {
		return false
	}
	_ = im.rowsIn(n, p, func(_ int64, v []any) error {
		if found = ourObject(v, schema) || ourJob(v); found {
			return errStop
		}
		return nil
	})
	return found
}

// wellFormed tells a leaf of a table from bytes that look like one: in an
// archive our pages stand too, a little out of their place.
func wellFormed(p []byte, head int) bool {
	cells, content := int(be.Uint16(p[head+3:])), int(be.Uint16(p[head+5:]))
	first := head + 8 // of the pointers to cells
	if p[head] != tableLeaf || p[head+7] > 60 || cells == 0 || first+2*cells > content || content > len(p) {
		return false
	}
	for i := range cells {
		if at := int(be.Uint16(p[first+2*i:])); at < content || at > len(p)-4 {
			return false
		}
	}
	return true
}

// schemaText is all statements that make our tables.
func schemaText() (string, error) {
	all, err := allMigrations()
	var b strings.Builder
	for _, m := range all {
		b.WriteString(m.sql)
	}
	return b.String(), err
}

// ourObject tells a row of the schema that one of our migrations has made:
// SQLite keeps the text from the name on as it was.
func ourObject(v []any, schema string) bool {
	if len(v) != 5 {
		return false
	}
	name, _ := v[1].(string)
	sql, _ := v[4].(string)
	at := strings.Index(sql, name+" ")
	if name == "" || at < 0 || len(sql)-at < 30 {
		return false
	}
	return strings.Contains(schema, sql[at:min(len(sql), at+60)])
}

// ourJob tells a row of body: its id, times, names and policy must all be right.
func ourJob(v []any) bool {
	if len(v) < 10 || v[0] != nil {
		return false
	}
	id, _ := v[1].([]byte)
	at, _ := v[2].(int64)
	queue, _ := v[3].(int64)
	kind, _ := v[4].(string)
	tenant, ok := v[5].(string)
	stored, _ := v[7].([]byte)
	_, input := v[9].([]byte)
	when := fromMicro(at)
	if len(id) != 16 || !ok || !input || queue < 1 || queue > maxQueue ||
		when.Before(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) || when.Year() > 2200 {
		return false
	}
	n := settle.New{Kind: kind}
	n.Tenant = tenant
	_, _, err := n.Prepare(when)
	var p settle.Policy
	return err == nil && p.UnmarshalBinary(stored) == nil
}

// whoseFile looks at a file that could not be opened. One that somebody has
// open is taken for ours: closing it here could drop this process's locks.
func whoseFile(path string) whose {
	in := &inspection{path: path}
	if in.known() || errors.Is(in.probe(path), errInUse) {
		return settles
	}
	said := nobodys
	im, err := openImage(path)
	if err == nil {
		said, err = im.whose(context.Background(), firstPages)
		_ = im.close() // first: the locks of in keep everybody else out meanwhile
	}
	if _ = in.close(); err != nil {
		return settles // nothing is known: repair looks again
	}
	return said
}
