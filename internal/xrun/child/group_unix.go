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

// result reads how a process ended.
func result(st *os.ProcessState) Result {
	if st == nil {
		return Result{Code: Signalled, Signal: "unknown"}
	}
	ws, ok := st.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Result{Code: Signalled, Signal: ws.Signal().String()}
	}
	return Result{Code: st.ExitCode()}
}
