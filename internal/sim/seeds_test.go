package sim

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

const seedsFile = "testdata/seeds.txt"

// kept is one line of the file of seeds that failed once: a number, or a list of
// operations, which lasts when the choice of operations changes.
type kept struct {
	line string
	list []op
}

// readSeeds reads the lists that are replayed first, for ever.
func readSeeds(t *testing.T) (out []kept) {
	t.Helper()
	f, err := os.Open(seedsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		list, err := parseList(line)
		if err != nil {
			t.Fatalf("%s: %q: %v", seedsFile, line, err)
		}
		out = append(out, kept{line, list})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// parseList reads a seed, or a list of operations as text writes it.
func parseList(line string) (list []op, err error) {
	if seed, err := strconv.ParseUint(line, 10, 64); err == nil {
		return opsOf(seed), nil
	}
	for _, word := range strings.Fields(line) {
		name, hex, ok := strings.Cut(word, ":")
		seed, err := strconv.ParseUint(hex, 16, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q: want name:hexadecimal seed", word)
		}
		list = append(list, op{name, seed})
	}
	if len(list) == 0 || list[0].name != "setup" {
		return nil, fmt.Errorf("a list begins with its setup")
	}
	return list, nil
}

// keep appends a list that failed to the file.
func keep(list []op, f *failure) error {
	file, err := os.OpenFile(seedsFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	why, _, _ := strings.Cut(f.Error(), "\n")
	_, err = fmt.Fprintf(file, "%s # %.120s\n", text(list), why)
	if end := file.Close(); err == nil {
		err = end
	}
	return err
}
