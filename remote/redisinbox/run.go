package redisinbox

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle"
)

// Run reads the inbox, and gives what it reads to deliver, until ctx ends. Then it
// lets what was read be delivered, and returns nil: after Block and a Deliver, and
// 3 s more when Redis does not answer. It waits for a Redis that is away as long
// as that takes.
//
// Any number of Runs, in any number of processes, share the entries. One has one
// client, with one blocking read; on Cluster, where a read cannot span shards,
// with one for each shard. All its goroutines and connections end with it.
func (i *Inbox) Run(ctx context.Context, deliver Deliver) error {
	name := settle.NewID().String() // new for each start: a dead one's entries are never mistaken for ours
	for n := 0; ctx.Err() == nil; n++ {
		client, err := rueidis.NewClient(i.cfg.Client)
		if err != nil {
			i.trouble("connect", err)
			pause(ctx, n)
			continue
		}
		n = 0
		i.book.add((*counts).ofConnects, 1)
		i.session(ctx, client, name, deliver)
		client.Close()
	}
	return nil
}

// session is the time between two clients: most are as long as Run. It reads until
// its context ends, or nothing could be read for so long that a client made anew
// may help, as when names lead elsewhere by now.
type session struct {
	*Inbox
	redis   rueidis.Client
	name    string // as a consumer
	deliver Deliver
	lanes   []*lane
	walks   appetite // of the take-over
	looks   chan struct{}
	stop    context.CancelFunc
}

func (i *Inbox) session(ctx context.Context, client rueidis.Client, name string, deliver Deliver) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &session{Inbox: i, redis: client, name: name, deliver: deliver, stop: stop, looks: make(chan struct{}, 1), walks: appetite{budget: budget}}
	shards := i.keys()
	if client.Mode() != rueidis.ClientModeCluster {
		shards = [][]string{slices.Concat(shards...)}
	}
	for _, keys := range shards {
		s.lanes = append(s.lanes, &lane{keys: keys, began: time.Now(), appetite: appetite{budget: budget / len(shards)}})
	}
	s.groups(ctx)
	i.enter(s)
	defer i.leave(s)
	var all sync.WaitGroup
	for _, l := range s.lanes {
		all.Go(func() { s.readAll(ctx, l) })
	}
	all.Go(func() { s.keep(ctx) })
	all.Wait()
	if i.sound(time.Now(), 0) {
		s.forget(0, s.name)
	}
}

func (i *Inbox) enter(s *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sessions = append(i.sessions, s)
}

func (i *Inbox) leave(s *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sessions = slices.DeleteFunc(i.sessions, func(other *session) bool { return other == s })
}

// pause waits 50 to 150 ms, doubled with each failure in a row up to ten times
// that, so that no loop spins on a connection that is refused.
func pause(ctx context.Context, failures int) {
	d := min(time.Second, 100*time.Millisecond<<min(failures, 4))
	sleep(ctx, d/2+rand.N(d))
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// command gives a command its deadline. It does not end with the session: what
// was read is settled, and its removal heard of.
func (s *session) command(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.pace.grace)
}

// all are the streams of all shards.
func (s *session) all() (keys []string) {
	for _, l := range s.lanes {
		keys = append(keys, l.keys...)
	}
	return keys
}

// appetite says how many entries are read at once. Entries may be of any size, so
// it grows only with what has been seen.
type appetite struct {
	budget int // bytes that are meant to be in hand at most
	hand   int // entries; 0 = not known yet
}

const (
	most   = 500        // entries in one Deliver
	least  = 2 * Shards // entries to begin with: one of each stream
	budget = 16 << 20   // bytes
)

// count is how many entries to ask of each of so many streams.
func (a *appetite) count(streams int) int64 {
	return int64(max(1, max(a.hand, least)/streams))
}

// ate tells what was read.
func (a *appetite) ate(list []Entry) {
	bytes := 0
	for _, e := range list {
		bytes += len(e.Doc)
	}
	if len(list) == 0 {
		a.hand = least
		return
	}
	a.hand = max(1, min(most, 2*max(a.hand, least), a.budget/(bytes/len(list)+1)))
}
