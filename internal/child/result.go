package child

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/settle-go/settle/internal/redact"
)

// Result is how a command ended.
type Result struct {
	Code   int            // exit code; -1 = a signal killed it
	Signal syscall.Signal // which one; 0 = it exited, or it is not known
	Cut    bool           // its context ended before it did
}

// String says it for people.
func (r Result) String() string {
	switch {
	case r.Signal != 0:
		return fmt.Sprintf("killed by signal %d (%v)", int(r.Signal), r.Signal)
	case r.Code < 0:
		return "killed"
	default:
		return fmt.Sprintf("exit code %d", r.Code)
	}
}

// result reads how a process ended; nil = nobody knows.
func result(st *os.ProcessState) Result {
	if st == nil {
		return Result{Code: -1}
	}
	return Result{Code: st.ExitCode(), Signal: signalOf(st)}
}

// saidMax is how much of what a command said stands in an error text, in bytes.
const saidMax = 1 << 10

// ErrorText is the error text of an attempt: how it ended, and the safe end of
// what the command said on standard error, where the reason stands. Of stderr
// the last [redact.TailRead] bytes and one more are enough.
func ErrorText(how string, stderr []byte) string {
	said := Said(stderr)
	if said == "" {
		return how
	}
	return how + ": " + said
}

// Said is the safe end of what a command said on standard error; "" = nothing.
func Said(stderr []byte) string {
	if len(strings.TrimSpace(string(stderr))) == 0 {
		return ""
	}
	said := redact.Tail(stderr)
	if len(said) > saidMax {
		said = redact.Tail([]byte("…" + strings.ToValidUTF8(said[len(said)-saidMax:], "")))
	}
	return said
}

// StartCode returns the exit code that a shell gives to a command that cannot
// be started: 127 not found, 126 cannot be executed. ok is false when the
// error is of this moment only, such as too many processes.
func StartCode(err error) (code int, ok bool) {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return 0, false
	}
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR:
		return 127, true
	case syscall.EACCES, syscall.EPERM, syscall.ENOEXEC, syscall.E2BIG, syscall.EINVAL, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EISDIR:
		return 126, true
	}
	return 0, false
}
