package main

import (
	"net"
	"sync"
	"sync/atomic"
)

// proxy forwards to a server until it is frozen. A frozen link swallows what it
// is given, in both directions, and stays open: a half-open link. A link that
// was frozen once stays dead; new ones work again after the thaw.
type proxy struct {
	listener net.Listener
	target   string
	frozen   atomic.Bool
	cutReply atomic.Bool // close a link instead of forwarding the next reply
	mu       sync.Mutex
	links    []net.Conn
}

func newProxy(target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	p := &proxy{listener: l, target: target}
	go p.accept()
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.links = append(p.links, in, out)
		p.mu.Unlock()
		dead := &atomic.Bool{}
		go p.forward(in, out, dead, false)
		go p.forward(out, in, dead, true)
	}
}

func (p *proxy) forward(from, to net.Conn, dead *atomic.Bool, reply bool) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if p.frozen.Load() {
			dead.Store(true)
		}
		if reply && n > 0 && p.cutReply.CompareAndSwap(true, false) {
			from.Close()
			return
		}
		if !dead.Load() {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.links {
		c.Close()
	}
}
