package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// nodes answer waits at a steady rate and repeat an answer until Redis has
// confirmed it, as the contract asks of them.
type nodes struct {
	redis  rueidis.Client
	store  *store
	form   string
	noise  atomic.Int64 // answers to no attempt that is waiting
	repeat atomic.Int64
	busy   sync.WaitGroup
	ctx    context.Context
}

const answersPerSecond = 1000

func (n *nodes) run(d time.Duration) {
	const tick = 2 * time.Millisecond
	per := answersPerSecond * int(tick) / int(time.Second)
	clock := time.NewTicker(tick)
	defer clock.Stop()
	sent := 0
	for began := time.Now(); time.Since(began) < d; {
		<-clock.C
		due := int(time.Since(began)/tick) * per // catches up after a slow tick
		for ; sent < due; sent++ {
			n.send(n.store.answer())
			if sent%100 == 0 {
				n.disturb(sent / 100)
			}
		}
	}
	n.busy.Wait()
}

// disturb sends an answer that settles nothing: another attempt's, an unknown
// job's, or garbage.
func (n *nodes) disturb(i int) {
	n.noise.Add(1)
	n.send([]ticket{{rand.IntN(1000), 7}, {1 << 40, 7}, nobody}[i%3])
}

func (n *nodes) send(t ticket) {
	n.busy.Go(func() {
		for n.ctx.Err() == nil {
			if n.try(t) == nil {
				if t.Attempt != 7 && t != nobody {
					n.store.ack(t)
				}
				return
			}
			n.repeat.Add(1)
			time.Sleep(time.Duration(50+rand.IntN(100)) * time.Millisecond)
		}
	})
}

// try gives one answer, with a bound on how long it waits for the confirmation.
func (n *nodes) try(t ticket) error {
	ctx, cancel := context.WithTimeout(n.ctx, 2*time.Second)
	defer cancel()
	doc := answerOf(t)
	if t == nobody {
		doc = "{garbage"
	}
	b := n.redis.B()
	if n.form == "stream" {
		return n.redis.Do(ctx, b.Xadd().Key(stream(max(0, t.shard()))).Id("*").
			FieldValue().FieldValue("ticket", t.String()).FieldValue("doc", doc).Build()).Error()
	}
	for _, r := range n.redis.DoMulti(ctx,
		b.Set().Key(t.key()).Value(doc).ExSeconds(600).Build(),
		b.Publish().Channel(nudges(max(0, t.Job)%bridges)).Message(t.String()).Build()) {
		if r.Error() != nil {
			return r.Error()
		}
	}
	return nil
}

// nudges is the channel of one bridge: the address travels with the ticket.
func nudges(bridge int) string { return "settle:nudge:" + strconv.Itoa(bridge) }
