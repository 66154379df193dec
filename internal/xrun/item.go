package xrun

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// itemKey carries the item's number in the input in which it was first seen,
// for {#} and for people. The id makes it unique over all inputs.
func itemKey(number int64, id settle.ID) string {
	return strconv.FormatInt(number, 10) + "-" + id.String()[:8] + id.String()[24:]
}

// itemNumber reads the number; 0 = there is none.
func itemNumber(key string) int64 {
	digits, _, _ := strings.Cut(key, "-")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// IsRun reports whether a queue is that of a run.
func IsRun(queue string) bool { return strings.HasPrefix(queue, queuePrefix) }

// ItemText writes an item, which is the input of a run's job, for people: safe,
// quoted, on one line, and not too long.
func ItemText(item []byte) string { return itemText(item) }

// itemText writes an item for people: quoted, on one line, and not too long.
func itemText(item []byte) string {
	const most = 100
	s := string(item)
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
		if !child.Showable(s) {
			return child.Quote(string(item[:cut])) + "…"
		}
	}
	if child.Showable(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return child.Quote(s)
}
