package verdict

import (
	"slices"

	"github.com/settle-go/settle"
)

// Signalled is the exit code that stands for a command that a signal killed.
const Signalled = -1

// finalCodes are the exit codes that say that trying again is useless.
//
// Source: sysexits.h (64 usage, 65 data, 66 no input, 76 protocol, 77 no
// permission, 78 configuration) and POSIX shells (126 cannot be executed, 127
// not found). 75, EX_TEMPFAIL, is RETRY like every other code.
var finalCodes = []int{64, 65, 66, 76, 77, 78, 126, 127}

// Exit judges a command by its exit code. The codes of ok and terminal win
// over the table: 0 is OK; 64 to 66, 76 to 78, 126 and 127 are TERMINAL; every
// other code is RETRY, 75 among them. A command that a signal killed (a code
// below 0) is always RETRY: the worker lived. A code in both lists is OK.
func Exit(code int, ok, terminal []int) settle.Verdict {
	switch {
	case code < 0:
		return settle.VerdictRetry
	case slices.Contains(ok, code):
		return settle.VerdictOK
	case slices.Contains(terminal, code):
		return settle.VerdictTerminal
	case code == 0:
		return settle.VerdictOK
	case slices.Contains(finalCodes, code):
		return settle.VerdictTerminal
	default:
		return settle.VerdictRetry
	}
}
