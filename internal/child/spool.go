package child

import (
	"fmt"
	"os"
)

// Spool returns an empty file for a command's output, in the folder for
// temporary files (TMPDIR). It has no name, so that it takes no room any more
// once everybody has closed it, also after a kill.
func Spool() (*os.File, error) {
	f, err := unnamed(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("make a file for output (TMPDIR names the folder): %w", err)
	}
	return f, nil
}

// named makes a file and takes its name away.
func named(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "settle-spool-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where open files keep their name it stays as litter
	return f, nil
}
