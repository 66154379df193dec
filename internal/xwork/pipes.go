package xwork

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// pipes joins a command's three streams to memory. exec.Cmd could do it, but
// its Wait would wait for whoever inherited the streams.
type pipes struct {
	stdin        *os.File
	stdout, errs *os.File
	theirs       []*os.File // the child's ends
	input        []byte
	toOut, toErr io.Writer
	copies       sync.WaitGroup
}

// connect makes the pipes and hands the child's ends to the command.
func connect(cmd *exec.Cmd, input []byte, out, errs io.Writer) (*pipes, error) {
	p := &pipes{input: input, toOut: out, toErr: errs}
	inR, inW, err1 := os.Pipe()
	outR, outW, err2 := os.Pipe()
	errR, errW, err3 := os.Pipe()
	p.stdin, p.stdout, p.errs, p.theirs = inW, outR, errR, []*os.File{inR, outW, errW}
	if err := errors.Join(err1, err2, err3); err != nil {
		p.close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	return p, nil
}

// begin lets go of the child's ends and copies.
func (p *pipes) begin() {
	for _, f := range p.theirs {
		f.Close()
	}
	p.copies.Go(func() {
		p.stdin.Write(p.input) // a command may leave its input unread
		p.stdin.Close()
	})
	p.copies.Go(func() { io.Copy(p.toOut, p.stdout) })
	p.copies.Go(func() { io.Copy(p.toErr, p.errs) })
}

// finish reads what is still in the pipes, for at most d.
func (p *pipes) finish(d time.Duration) {
	p.stdin.Close()
	late := time.Now().Add(d)
	p.stdout.SetReadDeadline(late)
	p.errs.SetReadDeadline(late)
	p.copies.Wait()
}

// close closes whatever is still open.
func (p *pipes) close() {
	for _, f := range append([]*os.File{p.stdin, p.stdout, p.errs}, p.theirs...) {
		f.Close() // on a nil or closed file an error and nothing else
	}
}
