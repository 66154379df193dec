package xwork

import "syscall"

// dieWithUs has the kernel kill the command when we die, however we die.
func dieWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
