package redisinbox

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// ErrNotReading: no Run of this process reads the inbox at present.
var ErrNotReading = errors.New("redis inbox: it is not being read")

// LastLook makes sure that whatever lay in the inbox when it was called, answers
// and progress notes, has been offered to a Deliver since: also what another
// process has read, and died over, and what no group knows of. Ask it before a
// wait is ended for silence. It asks the Deliver of a Run of this process, and
// may offer what another offers at this moment.
//
// An error says that something may not have been offered: Redis cannot be read,
// the Deliver failed, nobody runs (ErrNotReading), or ctx has ended.
func (i *Inbox) LastLook(ctx context.Context) error {
	s := i.reading()
	if s == nil {
		return ErrNotReading
	}
	select {
	case s.looks <- struct{}{}:
		defer func() { <-s.looks }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ends, err := s.ends(ctx)
	if err != nil {
		return err
	}
	for key, end := range ends {
		if err := s.walk(ctx, key, s.upTo(key, end)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// reading is a session that reads, if possible one without trouble.
func (i *Inbox) reading() (best *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.sessions {
		if best == nil || s.lanes[0].failure < best.lanes[0].failure {
			best = s
		}
	}
	return best
}

// ends returns the last id of each stream that holds anything.
func (s *session) ends(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.pace.grace)
	defer cancel()
	keys := s.all()
	var cmds rueidis.Commands
	for _, key := range keys {
		cmds = append(cmds, s.redis.B().Xrevrange().Key(key).End("+").Start("-").Count(1).Build())
	}
	ends := map[string]string{}
	for n, r := range s.redis.DoMulti(ctx, cmds...) {
		last, _, err := entries(r)
		if err != nil {
			return nil, err
		}
		if len(last) > 0 {
			ends[keys[n]] = last[0].ID
		}
	}
	return ends, nil
}

// page asks for the next entries of a stream, beginning with an id.
type page func(from string, count int64) rueidis.Completed

// upTo: everything up to an id.
func (s *session) upTo(key, end string) page {
	return func(from string, count int64) rueidis.Completed {
		return s.redis.B().Xrange().Key(key).Start(from).End(end).Count(count).Build()
	}
}

// orphanText asks for old entries, by the clock that gave them their ids.
const orphanText = `
local now = redis.call('TIME')
return redis.call('XRANGE', KEYS[1], ARGV[1], string.format('%.0f', now[1] * 1000 - ARGV[2]), 'COUNT', ARGV[3])`

// orphans: everything that is older than any reader leaves it. Mostly somebody
// acknowledged it and died, or its group was lost.
func (s *session) orphans(key string) page {
	return func(from string, count int64) rueidis.Completed {
		return s.redis.B().Eval().Script(orphanText).Numkeys(1).Key(key).
			Arg(from, strconv.FormatInt(s.pace.orphan.Milliseconds(), 10), strconv.FormatInt(count, 10)).Build()
	}
}

// walk offers everything that the pages hold, whoever has read it, without taking
// it from anybody; only what others may have died of is claimed, so that it is
// counted.
func (s *session) walk(ctx context.Context, key string, next page) error {
	a := appetite{budget: budget}
	for from := "-"; ctx.Err() == nil; {
		count := a.count(1)
		short, done := context.WithTimeout(ctx, s.pace.grace)
		got, held, err := s.look(short, key, next(from, count))
		done()
		if err != nil || len(got) == 0 {
			return err
		}
		list := s.entries(key, got, func(id string) int { return held[id] })
		a.ate(list)
		if err := s.offerLooked(ctx, key, list); err != nil {
			return err
		}
		from = "(" + got[len(got)-1].ID
	}
	return ctx.Err()
}

// look reads a page, and how often each of its entries was delivered; one that
// nobody holds is not listed.
func (s *session) look(ctx context.Context, key string, cmd rueidis.Completed) (got []rueidis.XRangeEntry, held map[string]int, err error) {
	got, _, err = entries(s.redis.Do(ctx, cmd))
	if err != nil || len(got) == 0 {
		return nil, nil, err
	}
	rows, err := waiters(s.redis.Do(ctx, s.redis.B().Xpending().Key(key).Group(group).
		Start(got[0].ID).End(got[len(got)-1].ID).Count(int64(len(got))).Build()))
	held = map[string]int{}
	for _, w := range rows {
		held[w.id] = w.deliveries
	}
	if err != nil && noGroup(err) {
		err = nil
	}
	return got, held, err
}

func (s *session) offerLooked(ctx context.Context, key string, list []Entry) error {
	var innocent []Entry
	for _, e := range list {
		if e.Deliveries < suspect {
			innocent = append(innocent, e)
			continue
		}
		taken, err := s.claim(ctx, key, []waiter{{e.id, e.Deliveries}}, 0)
		if err != nil {
			return err
		}
		if err := s.settle(ctx, taken); err != nil {
			return err
		}
	}
	s.book.add((*counts).ofLooked, len(innocent))
	_, err := s.try(ctx, innocent)
	return err
}

// isProgress reports whether a stream holds progress notes.
func isProgress(key string) bool { return strings.HasSuffix(key, ":progress") }
