package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Find finds the file of a program as a shell does: in PATH, or, where its name
// holds a slash, from the folder dir ("" = the current one). Its error says in
// words what is wrong; one that found nothing is an [ErrNotFound].
func Find(program, dir string) (string, error) {
	name := program
	if strings.ContainsRune(program, '/') && !filepath.IsAbs(program) && dir != "" {
		name = filepath.Join(dir, program)
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return filepath.Abs(path)
	case errors.Is(err, exec.ErrDot):
		return "", fmt.Errorf("command %q is only in the current folder: write ./%s", program, program)
	case errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("command %q cannot be executed: is it a program with the x bit set?", program)
	default:
		return "", &notFoundError{program}
	}
}

// ErrNotFound: there is no such program.
var ErrNotFound = errors.New("command not found")

type notFoundError struct{ program string }

func (e *notFoundError) Error() string { return fmt.Sprintf("command %q not found", e.program) }

func (e *notFoundError) Unwrap() error { return ErrNotFound }

// Environ is the environment base without what set sets, and set.
func Environ(base []string, set ...string) []string {
	env := make([]string, 0, len(base)+len(set))
	for _, v := range base {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
			env = append(env, v)
		}
	}
	return append(env, set...)
}
