package mutants

import (
	"flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	all  = flag.Bool("mutants", false, "run every mutant and see which test notices")
	only = flag.String("only", "", "with -mutants: only those whose name matches")
	jobs = flag.Int("jobs", runtime.NumCPU(), "with -mutants: how many are run at once")
	loud = flag.Bool("loud", false, "with -mutants: print what the test that noticed said")
)

// fewest is how many mutants there must be.
const fewest = 25

// TestEveryMutantIsCaught takes minutes: make mutants.
func TestEveryMutantIsCaught(t *testing.T) {
	if !*all {
		t.Skip("only with -mutants: make mutants")
	}
	which, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(read(t), func(m mutant) bool { return !which.MatchString(m.name) })
	c, began := copyTree(t), time.Now()
	sound(t, c, list)
	fmt.Printf("the tree passes without mutants (%s)\n", since(began))

	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan mutant)
	caught := 0
	for range *jobs {
		scratch := t.TempDir()
		wg.Go(func() {
			for m := range next {
				start := time.Now()
				f := c.try(t.Context(), m, scratch)
				mu.Lock()
				if report(t, m, f, since(start)) {
					caught++
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range list {
		next <- m
	}
	close(next)
	wg.Wait()
	fmt.Printf("%d of %d mutants caught (%s)\n", caught, len(list), since(began))
}

// report prints mutant → test, or why there is none.
func report(t *testing.T, m mutant, f found, took string) (caught bool) {
	head := fmt.Sprintf("%-3s %s: %s", m.promise, m.name, m.breaks)
	switch {
	case f.err != nil:
		t.Errorf("%s\n%v", head, f.err)
	case f.test == "":
		t.Errorf("%s\nNOT CAUGHT by %v", head, m.tests)
	default:
		how := ""
		if f.how != "" {
			how = " " + f.how
		}
		fmt.Printf("%s\n    → %s %s%s (%s)\n      %s\n", head, f.pkg, f.test, how, took, f.first())
		if *loud {
			fmt.Println(f.said)
		}
		return true
	}
	return false
}

func since(began time.Time) string { return time.Since(began).Round(100 * time.Millisecond).String() }

// sound checks that no test that is to notice a mutant fails without one.
func sound(t *testing.T, c tree, list []mutant) {
	t.Helper()
	patterns := map[string][]string{} // by package: tests at the top
	for _, m := range list {
		for _, one := range m.tests {
			top, _, _ := strings.Cut(one.run, "/")
			patterns[one.pkg] = append(patterns[one.pkg], top)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(patterns)) {
		one := target{pkg: pkg}
		if !slices.Contains(patterns[pkg], "") {
			slices.Sort(patterns[pkg])
			one.run = strings.Join(slices.Compact(patterns[pkg]), "|")
		}
		if f := c.run(t.Context(), one); f.err != nil || f.test != "" {
			t.Fatalf("without any mutant, %s fails: %s%s%v", pkg, f.test, f.said, f.err)
		}
	}
}

func read(t *testing.T) []mutant {
	t.Helper()
	list, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Whoever moves a line that a mutant breaks moves the mutant along.
func TestEveryMutantStillApplies(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]string{}
	list := read(t)
	if len(list) < fewest {
		t.Errorf("%d mutants, want %d or more", len(list), fewest)
	}
	for _, m := range list {
		number, _, _ := strings.Cut(m.name, "-")
		if other := numbers[number]; other != "" {
			t.Errorf("%s has the number of %s", m.name, other)
		}
		numbers[number] = m.name
		for _, one := range m.tests {
			if _, err := os.Stat(filepath.Join(root, one.pkg)); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
		changed, err := m.apply(root)
		if err != nil {
			t.Error(err)
		}
		for name, text := range changed {
			if strings.HasSuffix(name, ".go") {
				if _, err := format.Source([]byte(text)); err != nil {
					t.Errorf("%s: %s: %v", m.name, name, err)
				}
			}
		}
	}
}
