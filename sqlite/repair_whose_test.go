package sqlite

import (
	"archive/tar"
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

func TestWhoseAFileIs(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 300, 11)
	rng := rand.New(rand.NewPCG(5, 5))
	ruin := func(b []byte, from, to int) []byte {
		b = bytes.Clone(b)
		for i := from; i < to; i++ {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	own, err := os.ReadFile(os.Args[0]) // in which our schema stands as text
	must(t, err)
	text, err := schemaText()
	must(t, err)
	empty := slurp(t, newBlank(t))[""]
	for name, c := range map[string]struct {
		files map[string][]byte
		want  whose
	}{
		"ours":                    {map[string][]byte{"": s.closed[""]}, settles},
		"head lost":               {map[string][]byte{"": ruin(s.closed[""], 0, 100)}, settles},
		"first page lost":         {map[string][]byte{"": ruin(s.closed[""], 0, page)}, settles},
		"schema lost, jobs there": {map[string][]byte{"": ruinSchema(t, s.closed[""])}, settles},
		"head alone":              {map[string][]byte{"": s.closed[""][:100]}, settles},
		"empty, log ours":         {map[string][]byte{"": nil, "-wal": s.open["-wal"]}, settles},
		"empty, log's head lost":  {map[string][]byte{"": nil, "-wal": ruin(s.open["-wal"], 0, 32)}, settles},
		"rubbish, log ours":       {map[string][]byte{"": []byte("rubbish"), "-wal": s.open["-wal"]}, settles},
		"without a table":         {map[string][]byte{"": empty}, settles},
		"text":                    {map[string][]byte{"": []byte(strings.Repeat("hello\n", 9999))}, nobodys},
		"our schema as text":      {map[string][]byte{"": []byte(text)}, nobodys},
		"our program":             {map[string][]byte{"": own[:min(len(own), 64<<20)]}, nobodys},
		"an archive of ours":      {map[string][]byte{"": archive(t, s.closed[""])}, nobodys},
		"another's":               {map[string][]byte{"": theirs(t)}, anothers},
		"another's, damaged":      {map[string][]byte{"": ruin(theirs(t), 100, page)}, anothers},
		"all of it lost":          {map[string][]byte{"": ruin(s.closed[""], 0, len(s.closed[""]))}, nobodys},
	} {
		path := newPath(t)
		spill(t, path, c.files)
		check(t, whoseFile(path) == c.want, "%s: got %d, want %d", name, whoseFile(path), c.want)
		for suffix, b := range c.files {
			check(t, bytes.Equal(slurp(t, path)[suffix], b), "%s: looking changes nothing", name)
		}
		_, err := Repair(t.Context(), path)
		var r *settle.RefusedError
		check(t, (c.want == settles) == (err == nil) && (err == nil || errors.As(err, &r)), "%s: a repair agrees: %v", name, err)
	}
}

// newBlank is a database without a table.
func newBlank(t *testing.T) string {
	path := newPath(t)
	c, err := zs.OpenConn(path, zs.OpenReadWrite|zs.OpenCreate)
	must(t, err)
	must(t, newDirect(c).query(`pragma journal_mode = wal`, func(row) error { return nil }))
	must(t, c.Close())
	return path
}

// theirs is a database of another program, whose tables have our names.
func theirs(t *testing.T) []byte {
	path := newBlank(t)
	d := rawConn(t, path)
	for _, q := range []string{`create table body (n integer primary key, id blob)`, `create table live (n integer)`, `insert into body values (1, zeroblob(16))`} {
		_, err := d.exec(q)
		must(t, err)
	}
	must(t, d.c.Close())
	return slurp(t, path)[""]
}

func archive(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	must(t, w.WriteHeader(&tar.Header{Name: "settle.db", Size: int64(len(b)), Mode: 0o600}))
	_, err := w.Write(b)
	must(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

// ruinSchema wipes the first page and all pages of the schema.
func ruinSchema(t *testing.T, b []byte) []byte {
	path := newPath(t)
	must(t, os.WriteFile(path, b, 0o600))
	im, err := openImage(path)
	must(t, err)
	seen := map[uint32]bool{}
	im.tree(1, seen, false)
	must(t, im.close())
	b = bytes.Clone(b)
	for n := range seen {
		copy(b[(n-1)*page:int64(n)*page], make([]byte, page))
	}
	check(t, len(seen) > 1 && !bytes.Contains(b, []byte("CREATE TABLE body")), "no text of the schema is left")
	return b
}

// TestOpeningNeverThrowsALogAway: SQLite deletes the log of an empty file.
func TestOpeningNeverThrowsALogAway(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 100, 12)
	path := newPath(t)
	spill(t, path, map[string][]byte{"": nil, "-wal": s.open["-wal"]})
	_, err := Open(path)
	var r *settle.RefusedError
	check(t, errors.As(err, &r) && strings.Contains(r.Recover, "settle repair"), "it is refused, and the command named: %v", err)
	check(t, bytes.Equal(slurp(t, path)["-wal"], s.open["-wal"]), "the log is as it was")
	_, err = Repair(t.Context(), path)
	must(t, err)
	check(t, count(t, openAt(t, path)) == len(s.jobs), "every job is saved from it")

	path = newPath(t)
	spill(t, path, map[string][]byte{"": nil, "-wal": []byte("notes of another program")})
	_, err = Open(path)
	check(t, errors.As(err, &r) && !strings.Contains(r.Recover, "repair"), "another's is not touched either: %v", err)
	_, err = Repair(t.Context(), path)
	check(t, errors.As(err, &r) && string(slurp(t, path)["-wal"]) == "notes of another program", "nor by a repair: %v", err)

	path = newPath(t)
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.WriteFile(path+"-wal", nil, 0o600))
	insert(t, openAt(t, path), task()) // an empty file is a new database
}

func TestLookingAtAFileInUseDropsNoLocks(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	insert(t, st, task())
	for range 3 {
		check(t, whoseFile(st.Path()) == settles, "what is in use is taken for ours")
	}
	_, err := Repair(t.Context(), st.Path())
	isErr(t, err, errInUse)
	check(t, len(take(t, st, 1)) == 1, "the store goes on")
}
