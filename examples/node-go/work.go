package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// failure is what an answer says of a step that failed. Retryable: nil = not known.
type failure struct {
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable,omitempty"`
}

func (f *failure) Error() string { return f.Reason + ": " + f.Message }

// work is the toy that your work replaces: it counts the words of a text. It says
// that it is alive, and ends when its context does. A *failure is the step's own
// word for what went wrong; other errors are reported as well.
func work(ctx context.Context, input []byte, alive func()) (output any, err error) {
	var in struct {
		Text      *string
		Seconds   int    // how long to take
		Fail      string // why to fail
		Retryable *bool
	}
	if err := json.Unmarshal(input, &in); err != nil || in.Text == nil {
		return nil, &failure{Reason: "bad_input", Message: "there is no text", Retryable: new(bool)}
	}
	for range in.Seconds {
		select {
		case <-time.After(time.Second):
			alive()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if in.Fail != "" {
		return nil, &failure{Reason: in.Fail, Message: "the input asked for it", Retryable: in.Retryable}
	}
	return map[string]any{"words": len(strings.Fields(*in.Text)), "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(*in.Text)))}, nil
}

// safely makes an error of a panic: a bad input must not end the node.
func safely(ctx context.Context, input []byte, alive func()) (output any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return work(ctx, input, alive)
}
