//go:build unix

package child

import (
	"os"
	"syscall"
)

// signalGroup signals every process of a group. One that is gone is no error.
func signalGroup(leader int, sig syscall.Signal) { _ = syscall.Kill(-leader, sig) }

// groupGone reports whether no process of the group is left.
func groupGone(leader int) bool { return syscall.Kill(-leader, 0) == syscall.ESRCH }

// signalOf is the signal that killed a process; 0 = none did.
func signalOf(st *os.ProcessState) syscall.Signal {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}
