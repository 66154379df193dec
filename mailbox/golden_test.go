package mailbox

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "write the golden tables, here and in docs/contract.md, anew")

const contractPage = "../docs/contract.md"

// ticket is what the documents of testdata answer.
var ticket = Ticket{Job: "video-7", Step: "render", Attempt: "a1b2c3", Node: "gpu-3"}

// document is one that a node may have written. Its folder says which verdict
// it must get, its name what is special about it.
type document struct {
	verdict, name string
	bytes         []byte
}

var verdicts = []string{"done", "error", "progress", "stale", "protocol"}

// documents reads testdata/set/verdict/name.json, in the order of the verdicts.
func documents(t testing.TB, set string) (list []document) {
	t.Helper()
	for _, v := range verdicts {
		names, err := filepath.Glob(filepath.Join("testdata", set, v, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			name = strings.TrimSuffix(filepath.Base(name), ".json")
			list = append(list, document{v, strings.ReplaceAll(name, "-", " "), b})
		}
	}
	return list
}

// answer is a good answer with an output.
func answer(output string) []byte {
	return []byte(`{"v":1,"job":"video-7","step":"render","attempt":"a1b2c3","node":"gpu-3","status":"done","output":` + output + `}`)
}

// nested is a list n levels deep.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// filled is a good answer of exactly size bytes.
func filled(size int) []byte {
	return answer(`"` + strings.Repeat("x", size-len(answer(`""`))) + `"`)
}

// large are documents whose size is what is special about them.
var large = []document{
	{"done", "exactly 1 MiB", filled(MaxDocument)},
	{"protocol", "one byte above 1 MiB", filled(MaxDocument + 1)},
	{"protocol", "nothing but 1 MiB and a byte of white space", bytes.Repeat([]byte{' '}, MaxDocument+1)},
	{"done", "nested 1000 levels deep", answer(nested(maxDepth - 1))},
	{"protocol", "nested 1001 levels deep", answer(nested(maxDepth))},
	{"protocol", "a million opening brackets", bytes.Repeat([]byte{'['}, 1_000_000)},
}

func TestP5EveryDocumentHasItsOneVerdict(t *testing.T) {
	for _, set := range []struct {
		name  string
		judge Judge
		list  []document
	}{
		{"contract", ContractJudge, append(documents(t, "contract"), large...)},
		{"status", StatusJudge, documents(t, "status")},
	} {
		t.Run(set.name, func(t *testing.T) {
			var table strings.Builder
			table.WriteString("| document | verdict | what it comes to |\n|---|---|---|\n")
			for _, d := range set.list {
				t.Run(d.verdict+" "+d.name, func(t *testing.T) {
					a, err := set.judge(ticket, d.bytes)
					if got := checkLook(t, ticket, d.bytes, a, err); got != d.verdict {
						t.Errorf("is %s (%v), want %s", got, err, d.verdict)
					}
					fmt.Fprintf(&table, "| %s | %s | %s |\n", d.name, d.verdict, comesTo(a, err))
				})
			}
			golden(t, set.name, table.String())
		})
	}
	if n := len(documents(t, "contract")); n < 80 {
		t.Errorf("%d documents, want 80 or more", n)
	}
}

// golden holds a table against testdata and the page.
func golden(t *testing.T, set, table string) {
	t.Helper()
	begin := "<!-- begin of the table \"" + set + "\": go test ./mailbox -update -->\n"
	const end = "<!-- end of the table -->\n"
	page := read(t, contractPage)
	before, rest, ok1 := strings.Cut(page, begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s: the markers of the table %q are missing", contractPage, set)
	}
	file := filepath.Join("testdata", set+".golden")
	if *update {
		write(t, file, table)
		write(t, contractPage, before+begin+table+end+after)
		return
	}
	for place, want := range map[string]string{file: read(t, file), contractPage: shown} {
		if table != want {
			t.Errorf("%s differs: go test ./mailbox -update writes it anew; got\n%s", place, table)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil && !(*update && errors.Is(err, os.ErrNotExist)) {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// comesTo shows what a verdict carries.
func comesTo(a Answer, err error) string {
	var step *StepError
	var protocol *ProtocolError
	switch {
	case err == nil:
		return "output " + code(string(a.Output))
	case errors.As(err, &step):
		s := code(step.Message)
		if step.Reason != "" {
			s = code(step.Reason) + ": " + s
		}
		if step.Retry != RetryUnsaid {
			s += "; a retry is said to be: " + string(step.Retry)
		}
		if step.RetryAfter != 0 {
			s += "; not before " + step.RetryAfter.String()
		}
		return s
	case errors.As(err, &protocol):
		s := "`" + string(protocol.Reason) + "`"
		if protocol.Field != "" {
			s += " of `" + protocol.Field + "`"
		}
		return s
	default:
		return err.Error()
	}
}

// code shows text as code in a table.
func code(s string) string {
	const most = 72
	size := len(s)
	s = strings.ReplaceAll(s, "|", "/")
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("`%s…` (%d bytes)", string(r[:most]), size)
	}
	return "`` " + s + " ``"
}

// kind is the verdict in a word; "" = none of the six.
func kind(err error) string {
	switch e := err.(type) { // bare: a judge wraps nothing
	case nil:
		return "done"
	case *StepError:
		return "error"
	case *ProtocolError:
		return "protocol"
	default:
		return map[error]string{ErrNotReady: "not ready", ErrProgress: "progress", ErrStale: "stale"}[e]
	}
}
