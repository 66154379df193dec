package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamed makes a file that never had a name, where the file system can.
func unnamed(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return named(dir)
	}
	return f, nil
}
