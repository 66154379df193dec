package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// FuzzWait: a stored wait is read back as it was written, or is an error.
func FuzzWait(f *testing.F) {
	for _, s := range []string{"", "{}", "null", `{"ticket":"0190b7c4-8a2e-7c3d-9f10-2b6c5d4e3f2a","step":"s","node":"n","silence":7,"retryable":true,"until":9}`,
		`{"ticket":7}`, `{"until":1e99}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := readWait(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(w)
		must(t, err)
		if back, err := readWait(text); err != nil || back != w {
			t.Fatalf("%q is %+v, written %s, which is %+v, %v", b, w, text, back, err)
		}
	})
}

// FuzzRecord: any bytes are a damaged record, or values that SQLite would have
// stored: written by its rules they are read as the same.
func FuzzRecord(f *testing.F) {
	f.Add(recordOf([]any{nil, int64(0), int64(1), int64(-1), int64(math.MinInt64), 1.5, "é", []byte{0xff}, ""}))
	f.Add([]byte{3, 10, 11})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		wide := &image{utf16: binary.LittleEndian}
		im := &image{}
		values := im.record(b)
		if (values == nil) != (wide.record(b) == nil) || len(values) > len(b) {
			t.Fatalf("%x: %d values", b, len(values))
		}
		if values == nil {
			return
		}
		size := 0
		for _, v := range values {
			size += len(valueOf(v))
		}
		if size > len(b)+8*len(values) { // numbers are written in full
			t.Fatalf("%x: %d bytes of values", b, size)
		}
		if back := im.record(recordOf(values)); !bytes.Equal(recordOf(back), recordOf(values)) || len(back) != len(values) {
			t.Fatalf("%x is %v, which is read back as %v", b, values, back)
		}
	})
}

// recordOf writes a record as SQLite does, with all integers in 8 bytes.
func recordOf(values []any) []byte {
	var types, body []byte
	for _, v := range values {
		b := valueOf(v)
		body = append(body, b...)
		switch v.(type) {
		case nil:
			types = append(types, 0)
		case int64:
			types = append(types, 6)
		case float64:
			types = append(types, 7)
		case string:
			types = appendVarint(types, uint64(13+2*len(b)))
		case []byte:
			types = appendVarint(types, uint64(12+2*len(b)))
		}
	}
	size := 1
	for len(appendVarint(nil, uint64(size+len(types)))) > size {
		size++
	}
	return append(append(appendVarint(nil, uint64(size+len(types))), types...), body...)
}

func valueOf(v any) []byte {
	switch v := v.(type) {
	case int64:
		return be.AppendUint64(nil, uint64(v))
	case float64:
		return be.AppendUint64(nil, math.Float64bits(v))
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}

func appendVarint(b []byte, v uint64) []byte {
	if v >= 1<<56 {
		panic("no test needs more")
	}
	var groups []byte
	for more := byte(0); len(groups) == 0 || v > 0; more = 0x80 {
		groups = append([]byte{byte(v&0x7f) | more}, groups...)
		v >>= 7
	}
	return append(b, groups...)
}

// FuzzImage: however a file and its log are damaged, a repair comes to an end
// with them, looks at no page twice, and takes no more out of an entry than the
// file holds. The damage is small and the files are not: only it is fuzzed.
func FuzzImage(f *testing.F) {
	db, wal := smallDatabase(f)
	whole := uint16(0xffff)
	f.Add([]byte{}, []byte{}, whole, whole)
	f.Add([]byte{}, []byte{}, uint16(len(db)/2), uint16(len(wal)-100))
	f.Add([]byte{0, 16, 0xff, 0, 0, 0}, []byte{0, 8, 1}, whole, whole)                            // heads
	f.Add([]byte{2, 0, tableInner, 2, 11, 1, 4, 5, 0xff, 6, 3, 0xff}, []byte{}, whole, uint16(0)) // pages
	path := filepath.Join(f.TempDir(), "damaged.db")
	f.Fuzz(func(t *testing.T, inFile, inLog []byte, file, log uint16) {
		spill(t, path, map[string][]byte{"": damaged(db, inFile, file), "-wal": damaged(wal, inLog, log)})
		im, err := openImage(path)
		must(t, err)
		defer func() { must(t, im.close()) }()
		if im.size < 512 || im.size > 65536 || im.usable < 480 || im.usable > im.size {
			t.Fatalf("pages of %d bytes, %d of them usable", im.size, im.usable)
		}
		most := min(im.pages, 200)
		im.freePages()
		for n := range most + 2 {
			for _, index := range []bool{false, true} {
				seen := map[uint32]bool{}
				pages, _ := im.tree(n, seen, index)
				if len(pages) > len(seen) {
					t.Fatalf("page %d leads to %d pages, %d were looked at", n, len(pages), len(seen))
				}
			}
			if kind, ok := im.kind(n); !ok || kind == tableInner {
				continue
			}
			must(t, im.rows(n, func(_ int64, values []any) error {
				size := 0
				for _, v := range values {
					size += len(valueOf(v))
				}
				if size > int(im.pages)*im.size+8*len(values) {
					t.Fatalf("an entry of page %d has %d bytes, the file has %d pages", n, size, im.pages)
				}
				return nil
			}))
			im.sequenceIn(n, im.page(n))
		}
	})
}

// damaged cuts a copy, and writes single bytes into it: two of a place, one of what.
func damaged(b, writes []byte, size uint16) []byte {
	b = slices.Clone(b[:min(int(size), len(b))])
	for ; len(writes) >= 3 && len(b) > 0; writes = writes[3:] {
		b[int(be.Uint16(writes))%len(b)] = writes[2]
	}
	return b
}

// smallDatabase makes one with little pages, of all kinds, half of it in the log.
func smallDatabase(f *testing.F) (db, wal []byte) {
	path := filepath.Join(f.TempDir(), "small.db")
	c, err := zs.OpenConn(path, zs.OpenReadWrite, zs.OpenCreate)
	must(f, err)
	must(f, sqlitex.ExecuteTransient(c, "pragma page_size = 512", nil))
	must(f, sqlitex.ExecuteScript(c, `
		create table t (n integer primary key autoincrement, a text, b blob);
		create table k (a text, b int, primary key (a, b)) without rowid;
		insert into t (a, b) with recursive i(x) as (select 1 union all select x + 1 from i where x < 40)
			select 'row ' || x, zeroblob(x * 40) from i;
		insert into k select a, n from t;
		delete from t where n % 3 = 0;`, nil))
	must(f, sqlitex.ExecuteTransient(c, "pragma journal_mode = wal", nil))
	must(f, sqlitex.ExecuteTransient(c, "update t set a = 'later' where n < 9", nil))
	db, err = os.ReadFile(path)
	must(f, err)
	wal, err = os.ReadFile(path + "-wal")
	must(f, err)
	must(f, c.Close())
	return db, wal
}
