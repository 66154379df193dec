package redisinbox

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// keep does what keeps the inbox clean, at once and then again and again: what a
// dead process has left is taken over each third of TakeOver, and rarer what no
// take-over finds.
func (s *session) keep(ctx context.Context) {
	var last time.Time
	for ctx.Err() == nil {
		s.takeOver(ctx)
		if now := time.Now(); ctx.Err() == nil && now.Sub(last) >= s.pace.every {
			last = now
			s.tidy(ctx)
		}
		third := s.cfg.TakeOver / 3
		sleep(ctx, third-third/8+rand.N(third/4))
	}
}

func (s *session) tidy(ctx context.Context) {
	s.survey(ctx)
	s.forget(s.pace.dead, "")
	for _, key := range s.all() {
		if err := s.walk(ctx, key, s.orphans(key)); err != nil && ctx.Err() == nil {
			s.trouble("look for orphans", err)
			return
		}
	}
}

// waiter is one entry that somebody has read and not removed.
type waiter struct {
	id         string
	deliveries int
}

// takeOver claims what has been held for too long without a word. All streams are
// asked in one go; mostly there is nothing.
func (s *session) takeOver(ctx context.Context) {
	short, done := s.command(ctx)
	defer done()
	keys := s.all()
	var cmds rueidis.Commands
	for _, key := range keys {
		cmds = append(cmds, s.pending(key, "-", 1))
	}
	for _, key := range keys {
		cmds = append(cmds, s.redis.B().Xlen().Key(key).Build())
	}
	replies := s.redis.DoMulti(short, cmds...)
	s.book.lengths(keys, replies[len(keys):])
	for n, key := range keys {
		idle, err := waiters(replies[n])
		if err == nil && len(idle) > 0 {
			err = s.claimAll(ctx, key)
		}
		if err != nil && !noGroup(err) { // the lanes see to groups
			s.trouble("take over", err)
			return
		}
	}
}

// pending asks for entries of a stream that were held for TakeOver.
func (s *session) pending(key, from string, count int64) rueidis.Completed {
	return s.redis.B().Xpending().Key(key).Group(group).Idle(s.cfg.TakeOver.Milliseconds()).Start(from).End("+").Count(count).Build()
}

// waiters reads a reply to XPENDING.
func waiters(r rueidis.RedisResult) (list []waiter, err error) {
	rows, err := r.ToArray()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	for _, row := range rows {
		f, err := row.ToArray() // id, consumer, idle, deliveries
		if err != nil || len(f) != 4 {
			continue
		}
		id, _ := f[0].ToString()
		n, _ := f[3].AsInt64()
		list = append(list, waiter{id, int(n)})
	}
	return list, err
}

// claimAll takes everything of one stream over that is due. Entries that others
// may have died of go one by one: whoever dies of one again must not make its
// neighbours suspect.
func (s *session) claimAll(ctx context.Context, key string) error {
	for from := "-"; ctx.Err() == nil; {
		short, done := s.command(ctx)
		count := s.walks.count(1)
		page, err := waiters(s.redis.Do(short, s.pending(key, from, count)))
		done()
		if err != nil {
			return err
		}
		for _, some := range portions(page) {
			taken, err := s.claim(ctx, key, some, s.cfg.TakeOver)
			if err != nil {
				return err
			}
			s.walks.ate(taken)
			_ = s.settle(ctx, taken) // was noted; one that cannot be moved holds no other up
		}
		if int64(len(page)) < count {
			return nil
		}
		from = "(" + page[len(page)-1].id
	}
	return nil
}

// portions: the innocent together, each suspect alone, after them.
func portions(list []waiter) (out [][]waiter) {
	var innocent []waiter
	for _, w := range list {
		if w.deliveries < suspect {
			innocent = append(innocent, w)
		} else {
			out = append(out, []waiter{w})
		}
	}
	if len(innocent) > 0 {
		out = append([][]waiter{innocent}, out...)
	}
	return out
}

// claim takes entries over that were held for so long.
func (s *session) claim(ctx context.Context, key string, list []waiter, idle time.Duration) (taken []Entry, err error) {
	before := map[string]int{}
	ids := make([]string, len(list))
	for i, w := range list {
		ids[i], before[w.id] = w.id, w.deliveries
	}
	short, done := s.command(ctx)
	defer done()
	got, nils, err := entries(s.redis.Do(short, s.redis.B().Xclaim().Key(key).Group(group).Consumer(s.name).
		MinIdleTime(strconv.FormatInt(idle.Milliseconds(), 10)).Id(ids...).Build()))
	if err != nil {
		return nil, err
	}
	if nils > 0 {
		s.forgetTrimmed(ctx, key, ids)
	}
	taken = s.entries(key, got, func(id string) int { return before[id] + 1 })
	s.book.add((*counts).ofTaken, len(taken))
	return taken, nil
}

// entries reads a list of entries. Redis 6.2 claims nil for those that were deleted.
func entries(r rueidis.RedisResult) (list []rueidis.XRangeEntry, nils int, err error) {
	rows, err := r.ToArray()
	if err != nil {
		return nil, 0, err
	}
	for _, row := range rows {
		if x, err := row.AsXRangeEntry(); err == nil && x.FieldValues != nil {
			list = append(list, x)
		} else {
			nils++
		}
	}
	return list, nils, nil
}

// forgetTrimmed acknowledges those of the entries that do not exist any more, as
// notes that were trimmed away. Redis 7 does that by itself.
func (s *session) forgetTrimmed(ctx context.Context, key string, ids []string) {
	short, done := s.command(ctx)
	defer done()
	var cmds rueidis.Commands
	for _, id := range ids {
		cmds = append(cmds, s.redis.B().Xrange().Key(key).Start(id).End(id).Build())
	}
	var gone []string
	for n, r := range s.redis.DoMulti(short, cmds...) {
		if found, _, err := entries(r); err == nil && len(found) == 0 {
			gone = append(gone, ids[n])
		}
	}
	if len(gone) == 0 {
		return
	}
	if err := s.redis.Do(short, s.redis.B().Xack().Key(key).Group(group).Id(gone...).Build()).Error(); err != nil {
		s.trouble("forget what was trimmed", err)
	}
}

// forgetText removes names of consumers that hold nothing, and have had nothing
// for some time; or one by name. It asks and removes in one go: XGROUP DELCONSUMER
// drops what is pending, and no take-over would find it.
const forgetText = `
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
	if c[4] == 0 and c[6] >= tonumber(ARGV[2]) and (ARGV[3] == '' or ARGV[3] == c[2]) then
		redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], c[2])
	end
end`

// forget removes names that were idle for so long. name "" = all. One that lives
// and was only quiet comes back with its next entry.
func (s *session) forget(idle time.Duration, name string) {
	ctx, cancel := s.command(context.Background())
	defer cancel()
	var cmds rueidis.Commands
	for _, key := range s.all() {
		cmds = append(cmds, s.redis.B().Eval().Script(forgetText).Numkeys(1).Key(key).
			Arg(group, strconv.FormatInt(idle.Milliseconds(), 10), name).Build())
	}
	for _, r := range s.redis.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) && !noGroup(err) && !starts(err, "no such key") {
			s.trouble("forget names", err)
			return
		}
	}
}
