// Package runlock keeps a run from being run twice at once, and remembers which
// attempts were under way when its program was killed.
//
// The lock is the operating system's: it ends with the processes that hold it,
// by whatever means they end. So whoever has it knows that the program before
// it is dead, together with its commands (see package child: the guard holds
// the lock until they are).
//
// The file itself is a small table of the attempts whose command runs. It is
// written without waiting for the disk: a kill of the program cannot lose what
// was written, a crash of the machine can. The number of the machine's start
// stands in it, so that a table from before a crash is not believed.
package runlock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// Lock is a lock that is held.
type Lock struct {
	f      *os.File
	path   string
	before Before
}

// Before is what the program that held the lock before left behind.
type Before struct {
	known   bool
	running map[attempt]struct{}
}

type attempt struct {
	id [16]byte
	n  int
}

// Ran reports whether the command of this attempt may have been running when
// the program before was killed. Where nothing is known the answer is true.
func (b Before) Ran(id [16]byte, n int) bool {
	_, ran := b.running[attempt{id, n}]
	return ran || !b.known
}

// BusyError: another process holds the lock.
type BusyError struct{ PID int } // PID is 0 if it is not known

// Error names the process.
func (e *BusyError) Error() string {
	if e.PID == 0 {
		return "another process is at it"
	}
	return fmt.Sprintf("process %d is at it", e.PID)
}

// How long Take waits: for the guard of a dead program, and for a program that
// is just dying.
const (
	takePoll  = 5 * time.Millisecond
	waitDead  = 10 * time.Second
	waitAlive = 500 * time.Millisecond
)

// Take takes the lock on the file, which it creates. A BusyError says that a
// living process has it.
func Take(path string) (*Lock, error) {
	for waited := time.Duration(0); ; waited += takePoll {
		f, err := try(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if f != nil {
			l := &Lock{f: f, path: path, before: readTable(f)}
			if err := l.begin(); err != nil {
				return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
			}
			return l, nil
		}
		pid := holder(path)
		if waited >= waitDead || waited >= waitAlive && alive(pid) {
			return nil, &BusyError{pid}
		}
		time.Sleep(takePoll)
	}
}

// File is the open file: a process that inherits it holds the lock, too.
func (l *Lock) File() *os.File { return l.f }

// Before is what the program before left behind.
func (l *Lock) Before() Before { return l.before }

// Release gives the lock up; done says that there is nothing to remember and
// the file may go.
func (l *Lock) Release(done bool) error {
	var err error
	if done {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.f.Close())
}

// ---- the table

// The file begins with a line of text, filled up with spaces; then one record
// for each slot: 16 bytes of id and 8 of the attempt's number, all zero when
// the slot is free.
const (
	header = 128
	record = 24
	format = "settle-run 1 pid %d boot %s"
)

// begin makes the table this process's, without records.
func (l *Lock) begin() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	line := fmt.Sprintf(format, os.Getpid(), boot())
	_, err := l.f.WriteAt(fmt.Appendf(nil, "%-*s\n", header-1, line), 0)
	return err
}

// Begin notes that the command of an attempt is about to start in a slot,
// counted from 0.
func (l *Lock) Begin(slot int, id [16]byte, n int) error {
	b := binary.BigEndian.AppendUint64(id[:], uint64(n))
	_, err := l.f.WriteAt(b, header+int64(slot)*record)
	return err
}

// End notes that it has ended.
func (l *Lock) End(slot int) error {
	_, err := l.f.WriteAt(make([]byte, record), header+int64(slot)*record)
	return err
}

// readTable reads what another process has left.
func readTable(f *os.File) Before {
	b := Before{running: map[attempt]struct{}{}}
	_, boot1 := readHeader(f)
	if boot1 == "" || boot1 != boot() {
		return b
	}
	b.known = true
	var r [record]byte
	for at := int64(header); ; at += record {
		if n, _ := f.ReadAt(r[:], at); n < record {
			return b
		}
		if n := binary.BigEndian.Uint64(r[16:]); n > 0 {
			b.running[attempt{[16]byte(r[:16]), int(n)}] = struct{}{}
		}
	}
}

func readHeader(f *os.File) (pid int, boot string) {
	b := make([]byte, header)
	if n, _ := f.ReadAt(b, 0); n < header {
		return 0, ""
	}
	if n, _ := fmt.Sscanf(string(b), format, &pid, &boot); n < 1 {
		return 0, ""
	}
	return pid, boot
}

// holder reads who holds the lock.
func holder(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	pid, _ := readHeader(f)
	return pid
}
