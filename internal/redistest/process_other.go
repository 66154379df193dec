//go:build !linux

package redistest

import "syscall"

// withUs cannot be asked for here: a server outlives a test that is killed.
func withUs() *syscall.SysProcAttr { return nil }
