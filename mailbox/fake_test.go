package mailbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("LOADING Redis is loading the dataset in memory")

// fake is a source in memory, with faults.
type fake struct {
	mu          sync.Mutex
	docs        map[string][]byte
	reads       [][]string // keys of each Read
	removed     []string
	err         error         // what Read, Remove say while it is set
	hangs       time.Duration // how long each Read takes; ends with its context
	seen        func(keys []string)
	destructive bool
	refusal     error
	remarks     string

	deaf      error // what Listen says while it is set
	subs      int   // subscriptions, now
	listened  int   // ever
	cut       chan struct{}
	subscribe func(string)
}

func newFake() *fake { return &fake{docs: map[string][]byte{}, cut: make(chan struct{})} }

func (f *fake) Destructive() bool { return f.destructive }

func (f *fake) Check(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.remarks, f.refusal
}

func (f *fake) Read(ctx context.Context, keys []string) []Found {
	f.mu.Lock()
	f.reads = append(f.reads, bytesOf(keys))
	hangs, seen := f.hangs, f.seen
	f.mu.Unlock()
	found := make([]Found, len(keys))
	if hangs > 0 {
		select {
		case <-time.After(hangs):
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, k := range keys {
		doc, there := f.docs[k]
		switch {
		case ctx.Err() != nil:
			found[i].Err = ctx.Err()
		case f.err != nil:
			found[i].Err = f.err
		default:
			found[i] = Found{There: there, Doc: bytes.Clone(doc)}
			if f.destructive {
				delete(f.docs, k)
			}
		}
	}
	if seen != nil {
		seen(keys)
	}
	return found
}

func bytesOf(keys []string) []string { return append([]string(nil), keys...) }

func (f *fake) Remove(_ context.Context, key string, doc []byte) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false, f.err
	}
	have, there := f.docs[key]
	if !there || !bytes.Equal(have, doc) {
		return false, nil
	}
	delete(f.docs, key)
	f.removed = append(f.removed, key)
	return true, nil
}

func (f *fake) Listen(ctx context.Context, up func(), nudge func(string)) error {
	f.mu.Lock()
	f.listened++
	if f.deaf != nil {
		defer f.mu.Unlock()
		return f.deaf
	}
	f.subs++
	f.subscribe = nudge
	cut := f.cut
	f.mu.Unlock()
	up()
	defer func() {
		f.mu.Lock()
		f.subs--
		f.subscribe = nil
		f.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-cut:
		return errors.New("EOF")
	}
}

// drop cuts every subscription.
func (f *fake) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.cut)
	f.cut = make(chan struct{})
}

func (f *fake) set(key string, doc []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.docs[key] = doc
}

// put writes an answer and nudges.
func (f *fake) put(key string, doc []byte) {
	f.set(key, doc)
	f.mu.Lock()
	nudge := f.subscribe
	f.mu.Unlock()
	if nudge != nil {
		nudge(key)
	}
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fake) holds(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.docs[key])
}

func (f *fake) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.reads)
}

// rig is a box on a fake whose Run is under way, in a bubble.
type rig struct {
	*Box
	t    *testing.T
	fake *fake
	log  *lines
	quit func() error // ends Run and returns its error
}

// bubble runs a test of a box in fake time. The box has ended when it ends.
func bubble(t *testing.T, c Config, prepare func(*fake), test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, fake: newFake(), log: &lines{}}
		if prepare != nil {
			prepare(r.fake)
		}
		c.Logger = slog.New(slog.NewTextHandler(r.log, quiet))
		box, err := New(r.fake, c)
		if err != nil {
			t.Fatal(err)
		}
		r.Box = box
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- box.Run(ctx) }()
		r.quit = sync.OnceValue(func() error { cancel(); return <-ran })
		synctest.Wait()
		test(t, r)
		_ = r.quit()
		if s := r.Stats(); s.Waits != 0 || s.Running || s.Subscribed || r.fake.subs != 0 {
			t.Errorf("something is left: %+v, %d subscriptions", s, r.fake.subs)
		}
	})
}

// after does something at a time of the bubble.
func (r *rig) after(d time.Duration, do func()) { time.AfterFunc(d, do) }

// took is how long fn takes in the bubble.
func took(fn func()) time.Duration {
	at := time.Now()
	fn()
	return time.Since(at)
}

// lines counts lines of a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(string(b)))
	return len(b), nil
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

func key(i int) string { return fmt.Sprintf("answer-%d", i) }

// is asks an error for its type.
func is[E error](err error) (e E, ok bool) { return e, errors.As(err, &e) }
