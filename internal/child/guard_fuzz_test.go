//go:build unix

package child

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzGuardKillsGroupsAlone: a guard that is told nonsense, or half of a number,
// has never a group to kill that is everybody (1, -1) or its own (0).
func FuzzGuardKillsGroupsAlone(f *testing.F) {
	said := func(numbers ...int64) (b []byte) {
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		return b
	}
	f.Add(said(7, 8, -7))
	f.Add(said(0, 1, -1, -9, 1<<62))
	f.Add(said(7, -1<<63)[:15])
	f.Fuzz(func(t *testing.T, b []byte) {
		want := map[int]bool{}
		for rest := b; len(rest) >= 8; rest = rest[8:] {
			n := int64(binary.LittleEndian.Uint64(rest))
			if delete(want, int(-n)); n > 1 {
				want[int(n)] = true
			}
		}
		got := read(bytes.NewReader(b))
		for leader := range got {
			if leader <= 1 || !want[leader] {
				t.Fatalf("%x: would kill %d", b, leader)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%x: kills %v, want %v", b, got, want)
		}
	})
}
