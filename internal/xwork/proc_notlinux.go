//go:build unix && !linux

package xwork

import "syscall"

// dieWithUs: no such kernel; the group is killed when we leave by ourselves.
func dieWithUs(*syscall.SysProcAttr) {}
