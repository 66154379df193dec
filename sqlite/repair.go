package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Report is what a repair found and did.
type Report struct {
	Path string
	// Sound: no row is damaged, and the file stands where it stood.
	Sound bool
	// Reindexed: indexes were damaged, and have been made anew in place.
	Reindexed bool
	// Moved is where the damaged file is now, its log beside it.
	Moved string
	// Problems are the first faults that were found, for people.
	Problems []string
	// Tables counts the rows that were saved.
	Tables []Saved
	// Lost jobs had a number, are not saved and were not removed before. The
	// books of the new file count them as written off.
	Lost int64
	// EndUnknown: the last job number could not be read. Nothing is known of
	// jobs stored after number Highest, and Lost is the least that it can be.
	EndUnknown bool
	Highest    int64
	// RemovedUnknown: how many jobs were removed before could not be read in
	// full, so some of those may be counted as Lost.
	RemovedUnknown bool
	// Stale jobs were found in pages that may be old: they may have been removed
	// before. Lost is then the least that it can be.
	Stale int
	// Stateless jobs had a payload and no readable state any more: they are
	// dead now, so that a person can redrive or drop them.
	Stateless int
	// Bodiless rows are states of which the payload could not be read: what is
	// left of jobs that are Lost.
	Bodiless int
	// Queues lost their names and got new ones; Policies are jobs whose policy
	// was lost and is now the default.
	Queues, Policies int
	// Undone is what else did not succeed: tables or indexes of a program in
	// the file that could not be made again, the owner of the file.
	Undone []string
}

// Saved counts the rows of one table.
type Saved struct {
	Table string
	Kept  int
	// Damaged rows could be seen and not be saved, or stood there twice; what
	// stood in the unreadable Pages cannot be counted.
	Damaged, Pages int
}

// RepairOpts are what a person can insist on.
type RepairOpts struct {
	// Force repairs a file even if nothing in it shows that it was a database
	// of settle's: it is moved aside, and an empty database takes its place.
	// Default: such a file is refused and not touched.
	Force bool
}

// Repair checks a database file that nobody has open. A sound one is left
// alone; damaged indexes are made anew. Otherwise every row that can be read is
// written to a new database, which takes the file's place; the damaged file is
// kept, unchanged, as Report.Moved. Jobs whose state was lost become dead ones.
//
// It is safe to end it at any time and to start it again. Errors: a
// [settle.RefusedError] if the file is in use, is missing, may not be written or
// is not settle's. At most one RepairOpts.
func Repair(ctx context.Context, path string, opts ...RepairOpts) (r Report, err error) {
	r.Path = path
	if len(opts) > 1 {
		return r, errors.New("repair: want at most one RepairOpts")
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		err = checkFile(path, abs, true)
	}
	if err != nil {
		return r, err
	}
	abs = followed(abs)
	in, err := inspect(ctx, path, abs, len(opts) == 1 && opts[0].Force)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	r.Problems, r.Reindexed = in.faults, in.reindexed
	if r.Sound = r.Reindexed || len(in.faults) == 0; r.Sound {
		return r, nil
	}
	im, err := openImage(abs)
	if err != nil {
		return r, fmt.Errorf("repair %s: %w", path, err)
	}
	in.images = append(in.images, im)
	fresh := abs + ".repairing"
	if err := rebuild(ctx, im, fresh, &r); err != nil {
		return r, errors.Join(fmt.Errorf("repair %s: %w", path, err), removeAll(fresh))
	}
	if info, err := os.Stat(abs); err == nil {
		if err := likeOld(fresh, info); err != nil {
			r.Undone = append(r.Undone, err.Error())
		}
	}
	if r.Moved, err = swap(abs, fresh, time.Now().UTC()); err != nil {
		return r, fmt.Errorf("repair %s: %w", path, err)
	}
	return r, nil
}

// rebuild writes what is readable of the image to a new database.
func rebuild(ctx context.Context, im *image, fresh string, r *Report) (err error) {
	if err := removeAll(fresh); err != nil { // of a repair that was ended
		return err
	}
	if err := private(fresh); err != nil {
		return err
	}
	st, err := Open(fresh, Config{Synchronous: Normal, KeepFree: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s := &salvage{im: im, to: st.w.c, now: st.now(), queues: map[int64]bool{}, report: r}
	if err := s.save(ctx); err != nil {
		return err
	}
	left, err := faults(st.w.c)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the new database is not sound: %s", strings.Join(left, "; "))
	}
	if err != nil {
		return err
	}
	return st.w.c.query("pragma wal_checkpoint(truncate)", func(row) error { return nil })
}

// private makes an empty file that nobody else reads, until it gets the rights
// of the old one.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

var suffixes = []string{"", "-wal", "-shm", "-journal"}

func removeAll(path string) error {
	for _, s := range suffixes {
		if err := os.Remove(path + s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// swap puts the new database in the place of the damaged one. The old files get
// their new names before they lose the old ones, so that an end half way
// leaves them together.
func swap(path, fresh string, now time.Time) (moved string, err error) {
	moved = freeName(path + ".damaged-" + now.Format("20060102T150405Z"))
	for _, s := range []string{"-journal", "-shm", "-wal", ""} { // the log first: without links this moves it
		if err := aside(path+s, moved+s); err != nil {
			return moved, err
		}
	}
	for _, s := range suffixes[1:] {
		if err := os.Remove(path + s); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return moved, err
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return moved, err
	}
	return moved, syncDir(filepath.Dir(path))
}

// freeName adds a number to a name that is taken.
func freeName(name string) string {
	for i := 1; ; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s-%d", name, i)
		}
		if _, err := os.Lstat(try); errors.Is(err, fs.ErrNotExist) {
			return try
		}
	}
}

// aside gives a file a second name, or, where there are no links, another one.
func aside(old, name string) error {
	err := os.Link(old, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(old, name)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
