package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// load inserts, claims and settles in batches of random size, and acknowledges
// after each commit: "i id" and "s rowid", one write per commit.
func load(file, mode string) {
	sync, pages, _ := strings.Cut(mode, " ")
	s := attach("zombiezen", file, sync)
	s.prepare()
	must(s.conn.Exec("pragma wal_autocheckpoint=" + pages))
	var held []claimed
	for {
		var acks bytes.Buffer
		s.tx(func() {
			for lane := range 1 + rand.IntN(100) {
				id := newID()
				s.insert(id, int64(lane%lanes))
				fmt.Fprintf(&acks, "i %x\n", id)
			}
			s.settle(held)
			for _, j := range held {
				fmt.Fprintf(&acks, "s %d\n", j.n)
			}
			held = s.claim(100, held)
		})
		_, err := os.Stdout.Write(acks.Bytes())
		must(err)
	}
}

// promises collects what a child has acknowledged.
type promises struct {
	mu     sync.Mutex
	ids    [][]byte
	ends   []int64
	closed chan struct{}
}

func (p *promises) listen(k *kid) {
	p.closed = make(chan struct{})
	go func() {
		defer close(p.closed)
		for {
			line, err := k.out.ReadString('\n')
			if err != nil {
				return // the pipe's end; an unfinished line was not acknowledged
			}
			p.mu.Lock()
			if word := strings.TrimSpace(line[2:]); line[0] == 'i' {
				id, err := hex.DecodeString(word)
				must(err)
				p.ids = append(p.ids, id)
			} else {
				n, err := strconv.ParseInt(word, 10, 64)
				must(err)
				p.ends = append(p.ends, n)
			}
			p.mu.Unlock()
		}
	}()
}

// counts answers how many promises were made so far.
func (p *promises) counts() (ids, ends int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ids), len(p.ends)
}

// broken answers how many of the first ids and ends are not in the file.
func (p *promises) broken(s *store, ids, ends int) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	has := map[string]bool{}
	s.conn.Prepare("select id from body", "b").Query(func(r row) { has[string(r.Bytes(0))] = true })
	for _, id := range p.ids[:ids] {
		if !has[string(id)] {
			n++
		}
	}
	over := map[int64]bool{}
	s.conn.Prepare("select n from ended", "i").Query(func(r row) { over[r.Int(0)] = true })
	for _, k := range p.ends[:ends] {
		if !over[k] {
			n++
		}
	}
	return n
}

func kill(dir string) {
	killed(dir, 20)
	copies(dir, 8)
	naive(dir, 20)
}

// killed kills a loaded child at random moments, five times per file.
func killed(dir string, times int) {
	var path string
	var made *promises
	kept, broken, unsound := 0, 0, 0
	for i := range times {
		if i%5 == 0 {
			path, made = fresh(dir), &promises{}
			open("zombiezen", path, "FULL").close()
		}
		k := start("load", path, []string{"FULL", "NORMAL"}[i%2]+" "+[]string{"50", "1000"}[i/2%2])
		made.listen(k)
		time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		must(k.cmd.Process.Kill())
		<-made.closed
		k.cmd.Wait()
		s := attach("zombiezen", path, "FULL")
		if p := s.problems(); p != "" {
			unsound++
			fmt.Println("  kill", i, p)
		}
		ids, ends := made.counts()
		broken += made.broken(s, ids, ends)
		s.close()
		if i%5 == 4 {
			kept += ids + ends
			must(os.RemoveAll(filepath.Dir(path)))
		}
	}
	fmt.Printf("  kill -9, %d times: %d unsound files, %d of %d acknowledged inserts and settles missing\n", times, unsound, broken, kept)
}

// copies stops a loaded child at a random moment, copies db and WAL as a crash
// would leave them, and damages the tail of the WAL copy. Checkpoints are off,
// so every cut is one that a power failure could make: what a checkpoint has
// copied into the database was synced in the WAL first and cannot be cut.
func copies(dir string, moments int) {
	damages := []string{"intact", "cut", "garbled", "zeroed", "junk appended"}
	unsound, gaps, broken, promised := map[string]int{}, 0, 0, 0
	for range moments {
		path, made := fresh(dir), &promises{}
		open("zombiezen", path, "FULL").close()
		k := start("load", path, "FULL 0")
		made.listen(k)
		time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		ids, ends := made.counts()
		must(k.cmd.Process.Signal(syscall.SIGSTOP))
		for _, damage := range damages {
			s, problem := openCopy(dir, path, damage)
			if problem != "" {
				unsound[damage]++
				fmt.Println("  copy", damage, problem)
			}
			if s.number("select coalesce(max(n),0) from body") != s.number("select count(*) from body") {
				gaps++
			}
			if damage == "intact" {
				broken += made.broken(s, ids, ends)
				promised += ids + ends
			}
			s.close()
		}
		must(k.cmd.Process.Kill())
		<-made.closed
		k.cmd.Wait()
		must(os.RemoveAll(filepath.Dir(path)))
	}
	fmt.Printf("  copies at %d random moments × %v: %d unsound, %d with gaps in their history; intact ones miss %d of %d acknowledged\n",
		moments, damages, len(unsound), gaps, broken, promised)
}

func openCopy(dir, path, damage string) (*store, string) {
	to := fresh(dir)
	db, err := os.ReadFile(path)
	must(err)
	wal, err := os.ReadFile(path + "-wal")
	must(err)
	from := rand.IntN(len(wal))
	switch damage {
	case "cut":
		wal = wal[:from]
	case "garbled":
		for i := max(from, len(wal)-16384); i < len(wal); i++ {
			wal[i] = byte(rand.Uint32())
		}
	case "zeroed":
		clear(wal[from:])
	case "junk appended":
		for range 10000 {
			wal = append(wal, byte(rand.Uint32()))
		}
	}
	must(os.WriteFile(to, db, 0o600))
	must(os.WriteFile(to+"-wal", wal, 0o600))
	s := attach("zombiezen", to, "FULL")
	return s, s.problems()
}

// naive copies a live, checkpointing file with plain reads: what a backup by cp
// would get.
func naive(dir string, times int) {
	path := fresh(dir)
	open("zombiezen", path, "FULL").close()
	k := start("load", path, "FULL 50")
	made := &promises{}
	made.listen(k)
	time.Sleep(500 * time.Millisecond)
	unsound := 0
	for range times {
		func() {
			defer func() {
				if recover() != nil { // opening or checking failed outright
					unsound++
				}
			}()
			s, problem := openCopy(dir, path, "intact")
			if problem != "" {
				unsound++
			}
			s.close()
		}()
	}
	must(k.cmd.Process.Kill())
	<-made.closed
	k.cmd.Wait()
	fmt.Printf("  plain copies of a live file: %d of %d unsound\n", unsound, times)
}
