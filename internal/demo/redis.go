package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// Redis is a Mailbox and a Stream in a Redis that may be in use for other things:
// whatever a demo puts there begins with its prefix, goes with Clean, and expires
// by itself if nobody gets to that.
type Redis struct {
	client rueidis.Client
	prefix string
}

// expiry is how long things of a demo that was killed stay, in seconds.
const expiry = 10 * 60

// limit bounds one exchange with Redis.
const limit = 3 * time.Second

// OpenRedis connects. Clean closes.
func OpenRedis(o rueidis.ClientOption, prefix string) (*Redis, error) {
	o.DisableRetry, o.DisableCache = true, true // a GETDEL that is repeated finds nothing
	o.Dialer.Timeout, o.ConnWriteTimeout = limit, limit
	o.ClientName = "settle-demo"
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	return &Redis{client, prefix}, nil
}

// Name is a name below the prefix.
func (r *Redis) Name(what string) string { return r.prefix + ":" + what }

// Streams makes empty streams, with their readers' group, that expire.
func (r *Redis) Streams(ctx context.Context, group string, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var cmds rueidis.Commands
	for _, name := range names {
		cmds = append(cmds, r.client.B().XgroupCreate().Key(name).Group(group).Id("0").Mkstream().Build(),
			r.client.B().Expire().Key(name).Seconds(expiry).Build())
	}
	return all(r.client.DoMulti(ctx, cmds...))
}

// Put is SET, then PUBLISH.
func (r *Redis) Put(ctx context.Context, key string, doc []byte) error {
	return all(r.client.DoMulti(ctx,
		r.client.B().Set().Key(key).Value(rueidis.BinaryString(doc)).ExSeconds(expiry).Build(),
		r.client.B().Publish().Channel(r.Name("nudge")).Message(key).Build()))
}

// Take is GETDEL.
func (r *Redis) Take(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	doc, err := r.client.Do(ctx, r.client.B().Getdel().Key(key).Build()).AsBytes()
	if rueidis.IsRedisNil(err) {
		err = ErrNothing
	}
	return doc, err
}

// Holds is EXISTS.
func (r *Redis) Holds(ctx context.Context, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	n, err := r.client.Do(ctx, r.client.B().Exists().Key(key).Build()).AsInt64()
	return n > 0, err
}

// Listen is SUBSCRIBE, once: when the subscription ends, the listener's ticks
// remain.
func (r *Redis) Listen(ctx context.Context, nudge func()) {
	_ = r.client.Receive(ctx, r.client.B().Subscribe().Channel(r.Name("nudge")).Build(), func(rueidis.PubSubMessage) { nudge() })
}

// Add is XADD.
func (r *Redis) Add(ctx context.Context, stream, ticket string, doc []byte) error {
	return r.client.Do(ctx, r.client.B().Xadd().Key(stream).Id("*").
		FieldValue().FieldValue("ticket", ticket).FieldValue("doc", rueidis.BinaryString(doc)).Build()).Error()
}

// Clean removes the names, and closes.
func (r *Redis) Clean(names []string) error {
	defer r.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var cmds rueidis.Commands
	for _, name := range names { // one by one: they are of several slots
		cmds = append(cmds, r.client.B().Del().Key(name).Build())
	}
	if err := all(r.client.DoMulti(ctx, cmds...)); err != nil {
		return fmt.Errorf("what begins with %s could not be removed, and expires in %d min: %w", r.prefix, expiry/60, err)
	}
	return nil
}

// all is the first error.
func all(results []rueidis.RedisResult) error {
	for _, r := range results {
		if err := r.Error(); err != nil {
			return err
		}
	}
	return nil
}
