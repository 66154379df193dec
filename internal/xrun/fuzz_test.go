package xrun

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

func FuzzMaxDeadIsReadBackAsItIsWritten(f *testing.F) {
	for _, s := range []string{"", "0", "5", "10%", "100%", "101%", "-1", "%", "+5", "1e3", "99999999999999999999", "5%%", "\xff"} {
		f.Add(s, uint32(1), uint32(20))
	}
	f.Fuzz(func(t *testing.T, s string, dead, ended uint32) {
		m, err := ParseMaxDead(s)
		if err != nil {
			if m != (MaxDead{}) || !child.Showable(err.Error()) {
				t.Fatalf("%q: %+v, %q", s, m, err)
			}
			return
		}
		if m.N < 0 || m.Percent && m.N > 100 || m.Set != (s != "") {
			t.Fatalf("%q was read as %+v", s, m)
		}
		if back, err := ParseMaxDead(m.String()); m.Set && (err != nil || back != m) {
			t.Fatalf("%q is %+v, written %q, which is %+v, %v", s, m, m, back, err)
		}
		if m.Reached(int64(dead), int64(ended)) && (!m.Set || dead == 0 || !m.Reached(int64(dead)+1, int64(ended))) {
			t.Fatalf("%q: %d of %d are too many, and one more or none at all is not", s, dead, ended)
		}
	})
}

func FuzzItemKeepsItsNumberAndIsShownSafely(f *testing.F) {
	f.Add([]byte("a b"), int64(7), "7-0190b7c4", []byte{1})
	f.Add([]byte("it's\x1b[31m\u202e\xff"), int64(0), "-", []byte{})
	f.Add([]byte(strings.Repeat("é", 80)), int64(1)<<62, "99999999999999999999-", []byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, item []byte, number int64, key string, raw []byte) {
		var id settle.ID
		copy(id[:], raw)
		if got := itemNumber(itemKey(number, id)); number >= 0 && got != number {
			t.Fatalf("item %d has the key %q, which is number %d", number, itemKey(number, id), got)
		}
		_ = itemNumber(key) // whoever wrote it: no panic
		shown := ItemText(item)
		if !child.Showable(shown) || len(shown) > 500 {
			t.Fatalf("%q is shown as %q", item, shown)
		}
		if len(item) > 100 || !child.Showable(string(item)) {
			return
		}
		if words, err := child.Words(shown); err != nil || !slices.Equal(words, []string{string(item)}) {
			t.Fatalf("%q is shown as %s, which is read as %q, %v", item, shown, words, err)
		}
	})
}

// noted is a store that holds one note.
type noted struct {
	settle.Store
	note settle.Note
}

func (n *noted) Note(context.Context, string) (settle.Note, error) { return n.note, nil }
func (n *noted) SetNote(_ context.Context, note settle.Note) error { n.note = note; return nil }

func FuzzNoteIsReadBackAsItIsWritten(f *testing.F) {
	for _, s := range []string{"", "{}", "null", `{"command":"cat {}","sum":"ab","folder":"/x","started":"2030-01-02T03:04:05Z"}`,
		`{"started":"2030-01-02T03:04:05+01:00","finished":"9999-12-31T23:59:59.999999999Z"}`, `{"command":7}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		st := &noted{note: settle.Note{Text: text}}
		note, ok, err := readNote(t.Context(), st, "q")
		if err != nil || !ok && note != (runNote{}) {
			t.Fatalf("%q: %+v, %v: what cannot be read is none", text, note, err)
		}
		if !ok {
			return
		}
		if err := writeNote(t.Context(), st, "q", note); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if unfinished := note.Finished.IsZero(); st.note.Queue != "q" || unfinished != (st.note.Keep == keepUnfinished) {
			t.Fatalf("%q: stored as %+v", text, st.note)
		}
		back, ok, err := readNote(t.Context(), st, "q")
		same := back.Command == note.Command && back.Sum == note.Sum && back.Folder == note.Folder &&
			back.Started.Equal(note.Started) && back.Finished.Equal(note.Finished)
		if err != nil || !ok || !same {
			t.Fatalf("%q is %+v, which is read back as %+v, %v", text, note, back, err)
		}
	})
}
