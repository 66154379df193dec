package redisbox

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/rueidis"
)

var errClosed = errors.New("redisbox: the box is closed")

// line is the client, made when it is first needed: the server may be down when
// a process starts.
type line struct {
	option rueidis.ClientOption

	mu     sync.Mutex
	client rueidis.Client
	closed bool
	dials  *dial // under way
}

type dial struct {
	done chan struct{} // closed when there is a client, or err
	err  error
}

// get returns the client, and connects if there is none. A dial goes on when ctx
// ends: the next caller may use it.
func (l *line) get(ctx context.Context) (rueidis.Client, error) {
	d, client, err := l.ready()
	if d == nil {
		return client, err
	}
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.err != nil {
		return nil, d.err
	}
	_, client, err = l.ready()
	return client, err
}

func (l *line) ready() (*dial, rueidis.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, errClosed
	case l.client != nil:
		return nil, l.client, nil
	case l.dials == nil:
		l.dials = &dial{done: make(chan struct{})}
		go l.dial(l.dials)
	}
	return l.dials, nil, nil
}

// dial ends by itself, within a few of Config.Timeout.
func (l *line) dial(d *dial) {
	client, err := rueidis.NewClient(l.option)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(d.done)
	l.dials = nil
	switch {
	case err != nil:
		d.err = err
		if client != nil {
			client.Close()
		}
	case l.closed:
		client.Close()
	default:
		l.client = client
	}
}

func (l *line) close() {
	l.mu.Lock()
	client := l.client
	l.client, l.closed = nil, true
	l.mu.Unlock()
	if client != nil {
		client.Close()
	}
}
