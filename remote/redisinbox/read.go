package redisinbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// lane is what one blocking read spans: everything, or one shard on Cluster.
type lane struct {
	keys     []string
	appetite appetite

	// Under Inbox.mu.
	began   time.Time // of the session
	last    time.Time // of the last success; zero = none yet
	since   time.Time // since when every read succeeded; zero = the last has failed
	failure int       // in a row
}

func (s *session) readAll(ctx context.Context, l *lane) {
	for ctx.Err() == nil {
		list, err := s.readOnce(ctx, l)
		if err != nil {
			s.unreadable(ctx, l, err)
			continue
		}
		s.readable(l)
		_ = s.settle(ctx, list) // was noted; the rest is taken over
	}
}

// readOnce waits for entries. It has a deadline of its own: the library sets none
// on a blocking command, and a half-open link would hold it for ever. It does not
// end with the session: Redis might just have given us something.
func (s *session) readOnce(ctx context.Context, l *lane) (list []Entry, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Block+s.pace.grace)
	defer cancel()
	news := make([]string, len(l.keys))
	for i := range news {
		news[i] = ">"
	}
	got, err := s.redis.Do(ctx, s.redis.B().Xreadgroup().Group(group, s.name).Count(l.appetite.count(len(l.keys))).
		Block(s.cfg.Block.Milliseconds()).Streams().Key(l.keys...).Id(news...).Build()).AsXRead()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, err
	}
	for _, key := range l.keys {
		list = append(list, s.entries(key, got[key], func(string) int { return 1 })...)
	}
	l.appetite.ate(list)
	s.book.add((*counts).ofRead, len(list))
	return list, nil
}

// entries makes entries of what a stream holds. Those whose ticket cannot be read
// are given to nobody: they come back marked, to be removed.
func (s *session) entries(key string, got []rueidis.XRangeEntry, deliveries func(id string) int) (list []Entry) {
	for _, x := range got {
		e, ok := read(key, x, deliveries(x.ID))
		if !ok {
			e.unreadable = true
			s.book.odd(strange(key, x))
		}
		list = append(list, e)
	}
	return list
}

// readable books a success of a lane.
func (s *session) readable(l *lane) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if stale := !l.last.IsZero() && now.Sub(l.last) > s.bound(); stale || l.since.IsZero() {
		l.since = now
		if stale { // a Deliver took longer than any read
			s.book.lost(now)
		}
	}
	l.last, l.failure = now, 0
	if s.sound(now, 0) {
		s.book.recovered(s.log, now)
	}
}

// unreadable books a failure, and waits.
func (s *session) unreadable(ctx context.Context, l *lane, err error) {
	s.mu.Lock()
	l.since = time.Time{}
	l.failure++
	n := l.failure
	lasting := time.Since(l.began) > s.pace.renew && time.Since(l.last) > s.pace.renew
	s.mu.Unlock()
	s.book.lost(time.Now())
	s.trouble("read", err)
	if noGroup(err) { // emptied, or another server
		s.groups(ctx)
	}
	if lasting {
		s.stop()
		return
	}
	pause(ctx, n-1)
}

// bound is how old a success may be while reading goes on undisturbed.
func (s *session) bound() time.Duration { return s.cfg.Block + s.pace.grace }

// sound reports whether every lane is being read, and was for so long. Under Inbox.mu.
func (s *session) sound(now time.Time, d time.Duration) bool {
	for _, l := range s.lanes {
		if l.since.IsZero() || now.Sub(l.last) > s.bound() || now.Sub(l.since) < d {
			return false
		}
	}
	return true
}

// Readable reports whether this process has read the inbox without a gap for so
// long, so that a silence in that time is the node's. It is false while nobody
// runs, after an error until the time has passed again, and while a Deliver holds
// the reading up. A link that has just died shows after Block + 3 s only: ask
// LastLook too.
func (i *Inbox) Readable(d time.Duration) bool {
	return i.sound(time.Now(), d)
}

func (i *Inbox) sound(now time.Time, d time.Duration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.sessions, func(s *session) bool { return s.sound(now, d) })
}

// groups creates the group of every stream from its beginning: what a group that
// was lost had delivered, and nobody removed, is then read again. Errors show in
// what is read next: a full server refuses to create also what exists.
func (s *session) groups(ctx context.Context) {
	ctx, cancel := s.command(ctx)
	defer cancel()
	var cmds rueidis.Commands
	for _, key := range s.all() {
		cmds = append(cmds, s.redis.B().XgroupCreate().Key(key).Group(group).Id("0").Mkstream().Build())
	}
	for _, r := range s.redis.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil && !starts(err, "BUSYGROUP") {
			s.trouble("create groups", err)
		}
	}
}

func noGroup(err error) bool { return starts(err, "NOGROUP") || starts(err, "UNBLOCKED") }

// starts reports whether err is an error reply that begins so. The library drops
// the word ERR.
func starts(err error, code string) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(reply.Error(), code)
}
