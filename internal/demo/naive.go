package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Naive hands a task to a node and waits for the answer, with the faults of the
// incident left in: the read removes what it finds, and whatever is no result is
// taken for one that has not come yet.
type Naive struct {
	Box  Mailbox
	Key  string        // where the answer will lie
	Tick time.Duration // between two looks without a nudge
	Say  func(text string)

	read, over atomic.Bool
}

// Hangs: it has read an answer, did not take it for one, and waits for the next.
func (n *Naive) Hangs() bool { return n.read.Load() && !n.over.Load() }

// Run submits a task, as JSON, to a node, and waits until there is a film or ctx
// ends.
func (n *Naive) Run(ctx context.Context, url, node string, task json.RawMessage) (Film, error) {
	defer n.over.Store(true)
	ctx, stop := context.WithCancel(ctx)
	var ear sync.WaitGroup
	defer ear.Wait()
	defer stop()
	nudges := make(chan struct{}, 1)
	ear.Go(func() {
		n.Box.Listen(ctx, func() {
			select {
			case nudges <- struct{}{}:
			default: // one is enough
			}
		})
	})
	if err := n.submit(ctx, url, task); err != nil {
		return Film{}, err
	}
	n.Say(fmt.Sprintf("hands the film to node %s; waits for a nudge, looks each %s", node, n.Tick))
	ticks := time.NewTicker(n.Tick)
	defer ticks.Stop()
	for {
		why := "looks"
		select {
		case <-nudges:
			why = "is nudged"
		case <-ticks.C:
		case <-ctx.Done():
			return Film{}, ctx.Err()
		}
		film, err := n.fetch(ctx)
		if err == nil {
			n.Say(why + ": the film is there")
			return film, nil
		}
		n.Say(fmt.Sprintf("%s: %v: so there is no result yet, waits on", why, err)) // the fault: an error may mean more than "not yet"
	}
}

// fetch reads the answer, which is gone then.
func (n *Naive) fetch(ctx context.Context) (Film, error) {
	doc, err := n.Box.Take(ctx, n.Key)
	if err != nil {
		return Film{}, err
	}
	n.read.Store(true)
	var answer struct {
		Status string
		Output Film
	}
	if err := json.Unmarshal(doc, &answer); err != nil {
		return Film{}, err
	}
	if answer.Status != "done" {
		return Film{}, fmt.Errorf("reads an answer, which deletes it: status %q", answer.Status)
	}
	return answer.Output, nil
}

func (n *Naive) submit(ctx context.Context, url string, task json.RawMessage) error {
	body, err := json.Marshal(map[string]any{"answer": map[string]string{"mailbox": n.Key}, "input": task})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the node answers HTTP %s", resp.Status)
	}
	return nil
}
