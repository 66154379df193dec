// Command key is a producer for the stand-alone mailbox (docs/contract.md, "By
// Redis, as a key"): it reads a task from its standard input, works, and leaves
// the answer under a key. What a task looks like is between you and your
// consumer; here it is
//
//	{"key": "settle:answer:video-7.a1b2c3", "lifetime_s": 7200, "job": "video-7", "step": "count", "attempt": "a1b2c3", "text": "…"}
//
// REDIS_URL: redis://host:port.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

type task struct {
	Key                string
	LifetimeS          int64 `json:"lifetime_s"`
	Job, Step, Attempt string
	Text               *string
}

func main() {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		log.Fatal(err)
	}
	answer := map[string]any{"v": 1, "job": t.Job, "step": t.Step, "attempt": t.Attempt, "node": "key-go"}
	work(t, answer)
	doc, err := json.Marshal(answer)
	if err != nil {
		log.Fatal(err)
	}
	lifetime := time.Duration(t.LifetimeS) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	defer cancel()
	// Again, later and later, until it is written or its lifetime would be over.
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := leave(ctx, t.Key, string(doc), lifetime)
		if err == nil {
			return
		}
		log.Print(err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			log.Fatal(ctx.Err())
		}
	}
}

func work(t task, answer map[string]any) {
	if t.Text == nil {
		answer["status"] = "error"
		answer["error"] = map[string]any{"reason": "bad_input", "message": "there is no text", "retryable": false}
		return
	}
	answer["status"] = "done"
	answer["output"] = map[string]any{"words": len(strings.Fields(*t.Text))}
}

// leave writes first, then nudges. A nudge may be lost, the answer may not.
func leave(ctx context.Context, key, doc string, lifetime time.Duration) error {
	options, err := rueidis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"))
	if err != nil {
		return err
	}
	options.DisableCache = true
	client, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Do(ctx, client.B().Set().Key(key).Value(doc).Ex(lifetime).Build()).Error(); err != nil {
		return err
	}
	_ = client.Do(ctx, client.B().Publish().Channel("settle:nudge").Message(key).Build())
	return nil
}
