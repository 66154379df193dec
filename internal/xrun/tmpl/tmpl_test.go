package tmpl

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What GNU parallel 20221122 made of these items, noted once; the test below
// asks it again where it is installed.
var golden = map[string]string{
	"a/b.c/d.tar.gz": "[a/b.c/d.tar.gz|a/b.c/d.tar|d.tar.gz|a/b.c|d.tar]",
	".bashrc":        "[.bashrc||.bashrc|.|]",
	"dir/.x":         "[dir/.x|dir/|.x|dir|]",
	"a/b/":           "[a/b/|a/b/||a|]",
	"/":              "[/|/||/|]",
	"/a":             "[/a|/a|a|/|a]",
	"foo.":           "[foo.|foo|foo.|.|foo]",
	"foo":            "[foo|foo|foo|.|foo]",
	"a.b/c":          "[a.b/c|a.b/c|c|a.b|c]",
	"x//y.z":         "[x//y.z|x//y|y.z|x|y]",
}

const all = "[{}|{.}|{/}|{//}|{/.}]"

func TestPlaceholdersAreThoseOfParallel(t *testing.T) {
	for item, want := range golden {
		if got := Parse([]string{"echo", all}).Fill([]byte(item), 1)[1]; got != want {
			t.Errorf("%q: got %s, want %s", item, got, want)
		}
	}
}

func TestPlaceholdersAgreeWithAnInstalledParallel(t *testing.T) {
	parallel, err := exec.LookPath("parallel")
	if err != nil {
		t.Log("GNU parallel is not installed: its answers stand in the golden map")
		return
	}
	var in, want strings.Builder
	for item, line := range golden {
		in.WriteString(item + "\n")
		want.WriteString(line + "\n")
	}
	c := exec.Command(parallel, "--will-cite", "-k", "-j1", "-q", "printf", all+"\\n")
	c.Stdin = strings.NewReader(in.String())
	got, err := c.CombinedOutput()
	if err != nil {
		t.Logf("parallel does not run here: %v: %s", err, got)
	} else if string(got) != want.String() {
		t.Errorf("parallel says %s, the golden map %s", got, want.String())
	}
}

func TestPlaceholdersStandAnywhereAndRepeatedly(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"cp {} {.}.bak", "cp|d/a b.txt|d/a b.bak"},
		{"convert --in={} --out=out/{/.}-{#}.png", "convert|--in=d/a b.txt|--out=out/a b-7.png"},
		{"{}{}", "d/a b.txtd/a b.txt"},
		{"echo", "echo|d/a b.txt"},
		{"echo {x} {} {", "echo|{x}|d/a b.txt|{"},
		{"echo {{}}", "echo|{d/a b.txt}"},
		{"awk {print} {}", "awk|{print}|d/a b.txt"},
		{"echo {#}", "echo|7"},
		{"{//}/run {/}", "d/run|a b.txt"},
	} {
		got := Parse(strings.Split(c.command, " ")).Fill([]byte("d/a b.txt"), 7)
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: got %s, want %s", c.command, s, c.want)
		}
	}
}

func TestAnItemThatLooksLikeAPlaceholderStaysAsItIs(t *testing.T) {
	got := Parse([]string{"echo", "{}", "{#}"}).Fill([]byte("{#} {.}"), 3)
	if want := []string{"echo", "{#} {.}", "3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheProgramIsKnownUnlessItHoldsAPlaceholder(t *testing.T) {
	for command, want := range map[string]string{"echo {}": "echo true", "./{} x": " false", "a{b} {}": "a{b} true"} {
		p, known := Parse(strings.Split(command, " ")).Program()
		if got := fmt.Sprintf("%s %v", p, known); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

func TestAnEmptyArgumentStays(t *testing.T) {
	if got := Parse([]string{"echo", "", "{}"}).Fill([]byte("x"), 1); !slices.Equal(got, []string{"echo", "", "x"}) {
		t.Errorf("got %q", got)
	}
}

func FuzzItemsAreBytes(f *testing.F) {
	for item := range golden {
		f.Add([]byte(item))
	}
	f.Add([]byte{0xff, 0xfe, '/', '.'})
	tmpl := Parse([]string{"x", "{}", "{.}", "{/}", "{//}", "{/.}"})
	f.Fuzz(func(t *testing.T, item []byte) {
		got := tmpl.Fill(item, 1)
		if got[1] != string(item) {
			t.Fatalf("the item changed: %q became %q", item, got[1])
		}
		if !strings.HasPrefix(got[1], got[2]) || !strings.HasSuffix(got[1], got[3]) || got[4] == "" {
			t.Fatalf("%q: %q", item, got)
		}
	})
}

// FuzzPlaceholdersAreFilledFromLeftToRight holds the template against a replacer
// of texts: no placeholder begins another.
func FuzzPlaceholdersAreFilledFromLeftToRight(f *testing.F) {
	f.Add("echo", "{}", []byte("a/b.c"), int64(1))
	f.Add("{{}}", "{#}{.}{/.}{//}{/}{", []byte("{}"), int64(-1))
	f.Add("", "{x}}", []byte{0xff, '/'}, int64(0))
	f.Fuzz(func(t *testing.T, program, arg string, item []byte, n int64) {
		var pairs []string
		some := false
		for name, hole := range holes {
			pairs = append(pairs, name, string(hole(item, n)))
			some = some || strings.Contains(program+"\x00"+arg, name)
		}
		fill := strings.NewReplacer(pairs...).Replace
		want := []string{fill(program), fill(arg)}
		if !some {
			want = append(want, string(item))
		}
		tmpl := Parse([]string{program, arg})
		if got := tmpl.Fill(item, n); !slices.Equal(got, want) {
			t.Fatalf("%q %q with %q: %q, want %q", program, arg, item, got, want)
		}
		if got, known := tmpl.Program(); known && got != fill(program) {
			t.Fatalf("%q: the program is %q", program, got)
		}
	})
}
