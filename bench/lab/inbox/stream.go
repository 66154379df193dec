package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	group = "bridges"
	block = 2 * time.Second
	grace = 3 * time.Second // beyond block: then the connection is taken for dead
	most  = 500             // entries of a stream in one read
)

// batch is what one read brought: entries by stream.
type batch map[string][]rueidis.XRangeEntry

func (b *bridge) runStream(ctx context.Context) {
	for b.groups(ctx) != nil && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	b.ready()
	var all sync.WaitGroup
	for _, keys := range b.reads() {
		all.Go(func() { b.read(ctx, keys) })
	}
	all.Go(func() { b.takeOver(ctx) })
	all.Wait()
	b.leave()
}

// reads says which streams are read by one command: Cluster refuses a command
// over several slots, even if one server has them all.
func (b *bridge) reads() (out [][]string) {
	var all []string
	for s := range shards {
		all = append(all, stream(s))
		out = append(out, []string{stream(s)})
	}
	if b.PerShard {
		return out
	}
	return [][]string{all}
}

// groups creates the consumer group from the beginning of each stream: what a
// lost group had delivered and not removed is then read again.
func (b *bridge) groups(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for s := range shards {
		err := b.redis.Do(ctx, b.redis.B().XgroupCreate().Key(stream(s)).Group(group).Id("0").Mkstream().Build()).Error()
		if err != nil && !strings.Contains(err.Error(), "BUSYGROUP") {
			b.failed(err)
			return err
		}
	}
	return nil
}

func (b *bridge) read(ctx context.Context, keys []string) {
	news := make([]string, len(keys))
	for i := range news {
		news[i] = ">"
	}
	for ctx.Err() == nil {
		got, err := b.readOnce(ctx, keys, news)
		switch {
		case rueidis.IsRedisNil(err):
		case err != nil && strings.Contains(err.Error(), "NOGROUP"):
			b.failed(err)
			b.groups(ctx)
		case err != nil && ctx.Err() == nil:
			b.failed(err)
		default:
			b.settle(ctx, got)
		}
	}
}

// readOnce has a deadline of its own: the library sets none on a blocking
// command, and a half-open connection would hold it for ever.
func (b *bridge) readOnce(ctx context.Context, keys, news []string) (batch, error) {
	ctx, cancel := context.WithTimeout(ctx, block+grace)
	defer cancel()
	return b.redis.Do(ctx, b.redis.B().Xreadgroup().Group(group, b.Name).Count(most).
		Block(block.Milliseconds()).Streams().Key(keys...).Id(news...).Build()).AsXRead()
}

// settle judges, commits, and only then removes. If the commit fails the
// entries stay pending and are taken over later, by any bridge.
func (b *bridge) settle(ctx context.Context, got batch) {
	var tickets []ticket
	for _, entries := range got {
		for _, e := range entries {
			tickets = append(tickets, judge(e.FieldValues["ticket"], e.FieldValues["doc"]))
		}
	}
	if len(tickets) == 0 {
		return
	}
	if err := b.apply(tickets); err != nil {
		b.failed(err)
		return
	}
	b.remove(ctx, got)
}

// remove acknowledges and deletes what was judged: one transaction per stream.
func (b *bridge) remove(ctx context.Context, got batch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	var cmds rueidis.Commands
	for key, entries := range got {
		ids := make([]string, len(entries))
		for i, e := range entries {
			ids[i] = e.ID
		}
		c := b.redis.B()
		cmds = append(cmds, c.Multi().Build(), c.Xack().Key(key).Group(group).Id(ids...).Build(),
			c.Xdel().Key(key).Id(ids...).Build(), c.Exec().Build())
	}
	for _, r := range b.redis.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			b.failed(err)
			return
		}
	}
}

// takeOver looks for answers that a dead bridge has read and not removed.
func (b *bridge) takeOver(ctx context.Context) {
	clock := time.NewTicker(b.Every)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
		for s := range shards {
			b.claim(ctx, stream(s))
			b.forget(ctx, stream(s))
		}
	}
}

func (b *bridge) claim(ctx context.Context, key string) {
	for cursor := "0-0"; ctx.Err() == nil; {
		reply, err := b.claimOnce(ctx, key, cursor)
		if err != nil {
			b.failed(err)
			return
		}
		cursor, _ = reply[0].ToString()
		entries, err := reply[1].AsXRange()
		if err != nil {
			b.failed(err)
			return
		}
		b.add(&b.stats.Claimed, len(entries))
		b.settle(ctx, batch{key: entries})
		if cursor == "0-0" {
			return
		}
	}
}

func (b *bridge) claimOnce(ctx context.Context, key, cursor string) ([]rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return b.redis.Do(ctx, b.redis.B().Xautoclaim().Key(key).Group(group).Consumer(b.Name).
		MinIdleTime(strconv.FormatInt(b.MinIdle.Milliseconds(), 10)).Start(cursor).Count(most).Build()).ToArray()
}

// forget removes the names of dead bridges. It asks and removes in one script:
// XGROUP DELCONSUMER drops what is pending, and nobody would ever read it.
const forgetText = `
local n = 0
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
	if c[4] == 0 and c[6] > tonumber(ARGV[2]) then
		redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], c[2])
		n = n + 1
	end
end
return n`

var forgetScript = rueidis.NewLuaScript(forgetText)

func (b *bridge) forget(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	idle := strconv.FormatInt((5 * block).Milliseconds(), 10)
	n, err := forgetScript.Exec(ctx, b.redis, []string{key}, []string{group, idle}).AsInt64()
	if err != nil {
		b.failed(err)
		return
	}
	b.add(&b.stats.Swept, int(n))
}

// leave removes the own name where nothing is pending; the rest is taken over.
func (b *bridge) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for s := range shards {
		pending, err := b.redis.Do(ctx, b.redis.B().Xpending().Key(stream(s)).Group(group).
			Start("-").End("+").Count(1).Consumer(b.Name).Build()).ToArray()
		if err == nil && len(pending) == 0 {
			b.redis.Do(ctx, b.redis.B().XgroupDelconsumer().Key(stream(s)).Group(group).Consumername(b.Name).Build())
		}
	}
}
