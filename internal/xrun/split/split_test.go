package split

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func items(t *testing.T, r io.Reader, nul bool) []string {
	t.Helper()
	s := New(r, nul)
	var out []string
	for {
		item, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		var long *TooLongError
		if errors.As(err, &long) {
			out = append(out, "("+err.Error()+")")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(item))
	}
}

func TestItemsComeExactlyAsTheyStand(t *testing.T) {
	for _, c := range []struct {
		in   string
		nul  bool
		want string
	}{
		{"a\nb\n", false, "a|b"},
		{"a\nb", false, "a|b"},
		{"\n\na\n \t\r\n\nb\n\n", false, "a|b"},
		{" a \n\tb\r\n", false, " a |\tb\r"},
		{"\xff\xfe\n\x00x\n", false, "\xff\xfe|\x00x"},
		{"a b\x00c\nd\x00\x00 \x00e", true, "a b|c\nd| |e"},
		{"", false, ""},
		{"\n", false, ""},
		{"\x00\x00", true, ""},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in))} {
			if got := strings.Join(items(t, r, c.nul), "|"); got != c.want {
				t.Errorf("%s %q: got %q, want %q", name, c.in, got, c.want)
			}
		}
	}
}

func TestAnItemMayBeAsLongAsTheLimitAndALongerOneIsSkipped(t *testing.T) {
	in := strings.Repeat("x", Max) + "\n" + strings.Repeat("y", Max+1) + "\nz\n" + strings.Repeat("w", 3*Max)
	got := items(t, strings.NewReader(in), false)
	if len(got) != 4 || len(got[0]) != Max || got[2] != "z" {
		t.Fatalf("got %d items", len(got))
	}
	if want := "(input line 2 is 1048577 bytes long, the limit is 1048576)"; got[1] != want {
		t.Errorf("got %s, want %s", got[1], want)
	}
	if want := "(input line 4 is 3145728 bytes long, the limit is 1048576)"; got[3] != want {
		t.Errorf("got %s, want %s", got[3], want)
	}
}

func TestLinesAreCountedWithTheBlankOnes(t *testing.T) {
	s := New(strings.NewReader("\n\na\nb"), false)
	for _, want := range []int64{3, 4} {
		if _, err := s.Next(); err != nil || s.Line() != want {
			t.Errorf("line %d, want %d (%v)", s.Line(), want, err)
		}
	}
}

func TestNULInLinesIsNoticedAtTheBeginning(t *testing.T) {
	if err := New(strings.NewReader("a\x00b\x00"), false).Check(); !errors.Is(err, ErrNUL) {
		t.Errorf("got %v, want ErrNUL", err)
	}
	if err := New(strings.NewReader("a\x00b\x00"), true).Check(); err != nil {
		t.Errorf("with -0: %v", err)
	}
	if err := New(strings.NewReader(""), false).Check(); err != nil {
		t.Errorf("empty: %v", err)
	}
}

func TestAReadErrorIsNotAnItem(t *testing.T) {
	boom := errors.New("boom")
	s := New(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(boom)), false)
	if item, err := s.Next(); string(item) != "a" || err != nil {
		t.Fatalf("got %q, %v", item, err)
	}
	if item, err := s.Next(); item != nil || !errors.Is(err, boom) {
		t.Errorf("got %q, %v: a line that was cut by an error is no item", item, err)
	}
}

func FuzzItemsAreTheLinesThatAreNotBlank(f *testing.F) {
	f.Add([]byte("a\n\nb"), false)
	f.Add([]byte("a\x00\x00b"), true)
	f.Fuzz(func(t *testing.T, in []byte, nul bool) {
		sep := "\n"
		if nul {
			sep = "\x00"
		}
		var want []string
		for _, l := range strings.Split(string(in), sep) {
			if nul && l != "" || !nul && strings.Trim(l, " \t\r") != "" {
				want = append(want, l)
			}
		}
		got := items(t, bytes.NewReader(in), nul)
		if strings.Join(got, sep) != strings.Join(want, sep) || len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
