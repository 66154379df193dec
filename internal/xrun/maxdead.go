package xrun

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxDead is how many items may die before claiming stops. The zero value sets
// no bound.
type MaxDead struct {
	Set     bool
	N       int
	Percent bool // N is a percentage of the items that ended
}

// percentFrom is how many items must have ended before a percentage says
// anything.
const percentFrom = 20

// ParseMaxDead reads "5" or "10%". "" sets no bound.
func ParseMaxDead(s string) (MaxDead, error) {
	if s == "" {
		return MaxDead{}, nil
	}
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 {
		return MaxDead{}, fmt.Errorf("--max-dead %q: want a number such as 5, or a percentage such as 10%%", s)
	}
	return MaxDead{true, n, percent}, nil
}

// Reached reports whether so many dead among so many ended are too many. The
// bound itself is still allowed.
func (m MaxDead) Reached(dead, ended int64) bool {
	switch {
	case !m.Set:
		return false
	case m.Percent:
		return ended >= percentFrom && dead*100 > ended*int64(m.N)
	default:
		return dead > int64(m.N)
	}
}

// String writes it as it was given.
func (m MaxDead) String() string {
	if m.Percent {
		return strconv.Itoa(m.N) + "%"
	}
	return strconv.Itoa(m.N)
}
