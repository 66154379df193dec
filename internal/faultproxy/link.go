package faultproxy

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection of a client, and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	dead           atomic.Bool          // half-open, for good
	snip           atomic.Pointer[snip] // its request was forwarded: replies are dropped
}

// snip is one request that will be met by a cut.
type snip struct {
	text    string
	left    int  // requests until then, itself included
	forward bool // the request reaches the server
	done    chan struct{}
}

const longest = 256 // bytes of a text that is looked for across two pieces

func (l *link) close() {
	l.client.Close()
	l.server.Close()
}

// run lives until both directions have ended.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(l.requests)
	both.Go(l.replies)
	both.Wait()
	l.close()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

func (l *link) requests() {
	var before []byte
	err := l.copy(l.client, l.server, func(piece []byte) bool {
		pass := l.proxy.spot(l, before, piece)
		before = append(before, piece...)
		before = before[max(0, len(before)-longest):]
		return pass
	})
	if l.snip.Load() == nil { // else the end belongs to replies
		l.end(l.server, err)
	}
}

func (l *link) replies() {
	err := l.copy(l.server, l.client, func([]byte) bool {
		if l.snip.Load() == nil {
			return true
		}
		l.client.Close()
		// Not Close: that might reset the connection before the server has read
		// what it was sent.
		l.server.CloseWrite()
		return false
	})
	if s := l.snip.Load(); s != nil {
		l.close()
		close(s.done)
		return
	}
	l.end(l.client, err)
}

// copy forwards in one direction until it ends; nil = an orderly end. look sees
// every piece before, and says whether it may pass.
func (l *link) copy(from, to *net.TCPConn, look func([]byte) bool) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !l.dead.Load() && look(buf[:n]) {
			l.proxy.hold()
			if !l.dead.Load() {
				if _, err := to.Write(buf[:n]); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// end tells the other side that this direction has ended, unless the link is dead.
func (l *link) end(other *net.TCPConn, err error) {
	switch {
	case l.dead.Load():
	case err == nil:
		other.CloseWrite()
	default:
		l.close()
	}
}

// spot looks for the text of a cut in a piece of a request, of which before was
// seen before, and reports whether the piece may pass.
func (p *Proxy) spot(l *link, before, piece []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.snip
	if s == nil {
		return true
	}
	if s.text == "" {
		s.left--
	} else {
		s.left -= bytes.Count(append(before[max(0, len(before)-len(s.text)+1):len(before):len(before)], piece...), []byte(s.text))
	}
	if s.left > 0 {
		return true
	}
	p.snip = nil
	if s.forward {
		l.snip.Store(s)
		return true
	}
	l.close()
	close(s.done)
	return false
}

// hold waits for the delay.
func (p *Proxy) hold() {
	p.mu.Lock()
	d := p.delay
	p.mu.Unlock()
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.quit:
	}
}
