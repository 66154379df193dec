package xwork

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/child"
	"github.com/settle-go/settle/internal/redact"
	"github.com/settle-go/settle/internal/verdict"
)

// Command is a target that runs a command for every attempt, without a shell:
// the input is its standard input, its standard output the output. It ends,
// with its whole process group, when the attempt's context ends; what it has
// left in the group is killed when it has ended by itself.
type Command struct {
	Argv   []string // Argv[0] is looked up in PATH
	Env    []string // the environment; SETTLE_JOB and SETTLE_ATTEMPT are added
	Runner *child.Runner
}

// grace is how long a command may go on after SIGTERM: less than the second
// after which a worker gives a handler up for abandoned.
const grace = 500 * time.Millisecond

var errOutput = errors.New("the output is too large")

// Do runs one attempt.
func (c *Command) Do(ctx context.Context, r Request) (settle.Outcome, error) {
	path, err := child.Find(c.Argv[0], "")
	if err != nil {
		return terminal("exit code 127: " + err.Error()), nil
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &limited{max: settle.MaxPayload, over: func() { stop(errOutput) }}
	errs := &tail{max: redact.TailRead + 1}
	res, err := c.Runner.Run(run, child.Spec{Path: path, Args: c.Argv, Input: r.Input, Stdout: out, Stderr: errs, KillRest: true,
		Env: child.Environ(c.Env, "SETTLE_JOB="+r.Job.String(), "SETTLE_ATTEMPT="+strconv.Itoa(r.Attempt)),
		Grace: func(cause error) time.Duration {
			if errors.Is(cause, errOutput) {
				return 0
			}
			return grace
		}})
	switch {
	case err != nil:
		return notStarted(err)
	case out.full:
		return tooLarge("standard output"), nil
	case res.Cut:
		return settle.Outcome{Verdict: settle.VerdictRetry, Error: child.Said(errs.bytes())}, nil
	}
	v := verdict.Exit(res.Code, nil, nil)
	if v == settle.VerdictOK {
		return settle.Outcome{Verdict: v, Output: out.buf.Bytes()}, nil
	}
	return settle.Outcome{Verdict: v, Reason: settle.AttemptError, Error: child.ErrorText(res.String(), errs.bytes())}, nil
}

// notStarted judges a command that could not be started: one that cannot be
// executed stays so; all else is this machine's fault.
func notStarted(err error) (settle.Outcome, error) {
	if code, known := child.StartCode(err); known {
		return terminal(fmt.Sprintf("exit code %d: %v", code, err)), nil
	}
	return settle.Outcome{}, fmt.Errorf("start the command: %w", err)
}

func terminal(text string) settle.Outcome {
	return settle.Outcome{Verdict: settle.VerdictTerminal, Reason: settle.AttemptError, Error: redact.Text(text)}
}
