package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	zs "zombiezen.com/go/sqlite"

	"github.com/settle-go/settle"
)

// pool keeps a few reading connections. It opens them on demand.
type pool struct {
	path string
	cfg  Config
	free chan direct
	all  chan struct{} // a token for each connection
	gone <-chan struct{}
}

const maxReaders = 4

func newPool(path string, cfg Config, gone <-chan struct{}) *pool {
	return &pool{path: path, cfg: cfg, gone: gone, free: make(chan direct, maxReaders), all: make(chan struct{}, maxReaders)}
}

func (p *pool) get(ctx context.Context) (direct, error) {
	select {
	case c := <-p.free:
		return c, nil
	default:
	}
	select {
	case c := <-p.free:
		return c, nil
	case p.all <- struct{}{}:
		c, err := openConn(p.path, p.cfg, zs.OpenReadWrite|zs.OpenURI)
		if err == nil {
			c.c.SetBusyTimeout(busyLimit) // a process that reads the log after a kill keeps everybody out
			err = c.query("pragma query_only = 1", func(row) error { return nil })
		}
		if err != nil {
			<-p.all
			return c, err
		}
		return c, nil
	case <-p.gone:
		return direct{}, settle.ErrClosed
	case <-ctx.Done():
		return direct{}, context.Cause(ctx)
	}
}

// pause keeps all reads out, once those under way have ended. Ones that last
// longer than limit are not waited for.
func (p *pool) pause(ctx context.Context, limit time.Duration) (resume func()) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var held []direct
	empty := 0
	for late := false; len(held)+empty < maxReaders && !late; {
		select {
		case c := <-p.free:
			held = append(held, c)
		case p.all <- struct{}{}:
			empty++
		case <-timer.C:
			late = true
		case <-p.gone:
			late = true
		case <-ctx.Done():
			late = true
		}
	}
	return func() {
		for range empty {
			<-p.all
		}
		for _, c := range held {
			p.free <- c
		}
	}
}

func (p *pool) close() error {
	var faults []error
	for range maxReaders { // each place is empty, or its connection comes back
		select {
		case c := <-p.free:
			faults = append(faults, c.c.Close())
		case p.all <- struct{}{}:
		}
	}
	return errors.Join(faults...)
}

// read runs fn on one snapshot of the data. No read stays open after it.
func (s *Store) read(ctx context.Context, what string, fn func(c conn, now int64) error) error {
	if s.closed.Load() {
		return fmt.Errorf("%s: %w", what, settle.ErrClosed)
	}
	if s.w.bigLog.CompareAndSwap(true, false) {
		_, _ = s.trimLog(ctx) // tried again; this read is not to blame
	}
	d, err := s.reads.get(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, s.translate(err))
	}
	if err = s.snapshot(ctx, d, fn); ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, s.translate(err))
	}
	return nil
}

func (s *Store) snapshot(ctx context.Context, d direct, fn func(c conn, now int64) error) (err error) {
	defer func() { // also if fn panics
		d.c.SetInterrupt(nil) // first: while it is closed even a rollback fails
		if !d.c.AutocommitEnabled() {
			_, end := d.exec("rollback")
			err = errors.Join(err, end)
		}
		s.reads.free <- d
	}()
	d.c.SetInterrupt(ctx.Done())
	if _, err := d.exec("begin"); err != nil {
		return err
	}
	return fn(d, s.now())
}
