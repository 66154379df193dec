package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	zs "zombiezen.com/go/sqlite"
)

// inspection is a look at a file that nobody else has open. Until it is closed
// nobody else can have it.
type inspection struct {
	path      string
	c         *zs.Conn // nil = SQLite was not asked. Never closed before the file is moved: it would write the log into it
	raw       *os.File // closed after c: closing a file drops a process's locks on it
	images    []*image // likewise
	faults    []string
	reindexed bool
}

// inspect takes the file for itself and looks for damage. What is wrong with
// indexes alone is put right.
func inspect(ctx context.Context, shown, path string, force bool) (*inspection, error) {
	in := &inspection{path: path}
	if err := in.probe(shown); err != nil {
		return nil, err
	}
	if err := in.first(ctx, shown, force); err != nil {
		return nil, errors.Join(err, in.close())
	}
	if len(in.faults) > 0 {
		return in, nil
	}
	in.release()
	c, err := zs.OpenConn(fileURI(path), zs.OpenReadWrite, zs.OpenURI)
	if err == nil {
		in.c = c
		c.SetBusyTimeout(0)
		c.SetInterrupt(ctx.Done())
		err = in.look(newDirect(c))
		c.SetInterrupt(nil)
	}
	switch {
	case err == nil:
		return in, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case busy(err):
		err = inUse(shown, err)
	case saysDamaged(err):
		in.faults = append(in.faults, err.Error())
		return in, nil
	}
	return nil, errors.Join(refuse(shown, err), in.close())
}

// saysDamaged tells what SQLite says of a damaged file: with a damaged head,
// that it is of an unknown format, or not to be written.
func saysDamaged(err error) bool {
	switch primary(err) {
	case zs.ResultCorrupt, zs.ResultNotADB, zs.ResultIOErr, zs.ResultReadOnly, zs.ResultError:
		return true
	}
	return false
}

var errInUse = errors.New("locked")

func inUse(shown string, err error) error {
	return refusal(shown, "is in use by a process that runs, maybe this one", "end it, then settle repair --db "+word(shown), fmt.Errorf("%w: %w", errInUse, err))
}

// first looks at the file without SQLite: whether it is ours, and for damage
// that SQLite takes for none, and throws away.
func (in *inspection) first(ctx context.Context, shown string, force bool) error {
	im, err := openImage(in.path)
	if err != nil {
		return refuse(shown, err)
	}
	in.images = append(in.images, im)
	lost := emptied(in.path)
	if empty, err := im.db.Stat(); err != nil || empty.Size() == 0 && lost == nil {
		return err // a new database
	}
	if !force {
		said, err := im.whose(ctx, wholeFile)
		if err != nil || said != settles {
			return errors.Join(err, notOurs(shown, said))
		}
	}
	if len(im.behind) > 0 {
		lost = errors.New("the write-ahead log is damaged, and commits follow that cannot be read")
	}
	if lost != nil {
		in.faults = []string{lost.Error()}
	}
	return nil
}

func notOurs(shown string, said whose) error {
	why := "is not a settle database"
	switch said {
	case settles:
		return nil
	case anothers:
		why = "is a database of another program"
	}
	return refusal(shown, why+": nothing in it or in its log is settle's",
		"choose another file with --db (or, if this was one, settle repair --force --db "+word(shown)+" moves it aside and begins an empty one)", nil)
}

// emptied: SQLite throws the log of an empty file away, and with it what may be
// all that is left. The log is asked for first: a new file is never empty once
// it has one.
func emptied(path string) error {
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return nil
	}
	if db, err := os.Stat(path); err == nil && db.Size() == 0 {
		return errors.New("the file is empty, but its write-ahead log is not")
	}
	return nil
}

// close gives the file up. SQLite does not touch a file that was moved meanwhile.
func (in *inspection) close() error {
	var faults []error
	if in.c != nil {
		faults = append(faults, in.c.Close())
	}
	if in.raw != nil {
		faults = append(faults, in.raw.Close())
	}
	for _, im := range in.images {
		faults = append(faults, im.close())
	}
	return errors.Join(faults...)
}

// look checks the file in one transaction that excludes everybody else, also
// readers.
func (in *inspection) look(d direct) (err error) {
	for _, p := range []string{"pragma locking_mode = exclusive", "begin exclusive"} {
		if err := d.query(p, func(row) error { return nil }); err != nil {
			return err
		}
	}
	defer func() {
		if !in.c.AutocommitEnabled() {
			_, end := d.exec("rollback")
			err = errors.Join(err, end)
		}
	}()
	if in.faults, err = faults(d); err != nil || len(in.faults) == 0 {
		return err
	}
	if _, err := d.exec("reindex"); err != nil {
		return nil // it is more than the indexes
	}
	if left, err := faults(d); err != nil || len(left) > 0 {
		return nil
	}
	_, err = d.exec("commit")
	in.reindexed = err == nil
	return err
}

// maxFaults is how many faults are named.
const maxFaults = 100

// faults is what SQLite finds, and then whether our tables fit together.
func faults(d direct) (found []string, err error) {
	err = d.query(fmt.Sprintf("pragma integrity_check(%d)", maxFaults), func(r row) error {
		for s := range strings.Lines(r.text(0)) { // one row can name many
			if s = strings.TrimSpace(s); s != "" && s != "ok" && !strings.HasPrefix(s, "***") && len(found) < maxFaults {
				found = append(found, s)
			}
		}
		return nil
	})
	if err != nil || len(found) > 0 {
		return found, err
	}
	have := map[string]bool{}
	if err := d.query(`select name from sqlite_schema where type = 'table'`, func(r row) error {
		have[r.text(0)] = true
		return nil
	}); err != nil || !have["schema_version"] {
		return nil, err
	}
	for _, name := range ours {
		if !have[name] {
			found = append(found, "table "+name+" is missing")
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	for _, b := range books {
		n, err := number(d, b.query)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			found = append(found, fmt.Sprintf("%d %s", n, b.what))
		}
	}
	return found, nil
}

// books are the sentences by which our tables balance: each must count none.
var books = []struct{ what, query string }{
	{"jobs have no state", `select count(*) from body b where not exists (select 1 from live where n = b.n) and not exists (select 1 from ended where n = b.n)`},
	{"jobs are live and have ended", `select count(*) from live join ended using (n)`},
	{"live rows have no job", `select count(*) from live l where not exists (select 1 from body where n = l.n)`},
	{"ended rows have no job", `select count(*) from ended e where not exists (select 1 from body where n = e.n)`},
	{"jobs are in a queue without a name", `select count(*) from body b where not exists (select 1 from queue where id = b.queue)`},
}
