//go:build !linux

package sqlite

// networkFS cannot tell on this system; the documentation asks for a local disk.
func networkFS(string) string { return "" }

// volume cannot tell on this system: SQLite's own "full" remains.
func volume(string) (total, free int64, err error) { return 0, 0, nil }
