package child

import "syscall"

// attributes: a process group of its own, and SIGKILL when the thread that
// started it dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
