//go:build !unix

package child

import (
	"os"
	"syscall"
)

// Without process groups only the command itself is killed, and nothing
// watches over it.

type guard struct{}

func startGuard(_, _ *os.File) (*guard, error) { return &guard{}, nil }
func (*guard) add(int)                         {}
func (*guard) remove(int)                      {}
func (*guard) close() error                    { return nil }

func attributes() *syscall.SysProcAttr { return nil }

func signalGroup(leader int, _ syscall.Signal) {
	if p, err := os.FindProcess(leader); err == nil {
		_ = p.Kill()
	}
}

func signalOf(*os.ProcessState) syscall.Signal { return 0 }
