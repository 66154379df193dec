package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/internal/xwork"
	"github.com/settle-go/settle/worker"
)

// targets reads --exec and --http. Commands are started by the runner.
func (f *workFlags) targets(runner *child.Runner) (map[string]xwork.Target, error) {
	targets := map[string]xwork.Target{}
	client := xwork.NewClient(max(f.slots, 1), http.ProxyFromEnvironment)
	for _, s := range f.exec {
		err := addTarget(targets, "--exec", s, "KIND=CMD", func(cmd string) (xwork.Target, error) {
			argv, err := child.Words(cmd)
			if err != nil {
				return nil, err
			}
			if len(argv) == 0 {
				return nil, errors.New("the command is empty")
			}
			if _, err := child.Find(argv[0], ""); err != nil {
				return nil, err
			}
			return &xwork.Command{Argv: argv, Env: os.Environ(), Runner: runner}, nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, s := range f.http {
		err := addTarget(targets, "--http", s, "KIND=URL", func(url string) (xwork.Target, error) {
			return &xwork.HTTP{URL: url, Client: client, Agent: "settle/" + moduleVersion()}, xwork.CheckURL(url)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(targets) == 0 {
		return nil, usagef("want at least one --exec KIND=CMD or --http KIND=URL")
	}
	return targets, nil
}

// addTarget reads one KIND=… and checks it.
func addTarget(targets map[string]xwork.Target, flag, s, form string, read func(string) (xwork.Target, error)) error {
	kind, rest, found := strings.Cut(s, "=")
	if !found || kind == "" {
		return usagef("%s %q: want %s", flag, clip(s), form)
	}
	if err := checkNames("", kind, "", ""); err != nil {
		return err
	}
	if targets[kind] != nil {
		return usagef("%s: kind %s has two targets", flag, cell(kind))
	}
	t, err := read(rest)
	if err != nil {
		return usagef("%s %s: %w", flag, cell(kind), err)
	}
	targets[kind] = t
	return nil
}

// handler makes a worker's handler of a target.
func handler(t xwork.Target) func(context.Context, *worker.Job[[]byte]) ([]byte, error) {
	return func(ctx context.Context, j *worker.Job[[]byte]) ([]byte, error) {
		o, err := t.Do(ctx, xwork.Request{Job: j.ID, Attempt: j.Attempt, Input: j.In})
		switch {
		case err != nil:
			return nil, worker.Report(settle.Deferred{Reason: settle.AttemptBusy, After: time.Second, Error: redact.Error(err)})
		case o.Verdict == settle.VerdictOK:
			return o.Output, nil
		case ctx.Err() != nil && o.Error != "": // the worker knows what follows
			return nil, fmt.Errorf("%w: %s", context.Cause(ctx), o.Error)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, worker.Report(settle.Settled{Outcome: o})
	}
}
