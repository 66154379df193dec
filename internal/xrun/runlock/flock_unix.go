//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package runlock

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// try opens the file and takes the lock; nil if another process has it.
func try(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, f.Close()
		case err != nil:
			return nil, errors.Join(err, f.Close())
		case current(f, path):
			return f, nil
		}
		f.Close() // it was removed between open and lock
	}
}

// current reports whether the file still has its name.
func current(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(ours, named)
}

// alive reports whether a process runs; an unknown one does.
func alive(pid int) bool {
	return pid <= 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// boot names this start of the machine; "" where it has no name.
func boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
