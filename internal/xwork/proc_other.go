//go:build !unix

package xwork

import (
	"os"
	"os/exec"
)

// No process groups: the command itself is killed, what it started is not.
func ownGroup(*exec.Cmd) {}

func termGroup(pid int) { killGroup(pid) }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
