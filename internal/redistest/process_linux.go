package redistest

import "syscall"

// withUs: SIGKILL when the thread that started it dies.
func withUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
