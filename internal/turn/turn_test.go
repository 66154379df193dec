package turn

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden replays testdata/ring.txt. Its lines are calls; "->" begins what
// the ring answered.
func TestGolden(t *testing.T) {
	const file = "testdata/ring.txt"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := New[string](8)
	for line := range strings.Lines(string(src)) {
		line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), " ->")
		out.WriteString(line)
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			out.WriteString(" -> " + play(&r, f))
		}
		out.WriteByte('\n')
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out.String() != string(src) {
		t.Errorf("the ring answers\n%s", out.String())
	}
}

// play carries out one line: "new SIZE", "add LANE…", "claim N LIMIT LANE=HAS…".
// A claim asks the lanes of Next and fills by age from those named first.
func play(r **Ring[string], f []string) string {
	number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	switch f[0] {
	case "new":
		*r = New[string](number(1))
	case "add":
		var got []string
		for _, lane := range f[1:] {
			got = append(got, fmt.Sprint((*r).Add(lane)))
		}
		return strings.Join(got, " ") + " " + show(*r)
	case "claim":
		n := number(1)
		lanes, share := (*r).Next(n, number(2))
		gave := map[string]int{}
		take := func(lane string, most int) {
			for i, has := range f[3:] {
				name, left, _ := strings.Cut(has, "=")
				have, _ := strconv.Atoi(left)
				if got := min(most, have); name == lane && got > 0 {
					gave[lane] += got
					n -= got
					f[3+i] = name + "=" + strconv.Itoa(have-got)
				}
			}
		}
		for _, lane := range lanes {
			take(lane, min(share, n))
		}
		for _, has := range f[3:] {
			name, _, _ := strings.Cut(has, "=")
			take(name, n)
		}
		got := fmt.Sprintf("ask %v share %d got %v ", lanes, share, gave)
		(*r).Learn(lanes, share, gave)
		return got + show(*r)
	}
	return show(*r)
}

func show(r *Ring[string]) string {
	lanes := []string{}
	for i := range r.n {
		lanes = append(lanes, r.order[(r.first+i)%len(r.order)])
	}
	return fmt.Sprintf("ring %v", lanes)
}

func TestP4EveryLaneIsAskedOnceARound(t *testing.T) {
	r := New[int](1000)
	for lane := range 1000 {
		r.Add(lane)
	}
	asked := map[int]int{}
	for range 100 { // 100 claims of 50 jobs: five rounds
		lanes, share := r.Next(50, 256)
		if share != 1 || len(lanes) != 50 {
			t.Fatalf("%d lanes share %d, want 50 and 1", len(lanes), share)
		}
		gave := map[int]int{}
		for _, lane := range lanes {
			asked[lane]++
			gave[lane] = 1
		}
		r.Learn(lanes, share, gave)
	}
	for lane := range 1000 {
		if asked[lane] != 5 {
			t.Errorf("lane %d was asked %d times, want 5", lane, asked[lane])
		}
	}
}

func TestP4AFloodCannotTakeMoreThanItsShare(t *testing.T) {
	r := New[string](16)
	for _, lane := range []string{"flood", "b", "c", "d"} {
		r.Add(lane)
	}
	lanes, share := r.Next(100, 256)
	if share != 25 || !slices.Equal(lanes, []string{"flood", "b", "c", "d"}) {
		t.Errorf("lanes %v share %d", lanes, share)
	}
}

func TestRingIsBoundedAndHoldsALaneOnce(t *testing.T) {
	r := New[int](3)
	for range 2 {
		for lane := range 10 {
			r.Add(lane)
		}
	}
	if r.Len() != 3 {
		t.Errorf("%d lanes, want 3", r.Len())
	}
	lanes, _ := r.Next(10, 10)
	r.Learn(lanes, 1, nil)
	if r.Len() != 0 || !r.Add(9) {
		t.Error("a ring that was emptied takes no lane")
	}
}

func TestANudgeDuringTheClaimKeepsTheLane(t *testing.T) {
	r := New[string](4)
	r.Add("a")
	r.Add("b")
	lanes, share := r.Next(2, 9)
	if r.Add("a") {
		t.Error("a lane that is being asked enters a second time")
	}
	r.Learn(lanes, share, map[string]int{})
	if got := show(r); got != "ring [a]" {
		t.Errorf("%s, want the nudged lane alone", got)
	}
}

func TestAClaimThatFailedTeachesNothing(t *testing.T) {
	r := New[string](4)
	r.Add("a")
	r.Add("b")
	lanes, _ := r.Next(2, 9)
	r.Learn(lanes, 0, nil)
	if got := show(r); got != "ring [a b]" {
		t.Errorf("%s, want both lanes", got)
	}
}

func BenchmarkClaimCycle(b *testing.B) {
	r := New[int](10_000)
	for lane := range 10_000 {
		r.Add(lane)
	}
	for b.Loop() {
		lanes, share := r.Next(100, 256)
		gave := make(map[int]int, len(lanes))
		for _, lane := range lanes {
			gave[lane] = 1
		}
		r.Learn(lanes, share, gave)
	}
}
