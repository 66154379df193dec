package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// Where SQLite's locks stand in a file, and how Linux names locks that belong
// to an open file and not to a process.
//
// Source: os.h of SQLite; fcntl(2).
const (
	lockStart = 0x40000000
	lockLen   = 512
	ofdSetLk  = 37
)

// probe finds out, without SQLite, whether anybody has a lock on the file, this
// process included. With hold it keeps all of SQLite's locks itself.
func (in *inspection) probe(shown string, hold bool) error {
	f, err := os.OpenFile(in.path, os.O_RDWR, 0)
	if err != nil {
		return refusal(shown, "cannot be written by this user", "run settle repair as the owner of the file", err)
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: lockStart, Len: lockLen}
	err = syscall.FcntlFlock(f.Fd(), ofdSetLk, &lock)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		// f stays open for good: if it is this process that has the database
		// open, closing f would drop its locks.
		leaked = append(leaked, f)
		return inUse(shown, err)
	}
	in.raw = f // without locks where the file system has none
	if !hold {
		lock.Type = syscall.F_UNLCK
		_ = syscall.FcntlFlock(f.Fd(), ofdSetLk, &lock)
	}
	return nil
}

var leaked []*os.File

// likeOld gives the new file the owner and rights of the old one, as far as
// this user may.
func likeOld(path string, old os.FileInfo) {
	_ = os.Chmod(path, old.Mode().Perm())
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(path, int(st.Uid), int(st.Gid))
	}
}
