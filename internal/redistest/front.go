package redistest

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Front stands before a server, knows its protocol, and answers errors in its
// place: those of a server that loads its data, became a replica, or moved.
// Everything else is the server's. It ends with its test.
type Front struct {
	server   string
	listener net.Listener
	all      sync.WaitGroup

	mu    sync.Mutex
	ended bool
	rules []*rule
	conns map[net.Conn]struct{}
	seen  map[string]int
}

type rule struct {
	reply    string
	times    int      // left; below zero = without end
	commands []string // none = all
}

// NewFront starts one before the server at addr.
func NewFront(t testing.TB, addr string) *Front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Front{server: addr, listener: l, conns: map[net.Conn]struct{}{}, seen: map[string]int{}}
	f.all.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

// Addr is where clients connect to.
func (f *Front) Addr() string { return f.listener.Addr().String() }

// Answer answers the next so many commands with these names, below zero all
// until Clear, with an error such as "READONLY You can't write …". Without names
// it means every command. Earlier rules go first.
func (f *Front) Answer(times int, reply string, commands ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule{reply, times, commands})
}

// Clear forgets all rules.
func (f *Front) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Seen is how often a command came, however it was answered.
func (f *Front) Seen(command string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[strings.ToUpper(command)]
}

// answer is what is answered in place of the server; "" = nothing.
func (f *Front) answer(words []string) string {
	name := strings.ToUpper(words[0])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[name]++
	for _, r := range f.rules {
		if r.times != 0 && (len(r.commands) == 0 || slices.ContainsFunc(r.commands, func(c string) bool { return strings.EqualFold(c, name) })) {
			r.times--
			return r.reply
		}
	}
	return ""
}

func (f *Front) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", f.server)
		if err != nil {
			client.Close()
			continue
		}
		f.serve(client, server)
	}
}

func (f *Front) serve(client, server net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		client.Close()
		server.Close()
		return
	}
	f.conns[client], f.conns[server] = struct{}{}, struct{}{}
	f.all.Go(func() {
		defer f.hangUp(client, server)
		f.commands(client, server)
	})
	f.all.Go(func() {
		defer f.hangUp(client, server)
		_, _ = io.Copy(client, server) // however it ends
	})
}

// commands passes commands on. One that is not the server's to answer becomes a
// script that answers the error, so that replies keep their order.
func (f *Front) commands(client, server net.Conn) {
	in, out := bufio.NewReader(client), bufio.NewWriter(server)
	for {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		if reply := f.answer(words); reply != "" {
			words = []string{"EVAL", "return redis.error_reply(ARGV[1])", "0", reply}
		}
		writeCommand(out, words)
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

func (f *Front) hangUp(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(f.conns, c)
	}
}

func (f *Front) close() {
	f.listener.Close()
	f.mu.Lock()
	f.ended = true
	for c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.all.Wait()
}
