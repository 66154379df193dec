//go:build unix && !linux

package child

import "syscall"

// attributes: a process group of its own. The guard does the rest.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
