package xrun

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
)

// kind is the kind of a run's jobs.
const kind = "run"

// queuePrefix begins the name of every run's queue.
const queuePrefix = "run/"

// queue is the run's own queue.
func (p *Plan) queue() string { return queuePrefix + p.Name }

// The name of a lock is the database's, lockMark, a sum of the run's name, and
// lockEnd.
const (
	lockMark = "-run-"
	lockEnd  = ".lock"
)

// lockPath is the file of the run's lock, beside the database.
func (p *Plan) lockPath() string {
	sum := sha256.Sum256([]byte(p.Name))
	return fmt.Sprintf("%s%s%x%s", p.lockBase(), lockMark, sum[:6], lockEnd)
}

// lockBase is the path of the database, links resolved.
func (p *Plan) lockBase() string {
	if real, err := filepath.EvalSymlinks(p.DB); err == nil {
		return real
	}
	return p.DB
}

// jobID is the id that an item always has: run, text, and which of the items
// with the same text it is, counted from 0.
func jobID(run string, item []byte, occurrence uint64) settle.ID {
	return settle.DeriveID([]byte("settle run"), []byte(run), item, binary.BigEndian.AppendUint64(nil, occurrence))
}

// runName makes the name of a run: the program's name, for people, and a sum of
// folder and command.
func runName(folder string, command []string) string {
	h := sha256.New()
	for _, s := range append([]string{folder}, command...) {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	program := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r) {
			return r
		}
		return -1
	}, filepath.Base(command[0]))
	if len(program) > 40 {
		program = program[:40]
	}
	if program == "" || program == "." {
		program = "run"
	}
	return program + "-" + hex.EncodeToString(h.Sum(nil)[:4])
}

// checkName asks the one place that knows what a queue may be named.
func checkName(name string) error {
	n := settle.New{Kind: kind, EnqueueOpts: settle.EnqueueOpts{Queue: queuePrefix + name}}
	_, _, err := n.Prepare(time.Unix(0, 0))
	var invalid *settle.InvalidError
	if errors.As(err, &invalid) {
		return fmt.Errorf("--name: %s", invalid.Problem)
	}
	return err
}

// folder names the folder that commands run in, links resolved.
func (p *Plan) folder() string {
	if real, err := filepath.EvalSymlinks(p.Folder); err == nil {
		return real
	}
	return p.Folder
}

// find finds a program; where shell syntax was meant, its error says so.
func find(program, dir string) (string, error) {
	path, err := child.Find(program, dir)
	if errors.Is(err, child.ErrNotFound) && strings.ContainsAny(program, shellSyntax+" ") {
		return "", noShell(program)
	}
	return path, err
}

// shellSyntax is what no name of a program holds, but a line of a shell does.
const shellSyntax = "|;&<>$`"

func noShell(program string) error {
	return fmt.Errorf("command %q not found: commands run without a shell; for shell syntax write: sh -c '… \"$1\" …' sh {}", program)
}
