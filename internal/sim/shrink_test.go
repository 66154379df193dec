package sim

import (
	"fmt"
	"strings"
)

// shrink looks for a short list that breaks the same rule, by leaving out ever
// smaller parts (Zeller's delta debugging). fails runs a list; it is called at
// most tries times. The setup stays.
//
// Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
func shrink(list []op, found *failure, tries int, fails func([]op) *failure) ([]op, *failure) {
	if found.at > 0 {
		list = list[:found.at+1] // what came later did not matter
	}
	for part := (len(list) - 1) / 2; part > 0; {
		shorter := false
		for lo := 1; lo < len(list) && tries > 0; {
			hi := min(lo+part, len(list))
			rest := append(append([]op{}, list[:lo]...), list[hi:]...)
			tries--
			if f := fails(rest); f != nil && f.rule == found.rule {
				list, found, shorter = rest, f, true
			} else {
				lo = hi
			}
		}
		if !shorter || part > 1 {
			part /= 2
		}
	}
	return list, found
}

// teller writes each step as a line.
func teller(b *strings.Builder) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(b, "  "+format+"\n", args...) }
}
