package xrun

import (
	"fmt"
	"io"
	"sync"
)

// console is where people look: standard error, with one line of progress that
// is rewritten in place, if it is a terminal. Standard output goes through it
// as well, so that the two never write into each other's lines.
type console struct {
	mu   sync.Mutex
	err  io.Writer
	live bool
	line string // the line of progress that stands there now
}

// clear begins a line of a terminal anew.
const clear = "\r\x1b[K"

// say writes one line of our own.
func (c *console) say(format string, args ...any) {
	c.with(func() { fmt.Fprintf(c.err, "settle: "+format+"\n", args...) })
}

// with takes the line of progress away, calls f and puts it back.
func (c *console) with(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != "" {
		io.WriteString(c.err, clear)
	}
	f()
	if c.line != "" {
		io.WriteString(c.err, c.line)
	}
}

// progress shows how it stands. Where nothing can be rewritten it is a line as
// any other.
func (c *console) progress(line string) {
	if !c.live {
		c.say("%s", line)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if line != c.line {
		io.WriteString(c.err, clear+line)
		c.line = line
	}
}

// done takes the line of progress away for good.
func (c *console) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != "" {
		io.WriteString(c.err, clear)
		c.line = ""
	}
}
