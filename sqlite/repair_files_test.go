package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

func TestRepairLeavesSoundFilesAlone(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 100, 6)
	t.Run("sound", func(t *testing.T) {
		path := newPath(t)
		spill(t, path, s.closed)
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound && !r.Reindexed && strings.Contains(r.String(), "is sound: nothing was changed"), "it says so: %s", r)
		check(t, bytes.Equal(slurp(t, path)[""], s.closed[""]), "no byte is changed")
	})
	t.Run("with a log", func(t *testing.T) {
		path := newPath(t)
		spill(t, path, s.open)
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound, "a log is no damage: %v", r)
		check(t, len(all(t, openAt(t, path), settle.Filter{})) == len(s.jobs), "nothing of the log is lost")
	})
	t.Run("empty file", func(t *testing.T) {
		path := newPath(t)
		must(t, os.WriteFile(path, nil, 0o600))
		r, err := Repair(t.Context(), path)
		must(t, err)
		check(t, r.Sound, "an empty file is an empty database")
		insert(t, openAt(t, path), task())
	})
	t.Run("another program's database", func(t *testing.T) {
		path := newPath(t)
		c, err := zs.OpenConn(path, zs.OpenReadWrite|zs.OpenCreate)
		must(t, err)
		_, err = newDirect(c).exec(`create table theirs (a)`)
		must(t, err)
		must(t, c.Close())
		before := slurp(t, path)[""]
		_, err = Repair(t.Context(), path)
		notOurOwn(t, err, "is a database of another program")
		check(t, bytes.Equal(slurp(t, path)[""], before), "it is not touched")
	})
}

func TestRepairRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refused := func(path, why string) {
		t.Helper()
		_, err := Repair(t.Context(), path)
		var r *settle.RefusedError
		check(t, errors.As(err, &r) && r.Recover != "" && strings.Contains(err.Error(), why), "%s is refused with a command, because it %s: got %v", path, why, err)
	}
	refused(dir, "is a directory")
	refused(filepath.Join(dir, "none.db"), "does not exist")
	st := newStore(t)
	refused(st.Path(), "is in use")
	insert(t, st, task())
	check(t, len(take(t, st, 1)) == 1, "the store that has it open goes on")

	newer := newPath(t)
	st = openAt(t, newer)
	_, err := st.w.c.exec(`update schema_version set version = 99`)
	must(t, err)
	must(t, st.Close())
	b, err := os.ReadFile(newer)
	must(t, err)
	copy(b[8*page:9*page], make([]byte, page)) // something of it
	must(t, os.WriteFile(newer, b, 0o600))
	refused(newer, "has schema 99")
	check(t, bytes.Equal(slurp(t, newer)[""], b), "nothing is changed by a refusal")
	left, err := filepath.Glob(newer + ".*")
	must(t, err)
	check(t, len(left) == 0, "and nothing is left lying about: %v", left)
}

// notOurOwn: the refusal names another file, and what insists.
func notOurOwn(t testing.TB, err error, why string) {
	t.Helper()
	var r *settle.RefusedError
	check(t, errors.As(err, &r) && strings.Contains(r.Why, why) && strings.Contains(r.Recover, "--db") && strings.Contains(r.Recover, "--force"),
		"it is refused because it %s, and what insists is named: %v", why, err)
}

func TestRepairOfAnythingElse(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 9))
	random := make([]byte, 50_000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	for name, b := range map[string][]byte{"text": []byte("this is a shopping list\n"), "random": random,
		"zeros": make([]byte, 20*page), "head alone": []byte("SQLite format 3\x00")} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			must(t, os.WriteFile(path, b, 0o600))
			_, err := Open(path)
			check(t, err != nil && !strings.Contains(err.Error(), "repair") && strings.Contains(err.Error(), "--db"), "opening it names another file and no repair, got %v", err)
			_, err = Repair(t.Context(), path)
			notOurOwn(t, err, "settle")
			here, err := filepath.Glob(path + "*")
			check(t, err == nil && len(here) == 1 && bytes.Equal(slurp(t, path)[""], b), "nothing is touched: %v %v", here, err)
			r, err := Repair(t.Context(), path, RepairOpts{Force: true})
			must(t, err)
			check(t, !r.Whole() && strings.Contains(r.String(), "an unknown number of jobs is lost"), "nothing is known of what was lost: %s", r)
			kept, err := os.ReadFile(r.Moved)
			must(t, err)
			check(t, bytes.Equal(kept, b), "its bytes are preserved aside")
			sound(t, path)
			insert(t, openAt(t, path), task())
		})
	}
}

func TestRepairNeverOverwritesWhatLiesAside(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	names := map[string]bool{}
	for range 3 { // within one second
		must(t, os.WriteFile(path, []byte("rubbish"), 0o600))
		r, err := Repair(t.Context(), path, RepairOpts{Force: true})
		must(t, err)
		names[r.Moved] = true
	}
	check(t, len(names) == 3, "each damaged file has a name of its own: %v", names)
	for n := range names {
		b, err := os.ReadFile(n)
		must(t, err)
		check(t, string(b) == "rubbish", "and its bytes")
	}
}

func TestRepairThatIsEndedChangesNothing(t *testing.T) {
	t.Parallel()
	s := makeSample(t, 400, 9)
	path := newPath(t)
	ruined := bytes.Clone(s.closed[""])
	copy(ruined[10*page:14*page], make([]byte, 4*page))
	must(t, os.WriteFile(path, ruined, 0o600))
	must(t, os.WriteFile(path+".repairing", []byte("left by one that was killed"), 0o600))
	ended := 0
	for after := time.Duration(0); ; after += 3 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		r, err := Repair(ctx, path)
		if cancel(); err == nil {
			check(t, !r.Sound && r.Moved != "", "in the end it is done: %s", r)
			break
		}
		ended++
		isErr(t, err, context.DeadlineExceeded)
		check(t, bytes.Equal(slurp(t, path)[""], ruined), "the file is as it was")
	}
	left, err := filepath.Glob(path + ".*")
	must(t, err)
	check(t, ended > 0 && len(left) >= 1 && strings.Contains(left[0], ".damaged-"), "nothing but the damaged file is left aside: %v", left)
	_, err = os.Stat(path + ".repairing")
	check(t, errors.Is(err, fs.ErrNotExist), "nothing half done is left: %v", err)
	sound(t, path)
}
