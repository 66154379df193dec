package demo

import (
	"context"
	"errors"
	"sync"
)

// ErrNothing: nothing lies under the key.
var ErrNothing = errors.New("nothing is there")

// Mailbox is where nodes leave answers under keys.
type Mailbox interface {
	// Put writes an answer, and then nudges.
	Put(ctx context.Context, key string, doc []byte) error
	// Take reads an answer and removes it, in one step. ErrNothing = there is none.
	Take(ctx context.Context, key string) ([]byte, error)
	// Holds reports whether an answer lies under the key, and takes nothing.
	Holds(ctx context.Context, key string) (bool, error)
	// Listen calls nudge for answers that come, perhaps, until ctx ends.
	Listen(ctx context.Context, nudge func())
}

// Stream is where nodes add answers to a stream.
type Stream interface {
	// Add appends an answer. nil = it lies there.
	Add(ctx context.Context, stream, ticket string, doc []byte) error
}

// Memory is a Mailbox of this process. The zero Memory is empty.
type Memory struct {
	mu    sync.Mutex
	docs  map[string][]byte
	nudge func()
}

// Put never fails.
func (m *Memory) Put(_ context.Context, key string, doc []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.docs == nil {
		m.docs = map[string][]byte{}
	}
	m.docs[key] = doc
	if m.nudge != nil {
		m.nudge()
	}
	return nil
}

// Take returns ErrNothing or an answer.
func (m *Memory) Take(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	doc, ok := m.docs[key]
	if !ok {
		return nil, ErrNothing
	}
	delete(m.docs, key)
	return doc, nil
}

// Holds never fails.
func (m *Memory) Holds(_ context.Context, key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.docs[key]
	return ok, nil
}

// Listen is for one listener. Its nudge must not block.
func (m *Memory) Listen(ctx context.Context, nudge func()) {
	m.mu.Lock()
	m.nudge = nudge
	m.mu.Unlock()
	<-ctx.Done()
}
