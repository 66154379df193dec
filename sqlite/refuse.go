package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	modernc "modernc.org/sqlite"
	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// fileURI names a file for SQLite, whatever characters its path has.
func fileURI(abs string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()
}

// checkPath refuses what must not be opened, before SQLite touches it.
func checkPath(shown, abs string, mustExist bool) error {
	if err := checkFile(shown, abs, mustExist); err != nil {
		return err
	}
	real := followed(abs)
	err := emptied(real)
	switch {
	case err == nil:
		return nil
	case whoseFile(real) == settles:
		return refusal(shown, "cannot be opened without loss", "settle repair --db "+word(shown), err)
	}
	return refusal(shown, "cannot be opened: a log of another program lies beside it", "choose another file with --db", err)
}

// checkFile refuses what is not a file on a local disk.
func checkFile(shown, abs string, mustExist bool) error {
	if shown == "" || strings.Contains(shown, ":memory:") || strings.ContainsRune(shown, 0) {
		return &settle.InvalidError{Field: "database", Problem: fmt.Sprintf("%q is not the path of a file: a durable store needs one", shown)}
	}
	info, err := os.Stat(abs)
	switch {
	case err == nil && info.IsDir():
		return refusal(shown, "is a directory", "choose a file in it: --db "+word(filepath.Join(shown, "settle.db")), nil)
	case err == nil && !info.Mode().IsRegular():
		return refusal(shown, "is not a regular file", "choose another path with --db", nil)
	case errors.Is(err, os.ErrNotExist) && mustExist:
		return refusal(shown, "does not exist", "check --db or SETTLE_DB, or enqueue a first job", nil)
	case errors.Is(err, os.ErrNotExist):
		if dir, derr := os.Stat(filepath.Dir(abs)); derr != nil || !dir.IsDir() {
			return refusal(shown, "its folder does not exist", "mkdir -p "+word(filepath.Dir(shown)), nil)
		}
	case err != nil:
		return refusal(shown, "cannot be looked at", "check the permissions of its folder", err)
	}
	if name := networkFS(filepath.Dir(followed(abs))); name != "" {
		return refusal(shown, "lies on a network file system ("+name+"), where SQLite's locks do not hold and the file would be damaged",
			"move it to a local disk and name it with --db", nil)
	}
	return nil
}

// followed is the file that a symbolic link leads to, or the path itself. What
// SQLite writes beside a database lies beside the file, not the link.
func followed(abs string) string {
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

func refusal(shown, why, recover string, err error) error {
	return &settle.RefusedError{What: shown, Why: why, Recover: recover, Err: err}
}

// word is a path as a shell reads it.
func word(path string) string {
	plain := func(r rune) bool {
		return r > unicode.MaxASCII || unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+,:@%=", r)
	}
	if path != "" && strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// refuse turns an error met while opening into a refusal that names a command.
func refuse(shown string, err error) error {
	var r *settle.RefusedError
	if err == nil || errors.As(err, &r) {
		return err
	}
	switch primary(err) {
	case zs.ResultCorrupt, zs.ResultNotADB:
		return refuseDamaged(shown, err)
	case zs.ResultReadOnly, zs.ResultCantOpen, zs.ResultPerm, zs.ResultAuth:
		return refusal(shown, "cannot be written by this user", "chmod u+w the file and its folder (SQLite writes files beside it), or choose another with --db", err)
	case zs.ResultFull, zs.ResultIOErr:
		return refusal(shown, "cannot be written: the disk is full or faulty", "free some space, then start again", err)
	case zs.ResultBusy, zs.ResultLocked:
		return refusal(shown, "is locked by another process", "wait for it or end it, then start again", err)
	}
	return fmt.Errorf("open %s: %w", shown, err)
}

// refuseDamaged advises a repair only of a file that is ours, or was: repair
// moves files aside.
func refuseDamaged(shown string, err error) error {
	abs, absErr := filepath.Abs(shown)
	if absErr != nil {
		return errors.Join(err, absErr)
	}
	switch whoseFile(followed(abs)) {
	case settles:
		return refusal(shown, "is damaged", "settle repair --db "+word(shown), err)
	case anothers:
		return refusal(shown, "is a database of another program, and damaged", "choose another file with --db", err)
	default:
		return refusal(shown, "is not a settle database", "choose another file with --db", err)
	}
}

// translate gives errors of the driver, at the store's edge, the words of the
// contract.
func (s *Store) translate(err error) error {
	if err == nil {
		return nil
	}
	var r *settle.RefusedError
	if errors.As(err, &r) || errors.Is(err, settle.ErrFull) {
		return err
	}
	switch primary(err) {
	case zs.ResultFull:
		return fmt.Errorf("%w: the disk or the file's page limit: free some space (%w)", settle.ErrFull, err)
	case zs.ResultCorrupt, zs.ResultNotADB:
		return refusal(s.path, "is damaged", "settle repair --db "+word(s.path), err)
	case zs.ResultReadOnly:
		return refusal(s.path, "cannot be written", "chmod u+w "+word(s.path)+" and its folder", err)
	}
	return err
}

// code finds SQLite's result code, from either driver.
func code(err error) zs.ResultCode {
	var m *modernc.Error
	if errors.As(err, &m) {
		return zs.ResultCode(m.Code())
	}
	return zs.ErrCode(err)
}

func primary(err error) zs.ResultCode { return code(err).ToPrimary() }

func busy(err error) bool {
	code := primary(err)
	return err != nil && (code == zs.ResultBusy || code == zs.ResultLocked)
}
