//go:build linux

package runlock

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzTable: whatever a dead program, or anybody, has left in the file. Only a
// whole head of this start of the machine is believed, and of the table only
// whole records.
func FuzzTable(f *testing.F) {
	file, err := os.Create(filepath.Join(f.TempDir(), "lock"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = file.Close() })
	const ours = "ours" // stands for the head of this start, which no fuzzer can guess
	one := binary.BigEndian.AppendUint64(idA[:], 3)
	for _, head := range []string{"", ours, fmt.Sprintf(format, 7, "another"), fmt.Sprintf(format, -7, ""), "settle-run 2 pid 7 boot x", "\xff"} {
		f.Add(head, one)
		f.Add(head, append(make([]byte, record), one[:record-1]...))
	}
	f.Fuzz(func(t *testing.T, head string, table []byte) {
		mine := head == ours
		if mine {
			head = fmt.Sprintf(format, 7, boot())
		}
		b := append([]byte(head + strings.Repeat(" ", max(header-len(head), 0)))[:header], table...)
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		got := readTable(file)
		if got.known && !strings.Contains(head, boot()) || mine && !got.known {
			t.Fatalf("%q: known = %v", head, got.known)
		}
		want := map[attempt]bool{}
		for rest := table; len(rest) >= record; rest = rest[record:] {
			if n := binary.BigEndian.Uint64(rest[16:]); n > 0 {
				want[attempt{[16]byte(rest[:16]), int(n)}] = true
			}
		}
		for a := range want {
			if !got.Ran(a.id, a.n) {
				t.Fatalf("%q: an attempt that was under way counts as not begun", head)
			}
		}
		if got.known && len(got.running) != len(want) {
			t.Fatalf("%q: %d attempts, want %d", head, len(got.running), len(want))
		}
		if got.Ran([16]byte{}, 0) == got.known {
			t.Fatalf("%q: an attempt that is nowhere ran = %v", head, !got.known)
		}
	})
}
