// Command breaker runs the same cases against this module's breaker and the two
// that Go programs use most, and prints which of them keeps which guard: the
// table of docs/decisions/005-own-breaker.md. It takes some seconds of real
// time; on a machine that is busy with other things a case may go wrong.
//
//	cd bench/lab/breaker && go run .
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Real times: how long a breaker stays open, and how long a probe may hang.
const (
	openTime = 60 * time.Millisecond
	lease    = 60 * time.Millisecond
)

// result is how a call that was admitted ends.
type result string

const (
	success   result = "success"
	answered  result = "answered" // the node says, in good form, that it cannot
	failure   result = "failure"
	cancelled result = "cancelled"
	panics    result = "panic"
	goexits   result = "Goexit"
)

// rules are what each breaker is made with.
type rules struct {
	failures, probes int
	openMax          time.Duration // 0 = openTime: neither growth nor jitter
	jitter           bool
	onChange         func(p peer)
}

// peer is one breaker. do and permit are two ways in, which a case never mixes.
type peer interface {
	// do makes one call by the library's own function for that, which blocks
	// until end gives a result. It reports whether the call was admitted.
	do(end func() result) (admitted bool)
	// permit makes a call in two steps: settle may be called later, or never.
	permit() (settle func(result), ok bool)
	state() string
}

// What only some can do.
type (
	// forecaster knows when a call can be admitted; 0 = it does not say.
	forecaster interface{ next() time.Duration }
	// teller says whether an outcome was ignored as too late.
	teller interface {
		permitThatTells() (settle func(result) (heard bool), ok bool)
	}
	// deliverer hears of a delivery long after the submission has been settled.
	deliverer interface {
		submit() (deliver func(result), ok bool)
	}
	// restorer hears of a delivery in another process than the submission's.
	restorer interface {
		submitAndStore() (ticket string, ok bool)
		restored(ticket string, r result)
		count() int // failures in a row
	}
)

// library makes breakers of one kind.
type library struct {
	name, module string
	note         string
	make         func(rules) peer
}

var libraries = []library{
	{"gobreaker", "github.com/sony/gobreaker/v2", "IsSuccessful takes an answer, IsExcluded a cancellation", newGobreaker(false)},
	{"gobreaker, answers excluded", "github.com/sony/gobreaker/v2", "IsExcluded takes an answer and a cancellation", newGobreaker(true)},
	{"failsafe-go", "github.com/failsafe-go/failsafe-go", "neither answer nor cancellation is a failure; growth is code of ours in WithDelayFunc", newFailsafe},
	{"own", "github.com/settle-go/settle", "package breaker", newOwn},
}

func main() {
	verdicts := make([][]string, len(guards))
	var all sync.WaitGroup
	for i, g := range guards {
		verdicts[i] = make([]string, len(libraries))
		for j, l := range libraries {
			all.Go(func() { verdicts[i][j] = g.verdict(l) })
		}
	}
	all.Wait()

	fmt.Print("| guard |")
	for _, l := range libraries {
		fmt.Printf(" %s |", l.name)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---|", len(libraries)))
	kept := make([]int, len(libraries))
	for i, g := range guards {
		fmt.Printf("| %s | %s |\n", g.name, strings.Join(verdicts[i], " | "))
		for j, v := range verdicts[i] {
			if v == "yes" {
				kept[j]++
			}
		}
	}
	fmt.Print("| **kept** |")
	for _, n := range kept {
		fmt.Printf(" %d of %d |", n, len(guards))
	}
	fmt.Println()
	for _, l := range libraries {
		fmt.Printf("\n%s: %s %s; %s", l.name, l.module, version(l.module), l.note)
	}
	fmt.Println()
	if kept[len(kept)-1] != len(guards) {
		fmt.Fprintln(os.Stderr, "our own breaker misses a guard")
		os.Exit(1)
	}
}

func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "?"
	}
	for _, d := range info.Deps {
		if d.Path == module && d.Replace == nil {
			return d.Version
		}
	}
	return "of this tree"
}
