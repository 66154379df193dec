package sqlite

import (
	"syscall"
	"testing"
)

func makePipe(t testing.TB, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}
