package child

import (
	"os/exec"
	"slices"
	"testing"
)

func TestWordsSplitsAsAShellWouldWithoutExpanding(t *testing.T) {
	for in, want := range map[string][]string{
		"":                        nil,
		"  \t\n":                  nil,
		"a b  c":                  {"a", "b", "c"},
		`a 'b c' "d e"`:           {"a", "b c", "d e"},
		`a'b'"c"d`:                {"abcd"},
		`'' ""`:                   {"", ""},
		`a\ b \'c`:                {"a b", "'c"},
		`"a\"b\\c\d"`:             {`a"b\c\d`},
		`'a\b'`:                   {`a\b`},
		`sh -c "echo $HOME | wc"`: {"sh", "-c", "echo $HOME | wc"},
		"echo *.go # no comment":  {"echo", "*.go", "#", "no", "comment"},
		"ünï 'çö de'":             {"ünï", "çö de"},
	} {
		got, err := Words(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{`a "b`, `a 'b`, `a \`, `"\`, `'`} {
		if got, err := Words(in); err == nil {
			t.Errorf("%q: %q, want an error", in, got)
		}
	}
}

func FuzzWordsOfQuotedWordsAreTheWords(f *testing.F) {
	f.Add("a b'c", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		if words, err := Words(a); err == nil && !slices.ContainsFunc(words, func(w string) bool { return !Showable(w) }) {
			if again, err := Words(Line(words)); err != nil || !slices.Equal(again, words) {
				t.Errorf("%q is %q, written %s, which is %q, %v", a, words, Line(words), again, err)
			}
		}
		quote := func(s string) string {
			out := "'"
			for i := range len(s) {
				if s[i] == '\'' {
					out += `'\''`
				} else {
					out += s[i : i+1]
				}
			}
			return out + "'"
		}
		got, err := Words(quote(a) + " " + quote(b))
		if err != nil || !slices.Equal(got, []string{a, b}) {
			t.Errorf("%q, %q: %q, %v", a, b, got, err)
		}
	})
}

func TestWordsComeBackFromAShellAsTheyWere(t *testing.T) {
	for _, w := range []string{"a", "", "a b", "it's", `"$x" \ !`, "{}", "#", "a#b", "*", "~", "é", "\xff\x00"[:1], "new\nline", "\x1b[31m", "\u202e", "a;b", "-n"} {
		got, err := exec.Command("bash", "-c", "printf %s "+Quote(w)).Output()
		if err != nil {
			t.Fatalf("bash: %v", err)
		}
		if w != "-n" && string(got) != w {
			t.Errorf("%q is written as %s, which a shell reads as %q", w, Quote(w), got)
		}
		if !Showable(Quote(w)) {
			t.Errorf("%q is written as %q, which is not safe to show", w, Quote(w))
		}
	}
}
