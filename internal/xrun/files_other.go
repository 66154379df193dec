//go:build !unix

package xrun

// openFiles is how many files this process may have open.
func openFiles() int { return 1024 }
