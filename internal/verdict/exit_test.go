package verdict

import (
	"slices"
	"testing"

	"github.com/settle-go/settle"
)

// Every code, without lists: the table of DESIGN §8.
func TestExitCodesFollowTheTable(t *testing.T) {
	terminal := []int{64, 65, 66, 76, 77, 78, 126, 127}
	for code := -1; code <= 255; code++ {
		want := settle.VerdictRetry
		switch {
		case code == 0:
			want = settle.VerdictOK
		case slices.Contains(terminal, code):
			want = settle.VerdictTerminal
		}
		if got := Exit(code, nil, nil); got != want {
			t.Errorf("exit code %d: got %s, want %s", code, got, want)
		}
	}
}

func TestListsWinOverTheTableOfExitCodes(t *testing.T) {
	for _, c := range []struct {
		code         int
		ok, terminal []int
		want         settle.Verdict
	}{
		{1, []int{0, 1}, nil, settle.VerdictOK},
		{0, []int{1}, nil, settle.VerdictOK}, // a list adds, it takes nothing away
		{64, []int{64}, nil, settle.VerdictOK},
		{2, nil, []int{2}, settle.VerdictTerminal},
		{0, nil, []int{0}, settle.VerdictTerminal},
		{3, []int{1}, []int{2}, settle.VerdictRetry},
		{5, []int{5}, []int{5}, settle.VerdictOK},
		{Signalled, []int{Signalled}, []int{Signalled}, settle.VerdictRetry},
	} {
		if got := Exit(c.code, c.ok, c.terminal); got != c.want {
			t.Errorf("Exit(%d, %v, %v) = %s, want %s", c.code, c.ok, c.terminal, got, c.want)
		}
	}
}
