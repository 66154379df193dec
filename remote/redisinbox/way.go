package redisinbox

import (
	"context"
	"fmt"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/remote"
)

// Way returns the inbox as what remote.Config.Inbox wants.
func (i *Inbox) Way() remote.Inbox { return way{i} }

type way struct{ *Inbox }

func (w way) Name() string { return "redis" }

func (w way) Address(job, attempt settle.ID) any { return w.Inbox.Address(job, attempt) }

func (w way) Run(ctx context.Context, deliver remote.Deliver) error {
	return w.Inbox.Run(ctx, func(ctx context.Context, list []Entry) ([]bool, error) {
		in := make([]remote.Incoming, len(list))
		for k, e := range list {
			in[k] = remote.Incoming{Job: e.Job, Attempt: e.Attempt, Doc: e.Doc, Poisoned: e.Poisoned}
		}
		return deliver(ctx, in)
	})
}

// Describe says in one line how the inbox is.
func (w way) Describe() string {
	s := w.Status()
	text := fmt.Sprintf("read, %d waiting", s.Waiting)
	if !s.Reading {
		text = "cannot be read"
		if s.LastError != "" {
			text += ": " + s.LastError
		}
	}
	if s.Warning != "" {
		text += "; " + s.Warning
	}
	return text
}
