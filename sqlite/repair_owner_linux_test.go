package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownerOf is who has a file, and its rights.
func ownerOf(t *testing.T, path string) (uid, gid uint32, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid, info.Mode().Perm()
}

func TestRepairByRootKeepsOwnerRightsAndLink(t *testing.T) {
	t.Parallel()
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	if uid == 0 {
		uid, gid = 65534, 65533
	}
	for _, mode := range []os.FileMode{0o640, 0o600, 0o664, 0o440} {
		real := newPath(t)
		b := stored(t, 300)
		must(t, os.WriteFile(real, b[:len(b)/2], 0o600))
		must(t, os.Chown(real, int(uid), int(gid)))
		if must(t, os.Chmod(real, mode)); mode == 0o440 && os.Getuid() != 0 {
			continue
		}
		link := filepath.Join(t.TempDir(), "link.db")
		must(t, os.Symlink(real, link))
		r, err := Repair(t.Context(), link)
		must(t, err)
		to, err := os.Readlink(link)
		check(t, err == nil && to == real && filepath.Dir(r.Moved) == filepath.Dir(real), "the link leads where it led, the damaged file lies beside the file: %s %s", to, r.Moved)
		for _, path := range []string{real, r.Moved} {
			u, g, m := ownerOf(t, path)
			check(t, u == uid && g == gid && m == mode, "%s: owner, group and rights are kept: got %d:%d %v, want %d:%d %v", path, u, g, m, uid, gid, mode)
		}
	}
}

// TestRepairSaysThatTheOwnerIsAnother: only root gives files away.
func TestRepairSaysThatTheOwnerIsAnother(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to make another's file")
	}
	dir, exe := reachable(t)
	must(t, os.Chmod(dir, 0o777))
	path := filepath.Join(dir, "settle.db")
	b := stored(t, 300)
	must(t, os.WriteFile(path, b[:len(b)/2], 0o600))
	must(t, os.Chmod(path, 0o666))
	said := spawnAs(t, exe, 65534, "repair", path).ends()
	check(t, strings.Contains(strings.Join(said, "\n"), "sound false"), "it is repaired: %q", said)
	u, _, m := ownerOf(t, path)
	check(t, u == 65534 && m == 0o666, "the rights at least are the same: %d %v", u, m)
}
