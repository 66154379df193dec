package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// groupOfZombies reports whether only processes that have died, and that
// nobody has waited for, are left of a group: in containers whose first
// process waits for none they stay for ever.
func groupOfZombies(leader int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // gone
		}
		// "pid (name) state ppid pgrp …"; the name may hold anything.
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(f) < 3 {
			continue
		}
		if group, _ := strconv.Atoi(string(f[2])); group == leader && f[0][0] != 'Z' && f[0][0] != 'X' {
			return false
		}
	}
	return true
}
