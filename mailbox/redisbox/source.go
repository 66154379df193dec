package redisbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/mailbox"
)

// source is Redis as a [mailbox.Source].
type source struct {
	config Config
	line   line
	policy policy
}

// few is how many keys are read at once: so many MiB at most must come within
// one Timeout. Fewer keys are read without asking first whether they are there.
const few = 8

// peek reads a key without changing it, no further than a byte beyond what is
// allowed. What is no string is an empty document: something lies there.
var peek = rueidis.NewLuaScriptNoSha(`local t = redis.call('TYPE', KEYS[1]).ok
if t == 'none' then return false end
if t ~= 'string' then return '' end
return redis.call('GETRANGE', KEYS[1], 0, ARGV[1])`)

// remove deletes a key that still holds what was peeked at.
var remove = rueidis.NewLuaScriptNoSha(`if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return 0 end
local seen, have, most = #ARGV[1], redis.call('STRLEN', KEYS[1]), tonumber(ARGV[2])
if have ~= seen and not (seen > most and have > most) then return 0 end
if redis.call('GETRANGE', KEYS[1], 0, ARGV[2]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)

// most is the last byte that is read, counted from 0.
var most = strconv.Itoa(mailbox.MaxDocument)

// Destructive is the source's.
func (s *source) Destructive() bool { return s.config.Destructive }

// within gives one exchange its time.
func (s *source) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.config.Timeout)
}

// client is the line's, within the time of one exchange.
func (s *source) client(ctx context.Context) (rueidis.Client, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	client, err := s.line.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("redisbox: connect: %w", err)
	}
	return client, nil
}

// Read asks which keys are there, all at once, and reads those.
func (s *source) Read(ctx context.Context, keys []string) []mailbox.Found {
	found := make([]mailbox.Found, len(keys))
	client, err := s.client(ctx)
	if err != nil {
		return failAll(found, err)
	}
	there := make([]int, 0, min(len(keys), few))
	if len(keys) <= few && !s.config.Destructive {
		for i := range keys {
			there = append(there, i)
		}
	} else if there, err = s.exist(ctx, client, keys, found); err != nil {
		return failAll(found, err)
	}
	for err = ctx.Err(); err == nil && len(there) > 0; {
		part := there[:min(len(there), s.atOnce())]
		there = there[len(part):]
		err = cmp.Or(s.read(ctx, client, keys, found, part), ctx.Err())
	}
	for _, i := range there { // the connection is lost, or slow: not once for each
		found[i].Err = err
	}
	return found
}

// atOnce is how many keys share a reply. A reply that is cut off must not be
// that to another key's GETDEL too.
func (s *source) atOnce() int {
	if s.config.Destructive {
		return 1
	}
	return few
}

func failAll(found []mailbox.Found, err error) []mailbox.Found {
	for i := range found {
		found[i].Err = err
	}
	return found
}

// exist returns which keys are there. Where one key could not be asked for, that
// stands in found.
func (s *source) exist(ctx context.Context, client rueidis.Client, keys []string, found []mailbox.Found) (there []int, err error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	if client.Mode() != rueidis.ClientModeCluster && len(keys) > 1 {
		n, err := client.Do(ctx, client.B().Exists().Key(keys...).Build()).AsInt64()
		if err != nil || n == 0 {
			return nil, err
		}
	}
	asked := make(rueidis.Commands, len(keys))
	for i, k := range keys {
		asked[i] = client.B().Exists().Key(k).Build()
	}
	for i, r := range client.DoMulti(ctx, asked...) {
		if n, err := r.AsInt64(); err != nil {
			found[i].Err = err
		} else if n > 0 {
			there = append(there, i)
		}
	}
	return there, nil
}

// read reads some of the keys. Its error is why the rest need not be tried.
func (s *source) read(ctx context.Context, client rueidis.Client, keys []string, found []mailbox.Found, part []int) (lost error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	var replies []rueidis.RedisResult
	if s.config.Destructive {
		replies = client.DoMulti(ctx, client.B().Getdel().Key(keys[part[0]]).Build())
	} else {
		looks := make([]rueidis.LuaExec, len(part))
		for i, k := range part {
			looks[i] = rueidis.LuaExec{Keys: []string{keys[k]}, Args: []string{most}}
		}
		replies = peek.ExecMulti(ctx, client, looks...)
	}
	for i, r := range replies {
		f := s.found(keys[part[i]], r)
		if found[part[i]] = f; r.NonRedisError() != nil {
			lost = fmt.Errorf("redisbox: not read: %w", r.NonRedisError())
		}
	}
	return lost
}

// found says what a reply to peek or to GETDEL means.
func (s *source) found(key string, r rueidis.RedisResult) mailbox.Found {
	text, err := r.ToString()
	reply, refused := rueidis.IsRedisErr(err)
	switch {
	case err == nil:
		return mailbox.Found{There: true, Doc: []byte(text)}
	case rueidis.IsRedisNil(err):
		return mailbox.Found{}
	case refused && strings.HasPrefix(reply.Error(), "WRONGTYPE"):
		return mailbox.Found{There: true} // and stays, but is no answer and will be none
	case s.config.Destructive && !refused && !unsent(err):
		return mailbox.Found{Err: &mailbox.ConsumedError{Key: key, Err: err}}
	default:
		return mailbox.Found{Err: err}
	}
}

// unsent reports whether an error says that nothing was sent: there was no
// connection to send it on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Remove deletes a key if it still holds doc, in one script.
func (s *source) Remove(ctx context.Context, key string, doc []byte) (bool, error) {
	client, err := s.client(ctx)
	if err != nil {
		return false, err
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	n, err := remove.Exec(ctx, client, []string{key}, []string{rueidis.BinaryString(doc), most}).AsInt64()
	if err != nil {
		return false, fmt.Errorf("redisbox: delete what was judged: %w", err)
	}
	return n > 0, nil
}
