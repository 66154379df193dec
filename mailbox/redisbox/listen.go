package redisbox

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/settle-go/settle/mailbox"
)

// Listen holds one subscription, on a connection of its own, until it is lost or
// found dead. Nothing but its own pings would notice the latter: a network that
// drops in silence tells nobody.
func (s *source) Listen(ctx context.Context, up func(), nudge func(string)) error {
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	conn, release := client.Dedicate()
	defer release()
	defer conn.Close() // never back into the pool: it is subscribed
	lost := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { nudge(m.Message) }})
	if err := s.ask(ctx, conn, conn.B().Subscribe().Channel(s.config.Channel).Build()); err != nil {
		if reply, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(reply.Error(), "NOPERM") {
			return fmt.Errorf("%w: %w", mailbox.ErrNoNudges, err)
		}
		return fmt.Errorf("redisbox: subscribe: %w", err)
	}
	up()
	beat := time.NewTicker(s.config.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			return fmt.Errorf("redisbox: the subscription is lost: %w", cmp.Or(err, rueidis.ErrClosing))
		case <-beat.C:
			if err := s.ask(ctx, conn, conn.B().Ping().Build()); err != nil {
				return fmt.Errorf("redisbox: the subscription is dead: %w", err)
			}
		}
	}
}

func (s *source) ask(ctx context.Context, conn rueidis.DedicatedClient, cmd rueidis.Completed) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	return conn.Do(ctx, cmd).Error()
}
