package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	zombie "zombiezen.com/go/sqlite"
)

// kid is a child process that runs this program; its lines come through out.
type kid struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(kind, file, mode string) *kid {
	self, err := os.Executable()
	must(err)
	k := &kid{cmd: exec.Command(self, "-child", kind, "-file", file, "-mode", mode)}
	k.cmd.Stderr = os.Stderr
	k.in, err = k.cmd.StdinPipe()
	must(err)
	out, err := k.cmd.StdoutPipe()
	must(err)
	k.out = bufio.NewReaderSize(out, 1<<16)
	must(k.cmd.Start())
	return k
}

// line waits for the child's next line.
func (k *kid) line() string {
	l, err := k.out.ReadString('\n')
	must(err)
	return strings.TrimSpace(l)
}

// stop closes the child's input, which ends it, and answers its last words.
func (k *kid) stop() string {
	k.in.Close()
	rest, _ := io.ReadAll(k.out)
	must(k.cmd.Wait())
	return strings.TrimSpace(string(rest))
}

func runChild(kind, file, mode string) {
	stop := make(chan struct{})
	go func() { io.Copy(io.Discard, os.Stdin); close(stop) }()
	switch kind {
	case "saturate":
		saturate(file, mode, stop)
	case "ticker":
		ticker(file, stop)
	case "probe":
		probe(file)
	case "library":
		libraryChild(file, mode)
	case "count":
		count(file)
	case "append":
		appendRows(file)
	case "load":
		load(file, mode)
	}
}

func ended(stop chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// beginPatiently takes the write lock by trying every millisecond; busy_timeout
// must be off. SQLite's own busy handler backs off to 100 ms instead.
func beginPatiently(s *store) {
	z := s.begin.(zStmt)
	for {
		_, err := z.s.Step()
		if err == nil {
			must(z.s.Reset())
			return
		}
		if zombie.ErrCode(err).ToPrimary() != zombie.ResultBusy {
			must(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func (s *store) patientTx(patient bool, f func()) {
	if patient {
		beginPatiently(s)
	} else {
		s.begin.Exec()
	}
	f()
	s.commit.Exec()
}

// saturate commits back to back: insert 50, claim 50, settle 50. mode names the
// synchronous level and, with "yield", lets go of the lock for 2 ms after each
// 50 ms; with "retry" it asks for the lock every millisecond.
func saturate(file, mode string, stop chan struct{}) {
	s := attach("zombiezen", file, strings.Fields(mode)[0])
	s.prepare()
	yield, retry := strings.Contains(mode, "yield"), strings.Contains(mode, "retry")
	if retry {
		must(s.conn.Exec("pragma busy_timeout=0"))
	}
	fmt.Println("ready")
	var held []claimed
	n, began, pause := 0, time.Now(), time.Now()
	for !ended(stop) {
		s.patientTx(retry, func() {
			s.insertN(50)
			s.settle(held)
			held = s.claim(50, held)
		})
		n += len(held)
		if yield && time.Since(pause) > 50*time.Millisecond {
			time.Sleep(2 * time.Millisecond)
			pause = time.Now()
		}
	}
	fmt.Printf("%.0f\n", float64(n)/time.Since(began).Seconds())
	s.close()
}

// processes measures how long an enqueue of this process waits beside a
// saturated writer process, with and without the writer yielding and this side
// retrying every millisecond.
func processes(dir string) {
	ways := []string{"busy_timeout", "busy_timeout yield", "retry", "retry yield"}
	for _, sync := range []string{"FULL", "NORMAL"} {
		lat, t := map[string][]float64{}, table{}
		for range *rounds {
			for _, way := range ways {
				l, rate := beside(fresh(dir), sync, way, 1)
				lat[way] = append(lat[way], l...)
				t.add("rate", way, rate[0])
			}
		}
		for _, way := range ways {
			waits(fmt.Sprintf("%s, %s (writer × %.2f of plain)", sync, way, t.ratio("rate", way, "rate", ways[0])), lat[way])
		}
		two(fresh(dir), sync, t.median("rate", "retry yield"))
	}
}

// two lets two saturated processes share the file, a third enqueues.
func two(path, sync string, alone float64) {
	lat, rates := beside(path, sync, "retry yield", 2)
	waits(fmt.Sprintf("%s, two saturated writers (× %.2f and × %.2f of one alone)", sync, rates[0]/alone, rates[1]/alone), lat)
}

func beside(path, sync, way string, writers int) (lat, rates []float64) {
	s := open("zombiezen", path, sync)
	defer os.RemoveAll(filepath.Dir(path))
	defer s.close()
	retry := strings.Contains(way, "retry")
	if retry {
		must(s.conn.Exec("pragma busy_timeout=0"))
	}
	kids := make([]*kid, writers)
	for i := range kids {
		kids[i] = start("saturate", path, sync+" "+way)
		kids[i].line()
	}
	for begun := time.Now(); time.Since(begun) < 5*duration(); {
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond)
		at := time.Now()
		s.patientTx(retry, func() { s.insert(newID(), 0) })
		lat = append(lat, ms(time.Since(at)))
	}
	for _, k := range kids {
		k.in.Close()
	}
	for _, k := range kids {
		var rate float64
		_, err := fmt.Sscan(k.stop(), &rate)
		must(err)
		rates = append(rates, rate)
	}
	return lat, rates
}

// probe reports whether another process may write now: "busy" or "free".
func probe(file string) {
	s := attach("zombiezen", file, "NORMAL")
	must(s.conn.Exec("pragma busy_timeout=0"))
	err := s.conn.Exec("begin immediate")
	switch {
	case err == nil:
		must(s.conn.Exec("rollback"))
		fmt.Println("free")
	case zombie.ErrCode(err).ToPrimary() == zombie.ResultBusy:
		fmt.Println("busy")
	default:
		fmt.Println(errors.Unwrap(err), err)
	}
	s.close()
}
