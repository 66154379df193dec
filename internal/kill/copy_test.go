//go:build linux

package kill

import (
	"os"
	"path/filepath"
)

// files are the bytes of a database by the ends of its files' names.
type files map[string][]byte

const (
	theFile  = ""
	theLog   = "-wal"
	theIndex = "-shm"
)

// take reads the files as they stand, while nobody runs.
func (f *file) take() files {
	out := files{}
	for _, suffix := range []string{theFile, theLog, theIndex} {
		b, err := os.ReadFile(f.path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		must(f.t, err)
		out[suffix] = b
	}
	return out
}

// copy puts files somewhere else, as the next start after a cut would find
// them: without the index of the log, which lives in memory.
func (f *file) copy(from files) *file {
	dir, err := os.MkdirTemp(filepath.Dir(f.path), "copy")
	must(f.t, err)
	c := *f
	c.path = filepath.Join(dir, "settle.db")
	for _, suffix := range []string{theFile, theLog} {
		if b, ok := from[suffix]; ok {
			must(f.t, os.WriteFile(c.path+suffix, b, 0o600))
		}
	}
	return &c
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
