// Package faultproxy stands between a client and a server in tests and does what
// networks do: it drops in silence, cuts, refuses, delays, and loses exactly the
// reply to a request that the server has carried out. It knows no protocol: what
// it looks for in a request is a text.
//
//	p := faultproxy.New(t, server.Addr())
//	client := connect(p.Addr())
//	done := p.CutReply("COMMIT", 2) // the second COMMIT will happen, and nobody will hear of it
//
// Every method may be called at any time, from any number of goroutines.
package faultproxy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections, here called links, from its own address to a
// target. It ends with its test.
type Proxy struct {
	t    testing.TB
	addr string
	all  sync.WaitGroup
	quit chan struct{}

	mu       sync.Mutex
	target   string
	listener net.Listener // nil while it refuses
	links    map[*link]struct{}
	silent   bool
	delay    time.Duration
	snip     *snip
	accepted int
}

// New starts a proxy for a server at the address target, which need not be up.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, addr: FreeAddr(t), target: target, quit: make(chan struct{}), links: map[*link]struct{}{}}
	p.Pass()
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect to: "127.0.0.1:port", the same for all its life.
func (p *Proxy) Addr() string { return p.addr }

// SetTarget sends links that are opened from now on to another server.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Pass forwards new links again, without delay. Links that have fallen silent
// stay so: a connection that a network has forgotten does not come back.
func (p *Proxy) Pass() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent, p.delay, p.snip = false, 0, nil
	if p.listener != nil {
		return
	}
	l, err := listenAgain(p.addr)
	if err != nil {
		p.t.Errorf("proxy: listen again: %v", err)
		return
	}
	p.listener = l
	p.all.Go(func() { p.accept(l) })
}

// Silence makes every link half-open, and every new one until Pass: both ends
// stay connected, and nothing that either says arrives, not even its end.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	p.abandon()
}

// Abandon makes the links that are open now half-open; new ones are forwarded.
func (p *Proxy) Abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandon()
}

func (p *Proxy) abandon() {
	for l := range p.links {
		l.dead.Store(true)
	}
}

// Cut closes both ends of every link; new ones are forwarded.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse cuts every link and refuses connections until Pass.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.close()
	}
}

// Delay holds everything that is read from either end back for d, one piece
// after the other, until Pass.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// CutReply waits for the nth request with text in it, counted from now over all
// links: 1 is the next one, and "" stands in every piece of a request. It
// forwards that request, drops the reply, and cuts the link as soon as there is
// one. The channel is closed when the server has done with that link, and thus
// with the request. A later call replaces an earlier one.
func (p *Proxy) CutReply(text string, n int) <-chan struct{} {
	return p.set(&snip{text: text, left: n, forward: true, done: make(chan struct{})})
}

// CutRequest is CutReply, but the request does not reach the server. What came
// in one piece with it does not either. The channel is closed when it is cut.
func (p *Proxy) CutRequest(text string, n int) <-chan struct{} {
	return p.set(&snip{text: text, left: n, done: make(chan struct{})})
}

func (p *Proxy) set(s *snip) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snip = s
	return s.done
}

// Links is how many links are open, half-open ones among them.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Accepted is how many links were ever opened.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // Refuse, or the end
		}
		p.open(client.(*net.TCPConn))
	}
}

// open forwards a link, or refuses it as well as an accepted one can be.
func (p *Proxy) open(client *net.TCPConn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.SetLinger(0)
		client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server.(*net.TCPConn)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	l.dead.Store(p.silent)
	if p.listener == nil { // refused or ended in the meantime
		l.close()
		return
	}
	p.links[l] = struct{}{}
	p.all.Go(l.run)
}

func (p *Proxy) close() {
	p.Refuse()
	close(p.quit)
	p.all.Wait()
}
