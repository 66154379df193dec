// Command defaults writes docs/defaults.md from the code: values are asked of
// the packages, words are taken from the comments of their fields.
//
//	go run ./internal/tools/defaults
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// page is the file that the command writes, from the root of the repository.
const page = "docs/defaults.md"

func main() {
	root, err := findRoot()
	if err == nil {
		var text string
		if text, err = render(root); err == nil {
			err = os.WriteFile(filepath.Join(root, page), []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "defaults:", err)
		os.Exit(1)
	}
}

// findRoot walks up to the directory of go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = fmt.Errorf("no go.mod here or above")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
