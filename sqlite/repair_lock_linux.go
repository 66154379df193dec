package sqlite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
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
// process included, and takes all of SQLite's locks itself.
func (in *inspection) probe(shown string) error {
	f, err := os.OpenFile(in.path, os.O_RDWR, 0)
	if err != nil {
		return refusal(shown, "cannot be written by this user", "run settle repair as the owner of the file", err)
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: lockStart, Len: lockLen}
	err = syscall.FcntlFlock(f.Fd(), ofdSetLk, &lock)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		leaked.keep(f)
		return inUse(shown, err)
	}
	in.raw = f // without locks where the file system has none
	return nil
}

// release gives SQLite's locks up, to SQLite.
func (in *inspection) release() {
	lock := syscall.Flock_t{Type: syscall.F_UNLCK, Start: lockStart, Len: lockLen}
	_ = syscall.FcntlFlock(in.raw.Fd(), ofdSetLk, &lock)
}

// known tells whether the file was in use when it was looked at before.
func (in *inspection) known() bool { return leaked.has(in.path) }

// leaked are files that stay open for good: if it is this process that has the
// database open, closing one of them would drop its locks.
var leaked leaks

type leaks struct {
	mu    sync.Mutex
	files []*os.File
}

func (l *leaks) keep(f *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, f)
}

// has tells whether the file is one of them: once is enough.
func (l *leaks) has(path string) bool {
	info, err := os.Stat(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	return err == nil && slices.ContainsFunc(l.files, func(f *os.File) bool {
		was, err := f.Stat()
		return err == nil && os.SameFile(was, info)
	})
}

// likeOld gives the new file the owner and rights of the old one. The owner
// first: that can take rights away.
func likeOld(path string, old os.FileInfo) error {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return os.Chmod(path, old.Mode().Perm())
	}
	if err := os.Chown(path, int(was.Uid), int(was.Gid)); err != nil {
		return errors.Join(fmt.Errorf("the new file could not get the owner of the old one: chown %d:%d it (%w)", was.Uid, was.Gid, err),
			os.Chmod(path, old.Mode().Perm()))
	}
	return os.Chmod(path, old.Mode().Perm())
}
